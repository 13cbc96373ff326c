"""Notes: on the baseline, on how certain the result is, and on changed rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from agenteval.core.records import dataclass
from agenteval.report.view.view import NOTHING, cached_per_run, count
from agenteval.results.comparison import Comparison
from agenteval.results.model import Difference, Results, Run

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def age(created_at: str, now: str) -> str:
    """Return the age of a baseline at the start of a run: ``3 days old``; empty if unknown.

    Args:
        created_at: time of the baseline, ISO 8601.
        now: start of the run, ISO 8601.
    """
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(created_at)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return ""
    if seconds < 0:
        return ""
    for length, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= length:
            return f"{count(int(seconds // length), name)} old"
    return "less than a minute old"


def size(results: Results) -> str:
    """Return ``118 cases × 3``: the number of cases and of their iterations."""
    numbers = _iteration_counts(results)
    cases = count(results.summary.cases, "case")
    if not numbers or max(numbers) == 1:
        return cases
    fewest, most = min(numbers), max(numbers)
    times = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{cases} × {times}{_unneeded(results)}"


def repetitions(results: Results) -> str:
    """Return the number of iterations of the cases and of baseline runs."""
    numbers = _iteration_counts(results)
    parts = []
    if numbers:
        fewest, most = min(numbers), max(numbers)
        text = count(most, "iteration") if fewest == most else f"{fewest} to {most:,} iterations"
        parts.append(f"{text}{_unneeded(results)}")
    if (amount := _baseline_runs(results)) is not None:
        parts.append(count(amount, "baseline run"))
    return ", ".join(parts)


def runs(results: Results) -> str:
    """Return the number of earlier runs that the run was compared with: ``3 runs``; empty if unknown."""
    amount = _baseline_runs(results)
    return "" if amount is None else count(amount, "run")


def _baseline_runs(results: Results) -> int | None:
    return len(results.comparison.pool) or None if results.comparison else None


@cached_per_run
def _iteration_counts(results: Results) -> frozenset[int]:
    counts = {case.planned for suite in results.suites for case in suite.cases if case.iterations}
    return frozenset(counts)


def _unneeded(results: Results) -> str:
    """Return how many iterations a run that ended early left out."""
    cases = [case for suite in results.suites for case in suite.cases]
    unneeded, planned = sum(case.unneeded for case in cases), sum(case.planned for case in cases)
    return f" ({unneeded:,} of {planned:,} were not needed)" if unneeded else ""


def smallest_drops(comparison: Comparison) -> str:
    """Return the drop of a mean that is found in 8 of 10 pull requests."""
    found = [metric.detectable_drop for metric in comparison.metrics if metric.gating and metric.detectable_drop]
    return f"drops of about {max(found):.2f} are found" if found else ""


def gate_needs(comparison: Comparison) -> tuple[str, ...]:
    """Return the conditions under which a comparison fails the gate, one sentence each."""
    if comparison.stage == "alone":
        return ("Nothing could run side by side with the base, and days cannot be told from changes.",)
    return (
        "Earlier runs only raise suspicion. The gate fails if a mean, or a single case, is proven worse side by side "
        "with the base commit.",
    )


def certainty(results: Results) -> tuple[str, ...]:
    """Return how sure the findings are; empty if nothing was compared."""
    comparison = results.comparison
    if comparison is None:
        return ()
    return tuple(filter(None, (*comparison.sentences, comparison.improvement)))


_EFFECTS = {
    "unproven": "unproven: it cannot be compared",
    "base": "the base's version decides until this is merged",
    "paired": "compared under its new name",
    "absolute": "decided by its own result",
    "listed": "listed only",
}
_WORKFLOW = "cannot be enforced from inside the run; review it"
_RULES = "unproven: the change could choose its own"
_AGENT = "the agent of the change is evaluated"
_NOT_SELECTED = "this run selects neither name"
_KINDS = {
    "metric": "metric",
    "agent": "agent:",
    "setting": "setting",
    "workflow": "workflow",
    "rules": "suites and rules of the base commit",
}
_OF_CASES = {"removed": "removed ", "renamed": "renamed ", "edited": "edited ", "new": "new ", "case": ""}
_NAMES = 2
_LOOSENED, _CHANGED = "🔽", "✏️"
_ICONS = {"removed": "➖", "new": "➕", "workflow": "⚠️", "rules": "⚠️"}


@dataclass(frozen=True)
class IntegrityRow:
    """One difference.

    Attributes:
        strong: whether readers must look at it: nothing else will.
    """

    icon: str
    what: str
    before: str
    after: str
    effect: str
    strong: bool = False

    def __str__(self) -> str:
        change = "" if self.before == self.after else f": {self.before} → {self.after}"
        return f"{self.what}{change} ({self.effect})"


def integrity_rows(run: Run) -> Iterator[IntegrityRow]:
    """Yield the differences, first those that nothing in the run can check or that make it unproven."""
    ordered = sorted(
        run.integrity, key=lambda item: (item.kind != "workflow", item.effect != "unproven", not item.loosens)
    )
    groups: dict[object, list[Difference]] = {}
    for place, item in enumerate(ordered):
        groups.setdefault(_alike(item) if item.case and item.kind in _OF_CASES else place, []).append(item)
    paths = {item.case.partition("::")[0] if "::" in item.case else "" for item in ordered if item.case}
    for item, *others in groups.values():
        yield IntegrityRow(
            icon=_LOOSENED if item.loosens else _ICONS.get(item.kind, _CHANGED),
            what=_what((item, *others), has_one_suite=len(paths) == 1),
            before=NOTHING if item.before is None else item.before,
            after=NOTHING if item.after is None else item.after,
            effect=_effect(item),
            strong=item.kind == "workflow",
        )


def rules_matter(run: Run) -> bool:
    """Return whether somebody must look: a difference is unproven, loosens the rules, or cannot be enforced."""
    return any(
        item.accepted_by is None and (item.loosens or item.effect == "unproven" or item.kind == "workflow")
        for item in run.integrity
    )


def _alike(item: Difference) -> object:
    """Return what the differences of several cases have in common if one row tells them."""
    return item.kind, item.metric, item.setting, item.before, item.after, item.loosens, _effect(item)


def _what(items: Sequence[Difference], *, has_one_suite: bool) -> str:
    item = items[0]
    names = [name for each in items if (name := _name(each.case or "", has_one_suite=has_one_suite))]
    listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else "")
    of = listed or (count(item.cases, "case") if item.cases else "")
    asked = f"{item.setting} of {item.metric}" if item.setting and item.metric else item.setting or item.metric or ""
    if item.kind not in _OF_CASES:
        start = "" if item.setting and item.metric else f"{_KINDS[item.kind]} "
        return f"{start}{asked}{f' in {of}' if of and asked else of}".strip()
    start = _OF_CASES[item.kind]
    if not names:
        number, _, noun = of.partition(" ")
        return f"{number} {start}{noun}".strip() if of else f"{start}case"
    cases = f"{start}case {listed}" if len(names) == 1 else f"{len(names):,} {start}cases: {listed}"
    return f"{asked} of {cases}" if asked else cases


def _name(id_: str, *, has_one_suite: bool) -> str:
    """Return how to call a case: its name alone if all are in one suite."""
    return id_.partition("::")[2] or id_ if has_one_suite else id_


def _effect(item: Difference) -> str:
    if item.accepted_by is not None:
        by = f" by {item.accepted_by.author}" if item.accepted_by.author else ""
        return f"accepted{by}: {item.accepted_by.reason}"
    own = {"workflow": _WORKFLOW, "agent": _AGENT, "renamed": _NOT_SELECTED}.get(item.kind)
    text = own if own is not None and item.effect == "listed" else _EFFECTS[item.effect]
    if item.kind == "rules" and item.effect == "unproven":
        text = _RULES
    return f"looser; {text}" if item.loosens else text
