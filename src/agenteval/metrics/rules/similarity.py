"""Rules that compare two texts of a record, by characters or by meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.rules.checks import RuleScore, rule_text
from agenteval.metrics.similarity import similarity as similarity_of_meaning
from agenteval.results.record.fields import Record, value_at

# Characters; longer texts are truncated, because the time of a comparison grows quadratically.
LONGEST_COMPARED = 10_000
_ROUNDING = 1e-9


def similarity(
    record: Record,
    *,
    expected_path: str,
    target: str = "output",
    method: str = "difflib",
    threshold: float | None = None,
) -> RuleScore:
    """Return the similarity of the texts of two fields, by their characters.

    ``difflib`` is ``difflib.SequenceMatcher.ratio`` (Ratcliff and Obershelp); ``levenshtein`` is 1 minus the edit
    distance per character of the longer text.
    """
    expected, actual, problem = _compared(record, expected_path, target)
    if problem is not None:
        return problem
    measured = _METHODS[method](expected[:LONGEST_COMPARED], actual[:LONGEST_COMPARED])
    cut = max(len(expected), len(actual)) > LONGEST_COMPARED
    note = f" (of the first {LONGEST_COMPARED} characters)" if cut else ""
    return _similarity_score(measured, threshold, f"{method} similarity{note}", target, expected_path)


async def meaning(
    record: Record,
    resources: Resources,
    *,
    expected_path: str,
    target: str = "output",
    threshold: float | None = None,
) -> RuleScore:
    """Return the similarity in meaning of the texts of two fields: the cosine of their embeddings, 0..1.

    Raises:
        LlmError, BudgetSpentError: the model cannot be called.
    """
    expected, actual, problem = _compared(record, expected_path, target)
    if problem is not None:
        return problem
    measured = await similarity_of_meaning(expected, actual, resources, None)
    return _similarity_score(measured, threshold, "embedding similarity", target, expected_path)


def _compared(record: Record, expected_path: str, target: str) -> tuple[str, str, RuleScore | None]:
    """Return the expected and the actual text, or the score if one of them is missing."""
    expected, actual = rule_text(value_at(record, expected_path)), rule_text(value_at(record, target))
    if not expected:
        return expected, actual, RuleScore(0.0, f"the trace contains no {expected_path} to compare with")
    if not actual:
        return expected, actual, RuleScore(0.0, f"{target} is empty")
    return expected, actual, None


def _similarity_score(
    measured: float, threshold: float | None, what: str, target: str, expected_path: str
) -> RuleScore:
    if threshold is not None and measured < threshold - _ROUNDING:
        missed = f"{what} of {target} to {expected_path} is {measured:.3f}, below {threshold:g}"
        return RuleScore(measured, missed)
    return RuleScore(measured)


def _difflib(expected: str, actual: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, expected, actual).ratio()


def _levenshtein(expected: str, actual: str) -> float:
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(expected, actual))


_METHODS: Mapping[str, Callable[[str, str], float]] = {"difflib": _difflib, "levenshtein": _levenshtein}
