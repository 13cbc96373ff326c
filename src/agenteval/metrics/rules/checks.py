"""Rules that need only the record of an answer; their parameters have the names that suites use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.core.text.json_text import text_of
from agenteval.metrics.base import MetricError
from agenteval.metrics.text.patterns import PatternGivenUpError, found
from agenteval.metrics.values import shown
from agenteval.results.record.fields import Record, reported_error, reported_success, value_at
from agenteval.results.record.token_usage import token_usage

# The flags in a suite, and their letters in a pattern.
FLAGS = {"IGNORECASE": "i", "MULTILINE": "m", "DOTALL": "s"}


@dataclass(frozen=True, slots=True)
class RuleScore:
    """The score of one rule, 0..1, and the reason if it is not 1.

    ``unmeasured``: the rule scored 1 because the record has no value that it could measure.
    """

    score: float
    reason: str | None = None
    unmeasured: bool = False


def rule_text(value: Any) -> str:
    """Return a value as text; objects and lists in Python's notation, as in FluxLoop's rules."""
    return "" if value is None else str(value)


def output_not_empty(record: Record, *, target: str = "output") -> RuleScore:
    """Return 1 unless the field is missing, blank, an empty object or an empty list."""
    value = value_at(record, target)
    if value in ({}, []) or not text_of(value).strip():
        return RuleScore(0.0, f"{target} is empty")
    return RuleScore(1.0)


def success(record: Record) -> RuleScore:
    """Return 1 if ``success``, else ``status``, reports success, and the trace contains no error."""
    said = reported_success(record)
    if said is None:
        return RuleScore(0.0, "the trace contains neither `success` nor `status`")
    if not said:
        return RuleScore(0.0, "the trace is marked as failed")
    error = reported_error(record)
    if error is not None:
        return RuleScore(0.0, f"the trace contains an error: {shown(text_of(error))}")
    return RuleScore(1.0)


def latency_under(record: Record, *, budget_ms: float) -> RuleScore:
    """Return 1 within the budget, else budget/duration."""
    duration = value_at(record, "duration_ms")
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        return RuleScore(0.0, "duration_ms is missing or not a number")
    if duration <= budget_ms:
        return RuleScore(1.0)
    return RuleScore(budget_ms / duration, f"{duration:g} ms is {duration - budget_ms:g} ms over {budget_ms:g} ms")


def token_usage_under(
    record: Record,
    *,
    max_total_tokens: float | None = None,
    max_prompt_tokens: float | None = None,
    max_completion_tokens: float | None = None,
) -> RuleScore:
    """Return 1 within all budgets, else the smallest budget/actual; counts that are not known are within budget."""
    usage = token_usage(record)
    if usage is None:
        return RuleScore(0.0, "the trace contains no token usage")
    if usage.unusable:
        return RuleScore(0.0, f"the trace contains {usage.unusable}, which is not a number of tokens")
    total = usage.total if usage.is_complete else None
    known = ((max_total_tokens, total), (max_prompt_tokens, usage.prompt), (max_completion_tokens, usage.completion))
    budgets = (
        ("total", usage.total, max_total_tokens),
        ("prompt", usage.prompt or 0.0, max_prompt_tokens),
        ("completion", usage.completion or 0.0, max_completion_tokens),
    )
    over = [
        (budget / actual, f"{actual:g} {name} tokens are {actual - budget:g} over {budget:g}")
        for name, actual, budget in budgets
        if budget is not None and actual > budget
    ]
    if not over:
        return RuleScore(1.0, unmeasured=any(budget is not None and count is None for budget, count in known))
    return RuleScore(min(score for score, _ in over), ", ".join(reason for _, reason in over))


def contains(
    record: Record, *, keywords: Sequence[str], target: str = "output", case_sensitive: bool = False
) -> RuleScore:
    """Return 1 if the field contains any of the keywords."""
    if _present(record, keywords, target, case_sensitive=case_sensitive):
        return RuleScore(1.0)
    return RuleScore(0.0, f"{target} contains none of {_listed(keywords)}")


def not_contains(
    record: Record, *, keywords: Sequence[str], target: str = "output", case_sensitive: bool = False
) -> RuleScore:
    """Return 1 if the field contains none of the keywords."""
    present = _present(record, keywords, target, case_sensitive=case_sensitive)
    return RuleScore(0.0, f"{target} contains {_listed(present)}") if present else _passed(record, target)


def matches_regex(record: Record, *, pattern: str, target: str = "output", flags: Sequence[str] = ()) -> RuleScore:
    """Return 1 if the pattern matches anywhere in the field (``re.search``); 0 also if the search times out.

    Raises:
        PatternGivenUpError: the pattern has timed out on several answers of the run.
    """
    letters = "".join(FLAGS[flag] for flag in flags)
    try:
        matches = found(f"(?{letters}){pattern}" if letters else pattern, rule_text(value_at(record, target)))
    except PatternGivenUpError:
        raise
    except MetricError as error:
        return RuleScore(0.0, str(error))
    return _passed(record, target) if matches else RuleScore(0.0, f"{target} does not match {shown(pattern)}")


def _passed(record: Record, target: str) -> RuleScore:
    """Return 1 for a field; it is unmeasured if the field is missing. Only failed answers have a field for errors."""
    is_missing = value_at(record, target) is None and "error" not in target.split(".")
    return RuleScore(1.0, unmeasured=is_missing)


def _present(record: Record, keywords: Sequence[str], target: str, *, case_sensitive: bool) -> list[str]:
    text = rule_text(value_at(record, target))
    if case_sensitive:
        return [keyword for keyword in keywords if keyword in text]
    text = text.casefold()
    return [keyword for keyword in keywords if keyword.casefold() in text]


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(shown, texts))
