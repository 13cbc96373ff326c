"""What a run and its gate can do, without a run: ``run --dry-run`` and ``explain-gate``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from agenteval.compare.policy import ComparePolicy, ConfirmationLimits
from agenteval.compare.regression.capability import Power, most_calls, most_calls_without_control, power_of
from agenteval.compare.sides import Sides
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.escape import terminal
from agenteval.report.view.view import count
from agenteval.results.model import Results
from agenteval.run.baseline import check_baseline
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.settings import Settings
from agenteval.run.staged import staged
from agenteval.run.validate import checked


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What the gate can do with a pool.

    Attributes:
        cost_per_call: cost of one iteration of a case in US dollars, judges included; ``None`` if unknown.
        notes: what was left out, and settings for which the figures do not hold.
    """

    power: Power
    cost_per_call: float | None
    notes: tuple[str, ...]


def explain_file(path: Path, settings: Settings) -> Explanation:
    """Return what the gate can do with the pool of a results file, which contains the run itself.

    Raises:
        ConfigError: the file cannot be read, cannot be a baseline, or has no gating metric with a score; or a
            configuration is not valid.
    """
    from agenteval.results.importers.detect import read_run

    results, notes = read_run(path)
    check_baseline(results, path)
    policy = resolve_saved(results, settings, os.environ).compare
    found = explain(results, policy, datetime.now(UTC).date(), notes)
    if not (found.power.detectable and found.power.cases):
        raise ConfigError(
            Problem("no metric that can fail the gate has a score in this run", file=str(path), kind=Kind.RESULTS)
        )
    return found


def explain(results: Results, policy: ComparePolicy, today: date, notes: Iterable[str] = ()) -> Explanation:
    """Return what the gate can do with the pool of a run, and the run itself.

    Args:
        today: the UTC date that decides which quarantine entries have ended.
        notes: what the reader of the run left out.
    """
    cases = [case for _, case in results.cases()]
    quarantined = frozenset(case.id for case in cases if policy.quarantined(case.id, case.name, today))
    # The run belongs to its own pool, so there is no run to compare with it.
    sides = Sides(results, results, policy, quarantined)
    return Explanation(
        power=power_of(replace(sides.evidence, first={}), policy.settings),
        cost_per_call=cost_of_a_call(results),
        notes=(*notes, *_worse(results), *sides.earlier.notes, *_differences(policy)),
    )


def cost_of_a_call(results: Results) -> float | None:
    """Return what one iteration of a case has cost in US dollars, judges included; ``None`` if unknown.

    The usage of a run contains what ran again.
    """
    comparison = results.comparison
    again = comparison.cost.calls if comparison is not None and comparison.cost is not None else 0
    calls = sum(len(case.iterations) for _, case in results.cases()) + again
    cost = results.summary.usage.cost_usd
    return cost / calls if cost > 0 and calls else None


def _worse(results: Results) -> list[str]:
    """Return a note about a run that the gate would not add to a pool."""
    if results.comparison is None or results.comparison.verdict != "regressed":
        return []
    return ["this run is proven worse than its baseline; the figures are those of the worse agent"]


def _differences(policy: ComparePolicy) -> list[str]:
    """Return for which of the policy's settings the figures do not hold."""
    notes = []
    if policy.name != "statistics":
        notes.append(f"the gate decides by `policy: {policy.name}`; these figures are those of `policy: statistics`")
    elif not policy.confirms_beside_base:
        notes.append("these figures hold for `confirm: against-base`, which this configuration does not choose")
    if policy.staged:
        notes.append("these figures hold for whole first runs; `staged` saves calls and finds a little less")
    return notes


def dry_run(settings: Settings, runs: int = 1) -> list[str]:
    """Check what a run would read and start, and return its cost; no agent, tool or model is called.

    Args:
        settings: the settings of each run; nothing is written.

    Returns:
        Lines about the files, their warnings, the run, and what a suspected regression would cost.

    Raises:
        ConfigError: the run would not start.
    """
    spec = staged(resolve_run(settings), settings if runs == 1 else replace(settings, is_whole=True))
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec, runs))]


def _costs(spec: RunSpec, runs: int) -> Iterator[str]:
    earlier = spec.baseline.results if spec.baseline is not None else None
    iterations = [item.iterations for item in spec.cases if item.case.id not in spec.compare.recorded]
    calls, unneeded = sum(iterations), sum(item.unneeded for item in spec.cases)
    left = f"; {unneeded:,} of {calls:,} are not needed" if unneeded else ""
    several = "" if runs == 1 else f"{runs} runs of "
    yield f"run: {several}{_asked(spec)}, {_calls(runs * (calls - unneeded), earlier)}{left}"
    if earlier is None and runs == 1:
        yield "suspicion: nothing runs again, because no baseline is named"
        return
    why_nothing = _why_nothing(spec.compare) if calls else "recorded answers, which never vary"
    if why_nothing:
        yield f"suspicion: nothing runs again, because of {why_nothing}"
        return
    most = most_calls if spec.compare.confirms_beside_base else most_calls_without_control
    means, single = most(iterations, spec.compare.settings)
    costs = f"{_calls(means, earlier)} for means, {_calls(single, earlier)} for single cases"
    yield f"suspicion: at most {costs}{_limited(spec.compare.max_confirmation, calls)}"


def _asked(spec: RunSpec) -> str:
    if spec.traces is not None:
        return f"the recorded traces of {count(len(spec.traces.paths), 'path')}"
    recorded = sum(item.case.id in spec.compare.recorded for item in spec.cases)
    cases = count(len(spec.cases), "case")
    return f"{cases} ({recorded} with recorded answers)" if recorded else cases


def _why_nothing(policy: ComparePolicy) -> str:
    if policy.name != "statistics":
        return f"`policy: {policy.name}`"
    return "`confirm: off`" if policy.confirm == "off" else ""


def _calls(number: int, earlier: Results | None) -> str:
    """Return a number of calls, and their cost as far as the baseline knows it."""
    cost = cost_of_a_call(earlier) if earlier is not None else None
    text = f"{number:,} call" if number == 1 else f"{number:,} calls"
    return text if cost is None else f"{text} (${number * cost:,.2f})"


def _limited(limits: ConfirmationLimits, run_calls: int) -> str:
    """Return what ``max_confirmation`` allows; empty without a limit."""
    calls = [
        number
        for number in (limits.calls, None if limits.runs is None else limits.runs * run_calls)
        if number is not None
    ]
    allowed = [f"{min(calls):,} calls"] if calls else []
    allowed += [f"${limits.cost_usd:,.2f}"] if limits.cost_usd is not None else []
    return f"; `max_confirmation` allows {' and '.join(allowed)}" if allowed else ""
