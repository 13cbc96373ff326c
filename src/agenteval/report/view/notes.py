"""Notes: on the baseline, on how certain the result is, and on changed rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agenteval.compare.phrases import count as count_of
from agenteval.compare.phrases import points
from agenteval.report.view.cases import fallen_metrics
from agenteval.report.view.causes import Cause, proofs_by_case
from agenteval.report.view.comparison import base_name
from agenteval.report.view.view import NOTHING, cached_per_run, count
from agenteval.results.comparison import CaseProof, ComparedMetric, Comparison, FailedOf
from agenteval.results.model import Difference, Results, Run

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_METRICS = 3


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
    amount = results.comparison.policy.get("baseline_runs") if results.comparison else None
    return amount if isinstance(amount, int) else None


@cached_per_run
def _iteration_counts(results: Results) -> frozenset[int]:
    counts = {case.planned for suite in results.suites for case in suite.cases if case.iterations}
    return frozenset(counts)


def _unneeded(results: Results) -> str:
    """Return how many iterations a staged run left out."""
    cases = [case for suite in results.suites for case in suite.cases]
    unneeded, planned = sum(case.unneeded for case in cases), sum(case.planned for case in cases)
    return f" ({unneeded:,} of {planned:,} were not needed)" if unneeded else ""


def smallest_drops(comparison: Comparison) -> str:
    """Return the smallest drop of each gating metric that is detected with a probability of 80 %."""
    found = [
        (metric.detectable_drop, metric.id)
        for metric in comparison.metrics
        if metric.gating and metric.detectable_drop is not None
    ]
    if not found:
        return ""
    if len({round(1000 * drop) for drop, _ in found}) == 1:
        return f"a drop of {points(found[0][0])} would be detected"
    named = [f"{points(drop)} in {name}" for drop, name in sorted(found)[:_METRICS]]
    more = f", and {len(found) - _METRICS} more metrics" if len(found) > _METRICS else ""
    return f"a drop of {', '.join(named)}{more} would be detected"


def gate_needs(comparison: Comparison) -> tuple[str, ...]:
    """Return the conditions under which a comparison fails the gate, one sentence each."""
    policy = comparison.policy
    match policy.get("name"):
        case "statistics":
            return tuple(_statistics(policy))
        case "any-flip":
            drop = f"a metric's mean drops by more than {_points(policy, 'tolerance')}"
            return (f"The gate fails if any case that passed now fails, or if {drop}.",)
        case "mean-drop":
            return (f"The gate fails if a metric's mean drops by more than {_points(policy, 'tolerance')}.",)
        case "threshold":
            return (f"The gate checks only the share of passed cases: {policy.get('reason')}.",)
    return ()


def _statistics(policy: Mapping[str, Any]) -> Iterator[str]:
    match policy.get("confirm"):
        case "off":
            yield "Nothing ran again, so a suspected regression is unproven unless the results alone prove it."
        case "rerun":
            yield (
                "The gate fails if a drop of a metric's mean, or of a single case, shows again in a second run. "
                "It was compared with earlier runs, so drift cannot be told from regression."
            )
        case _:
            yield (
                "Earlier runs only raise suspicion. The gate fails if a metric's mean, or a single case, is proven "
                "worse side by side with the base commit."
            )


def _points(policy: Mapping[str, Any], name: str) -> str:
    value = policy.get(name)
    return points(value) if isinstance(value, int | float) else "the tolerance"


_COMMIT = 7
_MOST_FINDINGS = 3
_LEAST_COST = 0.005  # dollars


def certainty(results: Results, causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return how sure the findings are; empty if nothing was found or compared.

    A proof is told by its least certain case. Only what the gate's tests found is said: p, limit and interval.
    """
    comparison = results.comparison
    if comparison is None or comparison.stage is None:
        return ()
    proofs = proofs_by_case(comparison)
    broke = [found.id for cause in causes if cause.kind == "broke" for found in cause.cases]
    names = {found.id: found.name for cause in causes for found in cause.cases}
    proven = [proofs[id_] for id_ in broke if id_ in proofs and proofs[id_].proven]
    told = [*_of_cases(proven, names, comparison)]
    told += [_of_metric(metric, comparison) for metric in fallen_metrics(comparison)[:_MOST_FINDINGS]]
    if not told and comparison.verdict == "improved":
        risen = [metric for metric in comparison.metrics if metric.gating and metric.verdict == "improved"]
        return tuple(_of_metric(metric, comparison) for metric in risen[:_MOST_FINDINGS])
    if not told and (comparison.unproven or any(cause.kind == "maybe" for cause in causes)):
        return tuple(_not_proven(comparison, results))
    if not told:
        return tuple(_cleared(comparison))
    if comparison.stage == "earlier-runs":
        told.append("It was compared with earlier runs, so drift cannot be told from regression.")
    return tuple(told)


