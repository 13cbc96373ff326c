"""The words of the gate's headlines."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.gate_counts import Counts, of_cases
from agenteval.results.analysis.unmeasured import coverage_notes
from agenteval.results.model import Results

_BRANCH = "refs/heads/"


def cases(amount: int) -> str:
    """Return ``1 case`` or ``2 cases``."""
    return "1 case" if amount == 1 else f"{amount} cases"


def failed(counts: Counts) -> str:
    """Return the number of failed cases."""
    return f"{of_cases(counts.failed, counts.cases)} failed"


def broken(counts: Counts) -> list[str]:
    """Return the number of cases that could not be evaluated, if there are any."""
    return [f"{of_cases(counts.errors, counts.cases)} could not be evaluated"] if counts.errors else []


def passed_headline(
    results: Results, counts: Counts, tolerated: Sequence[str], warnings: Sequence[str], fail_on: Sequence[str]
) -> str:
    """Return the headline of a passed gate: what passed, what did not, and why the gate passes all the same.

    Args:
        results: the run.
        counts: its cases.
        tolerated: failures and regressions that do not fail this gate.
        warnings: what fails no gate with this policy, whatever it fails on.
        fail_on: the kinds of problems that fail it.
    """
    allowed = [_failing(results, counts) if text == failed(counts) else text for text in tolerated]
    allowed += broken(counts)
    parts = [counts.score] if counts.passed else []
    parts += [*allowed, *warnings]
    if counts.quarantined:
        parts.append(f"{cases(counts.quarantined)} in quarantine did not pass")
    if counts.skipped:
        parts.append(f"{cases(counts.skipped)} skipped")
    if allowed and results.comparison is None and "regressions" in fail_on:
        parts.append("no baseline, so nothing was compared")
    if allowed:
        parts.append(f"only {_enumeration(fail_on)} fail this gate" if fail_on else "nothing fails this gate")
    return "; ".join(parts)


def _enumeration(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _failing(results: Results, counts: Counts) -> str:
    """Return how many cases fail, and how many of them fail in the baseline too."""
    one = counts.failed == 1
    text = f"{of_cases(counts.failed, counts.cases)} {'fails' if one else 'fail'}"
    comparison = results.comparison
    if comparison is None:
        return text
    before = sum(
        case.status_before == case.status_after == "failed" and "quarantined" not in case.notes
        for case in comparison.cases
    )
    ref = comparison.baseline.ref or ""
    where = f"on {ref.removeprefix(_BRANCH)}" if ref.startswith(_BRANCH) else "in the baseline"
    if before >= counts.failed:
        return f"{text} as {'it does' if one else 'they do'} {where}"
    return f"{text}, {before} of them as {where}" if before else text


def with_coverage(headline: str, results: Results) -> str:
    """Return a headline with what the run covered, if that is not everything."""
    return "; ".join([headline, *run_notes(results)])


def run_notes(results: Results) -> tuple[str, ...]:
    """Return what the run selected, judged and evaluated, if that is not everything."""
    covered = results.run.coverage
    selected = (covered.selection_note,) if covered and covered.selection_note else ()
    return (*selected, *coverage_notes(results))
