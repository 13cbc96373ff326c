"""The measurements as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from benchmarks.speed.goals import Goal, Medians, above_ideal
from benchmarks.speed.measure import Cost
from benchmarks.speed.programs import HTTP, OURS, PYTHON, REPLAY
from benchmarks.speed.workloads import W1_LARGE, Kind, Workload

# Peers call their agent for W1 and W3; the answers of W2 are given.
_COUNTERPARTS: Mapping[Kind, str] = {"exact": PYTHON, "overlap": REPLAY, "http": HTTP}

Problems = Mapping[tuple[str, str], str]


def cost_table(
    programs: Sequence[str],
    workloads: Sequence[Workload],
    medians: Medians,
    problems: Problems,
    missing: Collection[str] = (),
) -> str:
    """CPU seconds, wall in brackets; of W3 the wall above the ideal, CPU in brackets; last the peak of W1 10,000.

    ``missing`` are the programs that could not be installed.
    """

    def cell(program: str, workload: Workload) -> str:
        if program in missing:
            return "not installed"
        cost = medians.get((workload.key, program))
        if cost is None:
            return "failed" if (workload.key, program) in problems else "–"
        if workload.kind == "http":
            return f"{above_ideal(workload, cost):.2f} ({cost.cpu_s:.2f})"
        return f"{cost.cpu_s:.2f} ({cost.wall_s:.2f})"

    def peak(program: str) -> str:
        cost = medians.get((W1_LARGE.key, program))
        return f"{cost.peak_mib:.0f}" if cost else "–"

    heads = [f"{w.title} above ideal (CPU)" if w.kind == "http" else w.title for w in workloads]
    rows = [[name, *(cell(name, workload) for workload in workloads), peak(name)] for name in programs]
    return _markdown(["CPU s (wall)", *heads, "peak MiB, W1 10,000"], rows)


def ratio_table(programs: Sequence[str], workloads: Sequence[Workload], medians: Medians) -> str:
    """Return the costs of every peer as multiples of agenteval's with the same kind of agent."""
    peers = [name for name in programs if name not in OURS]
    compared = [workload for workload in workloads if any((workload.key, name) in medians for name in peers)]

    def cell(program: str, workload: Workload) -> str:
        cost = medians.get((workload.key, program))
        ours = medians.get((workload.key, _COUNTERPARTS[workload.kind]))
        return _ratio(_quoted(workload, cost), _quoted(workload, ours)) if cost and ours else "–"

    def peak(program: str) -> str:
        cost, ours = medians.get((W1_LARGE.key, program)), medians.get((W1_LARGE.key, PYTHON))
        return _ratio(cost.peak_mib, ours.peak_mib) if cost and ours else "–"

    rows = [[name, *(cell(name, workload) for workload in compared), peak(name)] for name in peers]
    return _markdown(["times agenteval", *(workload.title for workload in compared), "peak, W1 10,000"], rows)


def goal_table(goals: Iterable[Goal]) -> str:
    """Return one line per goal: its limit, the measured values by kind of agent, and the verdict."""
    rows = [[goal.text, f"≤ {goal.limit:g} {goal.unit}", _values(goal), goal.verdict] for goal in goals]
    return _markdown(["goal", "limit", "measured", ""], rows)


def reasons(goals: Iterable[Goal]) -> str:
    """Return the reasons of the goals that are missed, each once; empty without any."""
    texts: dict[str, list[str]] = {}
    for goal in goals:
        if goal.verdict == "missed" and goal.why:
            texts.setdefault(goal.why, []).append(goal.text)
    return "\n".join(f"* {'; '.join(found)}: {why}." for why, found in texts.items())


def _values(goal: Goal) -> str:
    kinds = {name: name.rpartition(" ")[2] for name in goal.values}
    if len(kinds) == 1:
        (value,) = goal.values.values()
        return f"{value:.3g} {goal.unit}"
    return ", ".join(f"{kinds[name]} {value:.3g} {goal.unit}" for name, value in goal.values.items())


def _quoted(workload: Workload, cost: Cost) -> float:
    return above_ideal(workload, cost) if workload.kind == "http" else cost.cpu_s


def _ratio(theirs: float, ours: float) -> str:
    if ours <= 0:
        return "–"
    ratio = theirs / ours
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, [":--", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
