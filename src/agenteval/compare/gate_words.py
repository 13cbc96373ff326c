"""The words of the gate's headlines."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.gate_counts import Counts, of_cases, some
from agenteval.compare.gate_failures import Failures
from agenteval.results.analysis.formatting import coverage_notes
from agenteval.results.model import Results

_BRANCH = "refs/heads/"


def cases(amount: int) -> str:
    """Return ``1 case`` or ``2 cases``."""
    return "1 case" if amount == 1 else f"{amount:,} cases"


def failed(counts: Counts, found: Failures | None) -> str:
    """Return how many failed cases fail the gate; empty if none does.

    Args:
        found: its failing cases; ``None`` if each of them fails the gate.
    """
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
    if found.not_proven:
        texts.append(f"{cases(len(found.not_proven))} failed in the first run, without a proven regression")
    if found.accepted:
        texts.append(f"{_fail(len(found.accepted), counts)}, which was accepted ({some(found.accepted)})")
    return texts


def broken(counts: Counts) -> list[str]:
    """Return the number of cases that could not be run, if there are any."""
    return [f"{of_cases(counts.errors, counts.cases)} could not be run"] if counts.errors else []


def passed_headline(
    counts: Counts, found: Failures | None, tolerated: Sequence[str], notes: Sequence[str], fail_on: Sequence[str]
) -> str:
    """Return the headline of a passed gate: what passed, what did not, and why the gate passes all the same.

    Args:
        found: its failing cases; ``None`` without a baseline.
        tolerated: failures and regressions that do not fail this gate.
        notes: what fails no gate with this policy, whatever it fails on.
    """
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
        parts.append(f"only {_enumeration(fail_on)} fail this gate" if fail_on else "nothing fails this gate")
    return "; ".join(parts)


def _enumeration(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


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