def requested_proof(results: Results) -> tuple[str, ...]:
    """Return the result of a request to prove an improvement, as one sentence; empty without a request."""
    requested = results.comparison.requested if results.comparison is not None else None
    return () if requested is None else (f"{requested.reason[:1].upper()}{requested.reason[1:]}.",)


def _of_cases(proofs: Sequence[CaseProof], names: dict[str, str], comparison: Comparison) -> Iterator[str]:
    if not proofs:
        return
    alike = len({(str(proof.current), str(proof.control), proof.q, proof.limit) for proof in proofs}) == 1
    weakest = max(proofs, key=_doubt)
    if len(proofs) == 1:
        who = "It"
    elif alike:
        who = "Each of them"
    else:
        who = f"The least certain, {names.get(weakest.id, weakest.id)},"
    yield f"{who} {_figures(weakest, comparison)}.{_chance(weakest.q, weakest.limit, comparison)}"


def _doubt(proof: CaseProof) -> tuple[float, float]:
    rate = proof.current.failed / proof.current.of if proof.current.of else 0.0
    return (proof.q or 0.0, -rate)


def _figures(proof: CaseProof, comparison: Comparison) -> str:
    now, before = proof.current, proof.control
    if not now.of:
        return f"failed {_of(proof.first)} iterations here, {_of(proof.pool)} in the earlier runs"
    if not before.of:
        return f"failed {_of(now)} re-runs here, {_of(proof.pool)} iterations in the earlier runs"
    return f"failed {_of(now)} re-runs here and {_of(before)} on {_side(comparison)} beside it"


def _of(failures: FailedOf) -> str:
    return f"{failures.failed} of {failures.of}"


def _side(comparison: Comparison) -> str:
    base = base_name(comparison)
    return f"{base} ({comparison.control[:_COMMIT]})" if comparison.control else base


def _of_metric(metric: ComparedMetric, comparison: Comparison) -> str:
    by = points(metric.difference)
    if metric.interval is not None:
        least, most = sorted(map(abs, metric.interval))
        start = points(least).removesuffix(" points").removesuffix(" point")
        # An agent that always answers the same leaves no range.
        by = points(most) if points(least) == points(most) else f"{start} to {points(most)}"
    where = (
        f" side by side with {_side(comparison)} ({count_of(metric.runs_a_side, 'run')} a side)"
        if metric.runs_a_side
        else ""
    )
    moved = "rose" if metric.verdict == "improved" else "fell"
    return f"{metric.id} {moved} by {by}{where}.{_chance(metric.p, metric.limit, comparison)}"


def _chance(p: float | None, limit: float | None, comparison: Comparison) -> str:
    if p is not None and limit is not None:
        return (
            f" Without a change, that has a probability of {_share(p, limit)}; at most {_percent(limit)} was needed."
        )
    return " Both sides repeat exactly, so one difference is a proof." if comparison.stage == "repeats" else ""


def _share(p: float, limit: float) -> str:
    """Return a probability with as many digits as the comparison with its limit needs."""
    if p < 0.0001 <= limit:
        return "less than 0.01 %"
    digits = next(number for number in range(2, 18) if (float(f"{p:.{number}g}") <= limit) is (p <= limit))
    return _percent(float(f"{p:.{digits}g}"))


def _percent(value: float) -> str:
    return f"{100 * value:.6g} %"


def _cleared(comparison: Comparison) -> Iterator[str]:
    """Yield the suspicions that further runs cleared."""
    for metric in comparison.metrics:
        if metric.suspicious and metric.verdict == "unchanged":
            yield f"{metric.reason[:1].upper()}{metric.reason[1:]}."


def _not_proven(comparison: Comparison, results: Results) -> Iterator[str]:
    """Yield why nothing is proven, in the words of the comparison, and what would tell more."""
    details = [text for point in comparison.unproven for text in point.details or (point.text,)]
    told = details or comparison.findings
    if told:
        yield f"Not very: {'; '.join(told[:_MOST_FINDINGS])}."
    metric = next((metric for metric in comparison.metrics if metric.gating and metric.finer is not None), None)
    if metric is None or metric.finer is None:
        return
    cost = results.summary.usage.cost_usd * (metric.finer.iterations / (metric.iterations or 1) - 1)
    price = f", for about ${cost:,.2f} more in each run" if cost >= _LEAST_COST else ""
    yield (
        f"About {count_of(metric.finer.iterations, 'iteration')} of each case would exclude a drop of more than "
        f"{points(metric.finer.bound)} in {metric.id}{price}."
    )


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


@dataclass(frozen=True, slots=True)
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
