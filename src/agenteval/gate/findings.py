"""Finds what the gate decides on, the conditions that are not met, and the words of its headlines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal

from agenteval.core.records import dataclass
from agenteval.gate.failures import Counts, Failures, compared, of_cases, some
from agenteval.gate.words import enumeration, percent, share
from agenteval.results.case import Criterion
from agenteval.results.comparison import ComparedMetric, Comparison
from agenteval.results.history import coverage_notes, is_for_comparison, nothing_decided, unmeasured
from agenteval.results.model import Results
from agenteval.results.verdict import Condition, MendedBy, PointKind, Unproven, criterion_texts

_BRANCH = "refs/heads/"


def cases(amount: int) -> str:
    """Return ``1 case`` or ``2 cases``."""
    return "1 case" if amount == 1 else f"{amount:,} cases"


def failed(counts: Counts, found: Failures | None) -> str:
    """Return how many failed cases fail the gate; empty if none does."""
    amount = _counting(counts, found)
    return f"{of_cases(amount, counts.cases)} failed" if amount else ""


def _counting(counts: Counts, found: Failures | None) -> int:
    return counts.failed if found is None else len(found.counting)


def listed(results: Results, counts: Counts, found: Failures | None) -> list[str]:
    """Return the failing cases that do not fail the gate, one sentence for each reason."""
    if found is None:
        return []
    texts = []
    if found.known:
        texts.append(f"{_fail(len(found.known), counts)} as {_does(found.known)} {_where(results)}")
    if found.judged:
        texts.append(f"{cases(len(found.judged))} failed in the first run, and nothing is proven")
    if found.accepted:
        texts.append(f"{_fail(len(found.accepted), counts)}, which was accepted ({some(found.accepted)})")
    return texts


def broken(counts: Counts) -> list[str]:
    """Return the number of cases that could not be run, if there are any."""
    return [f"{of_cases(counts.errors, counts.cases)} could not be run"] if counts.errors else []


def passed_headline(
    counts: Counts, found: Failures | None, tolerated: Sequence[str], notes: Sequence[str], fail_on: Sequence[str]
) -> str:
    """Return the headline of a passed gate: what passed, what did not, and why the gate passes all the same."""
    fail = _fail(_counting(counts, found), counts)
    allowed = [fail if text == failed(counts, found) else text for text in tolerated]
    allowed += broken(counts)
    parts = [counts.score] if counts.passed else []
    parts += [*allowed, *notes]
    if counts.quarantined:
        parts.append(f"{cases(counts.quarantined)} in quarantine did not pass")
    if counts.skipped:
        parts.append(f"{cases(counts.skipped)} skipped")
    if allowed and found is None and "regressions" in fail_on:
        parts.append("no baseline, so nothing was compared")
    if allowed:
        parts.append(f"only {enumeration(fail_on)} fail this gate" if fail_on else "nothing fails this gate")
    return "; ".join(parts)


def _fail(amount: int, counts: Counts) -> str:
    return f"{of_cases(amount, counts.cases)} {'fails' if amount == 1 else 'fail'}"


def _does(names: Sequence[str]) -> str:
    return "it does" if len(names) == 1 else "they do"


def _where(results: Results) -> str:
    ref = (results.comparison.baseline.ref if results.comparison else None) or ""
    return f"on {ref.removeprefix(_BRANCH)}" if ref.startswith(_BRANCH) else "in the baseline"


def with_coverage(headline: str, results: Results) -> str:
    """Return a headline with what the run covered, if that is not everything."""
    return "; ".join([headline, *run_notes(results)])


def run_notes(results: Results) -> tuple[str, ...]:
    """Return what the run selected, judged and evaluated, if that is not everything."""
    covered = results.run.coverage
    selected = (covered.selection_note,) if covered and covered.selection_note else ()
    return (*selected, *coverage_notes(results))


#: The point of a run that needs a baseline and has none. The reason is a warning of the run.
UNCOMPARED: Final = Unproven(
    what="baseline",
    text="there is no baseline to compare with, and on_missing_baseline is fail",
    mended_by="outside",
)


@dataclass(frozen=True)
class Finding:
    """A reason to fail, of a kind that ``fail_on`` may contain, or a warning; ``details`` are further sentences.

    ``conditions`` are what the gate does not meet, without the words of the rule that they all have in common.
    """

    kind: Literal["failures", "regressions", "suspicious"]
    text: str
    details: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


def failures_and_regressions(results: Results, counts: Counts, failing: Failures | None) -> list[Finding]:
    """Return every failure and regression, the most important first."""
    comparison = results.comparison
    found = list(_regressions(comparison)) if comparison else []
    if text := failed(counts, failing):
        required = failing.required if failing else ()
        details = (f"must pass (must_pass or strict): {some(required)}",) if required else ()
        found.append(Finding("failures", text, details, tuple(_failures(counts, failing, broke=bool(found)))))
    unmet = [_unmet(criterion) for suite in results.suites for criterion in suite.criteria if criterion.met is False]
    if unmet:
        text = f"criterion not met: {', '.join(unmet)}"
        found.append(Finding("failures", text, conditions=(Condition(found=text),)))
    return found


def _unmet(criterion: Criterion) -> str:
    if criterion.value is None or criterion.threshold is None:
        return criterion.name
    value, limit = criterion_texts(criterion)
    return f"{criterion.name} ({value}, needed {limit})"


def _regressions(comparison: Comparison) -> Iterator[Finding]:
    if comparison.state == "proven":
        details = tuple(comparison.sentences)
        yield Finding("regressions", comparison.headline, details, tuple(_worse(comparison)))
    if comparison.state == "suspicious":
        text = f"suspicious: {comparison.headline}"
        yield Finding("suspicious", text, tuple(comparison.sentences), (Condition(found=text),))


def _failures(counts: Counts, failing: Failures | None, *, broke: bool) -> Iterator[Condition]:
    if failing is None:
        yield Condition(found=failed(counts, None))
        return
    if failing.required:
        rule = "must_pass or strict"
        yield Condition(found=f"{of_cases(len(failing.required), counts.cases)} failed", rule=rule)
    also = len(failing.counting) - len(failing.required) - (len(failing.broke) if broke else 0)
    if also:
        more = "more " if broke and failing.broke else ""
        yield Condition(found=f"{also} {more}of {cases(counts.cases)} failed")


def _worse(comparison: Comparison) -> Iterator[Condition]:
    broke = {proof.case for proof in comparison.worse if proof.case is not None}
    if broke:
        yield Condition(found=f"{of_cases(len(broke), max(compared(comparison), len(broke)))} broke")
    for proof in comparison.worse:
        if proof.case is None:
            chance, limit = share(proof.p, proof.limit), percent(proof.limit)
            rule = f"chance alone: {chance}, limit {limit}"
            metric = next((metric for metric in comparison.metrics if metric.id == proof.metric), None)
            yield Condition(found=_fell(proof.metric, metric), rule=rule)
    if not comparison.worse:
        yield Condition(found=comparison.headline)


def _fell(name: str, metric: ComparedMetric | None) -> str:
    if metric is None:
        return "more answers are lost"
    if metric.allowed is not None:
        return f"{name} rose by {100 * metric.difference:.0f} %, {100 * metric.allowed:.0f} % is allowed"
    return f"the mean of {name} fell from {metric.baseline:.2f} to {metric.current:.2f}"


def _unchecked(results: Results, mended_by: MendedBy) -> Iterator[Unproven]:
    unknown = [criterion.name for suite in results.suites for criterion in suite.criteria if criterion.met is None]
    if unknown:
        yield Unproven(what="criterion", text=f"criterion unchecked: {', '.join(unknown)}", mended_by=mended_by)
    everywhere, _ = _unmeasured_metrics(results)
    # That nothing was checked at all is another point.
    if everywhere and not _is_selection(results) and (results.summary.passed or results.summary.failed):
        text = f"metric unchecked: {', '.join(everywhere)} (unmeasured in every reply)"
        yield Unproven(what="metric", text=text, mended_by=mended_by)


def unmeasured_notes(results: Results) -> Iterator[str]:
    """Yield the metrics that measured nothing, and may be for other suites or for cases that were not selected."""
    everywhere, in_suites = _unmeasured_metrics(results)
    if everywhere and _is_selection(results):
        yield f"metric unchecked: {', '.join(everywhere)} (unmeasured in every reply)"
    if in_suites:
        yield f"metric unchecked: {', '.join(in_suites)} (unmeasured in every reply of the suite)"


def _is_selection(results: Results) -> bool:
    return results.run.coverage is not None and bool(results.run.coverage.selection_note)


def _unmeasured_metrics(results: Results) -> tuple[list[str], list[str]]:
    known = results.summary.metrics
    found = {(name, suite.path): name in known for suite in results.suites for name in suite.unmeasured}
    everywhere = dict.fromkeys(name for (name, _), is_known in found.items() if not is_known)
    return list(everywhere), [f"{name} of {path}" for (name, path), is_known in found.items() if is_known]


def unproven_points(
    results: Results, counts: Counts, max_error_rate: float, out: Collection[str]
) -> tuple[Unproven, ...]:
    """Return what counts and was not evaluated, compared or confirmed, the most important first."""
    missing = unmeasured(results, max_error_rate, out)
    limits = list(_limits(results, is_named=any(item.what == "budget" for item in missing)))
    compared = results.comparison.unproven if results.comparison else []
    is_outside = bool(counts.errors or limits) or any(item.mended_by == "outside" for item in missing)
    nothing = _nothing_checked(results, counts, "outside" if is_outside else "change") or _nothing_decided(results)
    # Without judgements, criteria have no data.
    is_cut_off = limits or any(item.what in {"metric", "budget"} and item.mended_by == "outside" for item in missing)
    return (*limits, *nothing, *missing, *_unchecked(results, "outside" if is_cut_off else "change"), *compared)


def _limits(results: Results, *, is_named: bool) -> Iterator[Unproven]:
    covered = results.run.coverage
    if covered is None:
        return
    if covered.ended_by == "time":
        unfinished = of_cases(covered.selected - covered.finished, covered.selected)
        text = f"the time limit was reached: {unfinished} did not finish"
        yield Unproven(what="time", text=text, mended_by="outside")
    elif covered.ended_by == "budget" and not is_named:
        text = "the budget of model calls was used up before the run ended"
        yield Unproven(what="budget", text=text, mended_by="outside")


def _nothing_decided(results: Results) -> tuple[Unproven, ...]:
    if not nothing_decided(results) or is_for_comparison(results):
        return ()
    text = "nothing was decided: no metric has a threshold above 0 or gives a verdict, and no baseline has its scores"
    return (Unproven(what="nothing", text=text, mended_by="change"),)


def _nothing_checked(results: Results, counts: Counts, mended_by: MendedBy) -> tuple[Unproven, ...]:
    if counts.passed + counts.failed:
        return ()
    if counts.cases:
        why = "no case could be run" if counts.errors else "every case was skipped"
    else:
        why = "every case is in quarantine" if results.summary.cases else "there is no case"
    judging = results.summary.judging
    what = "decided" if judging is not None and judging.not_judged and not counts.errors else "checked"
    return (Unproven(what="nothing", text=f"nothing was {what}: {why}", mended_by=mended_by),)


# What fails the gate whatever `fail-on` contains; the rule for it.
_ALWAYS: dict[PointKind, str] = {"baseline": "on_missing_baseline: fail", "nothing": ""}


@dataclass(frozen=True)
class Unmet:
    """The conditions that a run does not meet."""

    findings: Sequence[Finding]
    broken: Sequence[str]
    missing: Sequence[Unproven]
    max_error_rate: float
    fail_on: Collection[str]

    def failures(self) -> Iterator[Condition]:
        """Yield what failed, broke or fell."""
        for found in self.findings:
            for condition in found.conditions:
                rules = (condition.rule, f"fail-on: {found.kind}")
                yield condition.model_copy(update={"rule": "; ".join(filter(None, rules))})

    def errors(self, *, counts: bool) -> Iterator[Condition]:
        """Yield the cases that could not be run."""
        rule = "fail-on: errors" if counts else f"max_error_rate: {self.max_error_rate:g}"
        for text in self.broken:
            yield Condition(found=text, rule=rule)

    def points(self) -> Iterator[Condition]:
        """Yield what is not proven, each with its reasons."""
        usual = "fail-on: unproven" if "unproven" in self.fail_on else "fail-on does not contain unproven"
        for point in self.missing:
            found = f"{point.text}: {' '.join(point.details)}" if point.details else point.text
            yield Condition(found=found, rule=_ALWAYS.get(point.what, usual))
