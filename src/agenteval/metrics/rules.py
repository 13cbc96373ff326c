"""Checks the record of an answer against rules; the score is the mean of the rules."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from agenteval.core.records import dataclass, field
from agenteval.core.text import composed, text_of
from agenteval.metrics.base import MetricError, Observation, Outcome, record_of, shown
from agenteval.metrics.resources import Resources
from agenteval.metrics.schema import has_reference_texts
from agenteval.metrics.similarity import similarity as similarity_of_meaning
from agenteval.metrics.text import PatternGivenUpError, found
from agenteval.results.record import Record, reported_error, reported_success, token_usage, value_at
from agenteval.results.rollup import UNMEASURED
from agenteval.suite.evaluation import why_nothing
from agenteval.suite.model import MetricConfig

# The flags in a suite, and their letters in a pattern.
FLAGS = {"IGNORECASE": "i", "MULTILINE": "m", "DOTALL": "s"}


@dataclass(frozen=True)
class RuleScore:
    """The score of one rule, 0..1, and the reason if it is not 1.

    ``unmeasured``: the rule scored 1 because the record has no value that it could measure.
    """

    score: float
    reason: str | None = None
    unmeasured: bool = False


def rule_text(value: Any) -> str:
    """Return a value as text; objects and lists in Python's notation, as in FluxLoop's rules."""
    return "" if value is None else composed(str(value))


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
    """Return 1 if the pattern matches anywhere in the field (``re.search``); 0 also if the search times out."""
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
    fold = composed if case_sensitive else lambda text: composed(text).casefold()
    text = fold(rule_text(value_at(record, target)))
    return [keyword for keyword in keywords if fold(keyword) in text]


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(shown, texts))


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
    """Return the similarity in meaning of the texts of two fields: the cosine of their embeddings, 0..1."""
    expected, actual, problem = _compared(record, expected_path, target)
    if problem is not None:
        return problem
    measured = await similarity_of_meaning(expected, actual, resources, None)
    return _similarity_score(measured, threshold, "embedding similarity", target, expected_path)


def _compared(record: Record, expected_path: str, target: str) -> tuple[str, str, RuleScore | None]:
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

_EMBEDDING = "embedding"

#: Functions of the checks; similarity by embeddings is ``meaning``, which is asynchronous.
RULES: Mapping[str, Callable[..., RuleScore]] = {
    check.__name__: check
    for check in (
        output_not_empty,
        success,
        latency_under,
        token_usage_under,
        contains,
        not_contains,
        matches_regex,
        similarity,
    )
}


@dataclass(frozen=True)
class RuleBased:
    """The mean of several rules; the suite's aggregate decides the verdict.

    Args:
        rules: the rules, each with the name of its check under ``check``, and its parameters.
    """

    rules: Sequence[Mapping[str, Any]]
    resources: Resources
    _checking_nothing: frozenset[int] = field(init=False, repr=False)
    requires: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        nothing = frozenset(index for index, rule in enumerate(self.rules) if why_nothing(rule))
        object.__setattr__(self, "_checking_nothing", nothing)
        if any(map(needs_model, self.rules)):
            self.resources.embeddings.check(None)

    @property
    def has_patterns(self) -> bool:
        """Whether the metric searches for a pattern of the suite, which may take long."""
        return any(rule["check"] == matches_regex.__name__ for rule in self.rules)

    def measure(self, observation: Observation) -> Outcome | Awaitable[Outcome]:
        """Check every rule; asynchronous only with similarity by embeddings."""
        record = record_of(observation)
        if any(map(needs_model, self.rules)):
            return self._measure_with_model(record)
        return self._outcome([_check(record, rule) for rule in self.rules])

    async def _measure_with_model(self, record: Record) -> Outcome:
        scores = [
            await meaning(record, self.resources, **_parameters(rule, "method"))
            if needs_model(rule)
            else await asyncio.to_thread(_check, record, rule)
            for rule in self.rules
        ]
        return self._outcome(scores)

    def _outcome(self, scores: Sequence[RuleScore]) -> Outcome:
        named = [(rule["check"], score) for rule, score in zip(self.rules, scores, strict=True)]
        missed = [f"{check}: {score.reason}" for check, score in named if score.reason]
        unmeasured = [
            f"rule {index + 1}: {check}"
            for index, (check, score) in enumerate(named)
            if score.unmeasured or index in self._checking_nothing
        ]
        found = {"rules": [{"check": check, "score": score.score, "reason": score.reason} for check, score in named]}
        return Outcome(
            math.fsum(score.score for score in scores) / len(scores),
            reason="; ".join(missed) or None,
            details={**found, UNMEASURED: unmeasured} if unmeasured else found,
        )


def _check(record: Record, rule: Mapping[str, Any]) -> RuleScore:
    return RULES[rule["check"]](record, **_parameters(rule))


def _parameters(rule: Mapping[str, Any], *without: str) -> dict[str, Any]:
    return {name: value for name, value in rule.items() if name not in {"check", *without}}


def needs_model(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule compares texts by their embeddings."""
    return rule["check"] == "similarity" and rule.get("method") == _EMBEDDING


# All other types ask a model, reach a service, or run user code. `schema` and `rules` depend on their options.
_ALWAYS: Final = frozenset(
    {
        *("equality", "numeric", "f1_score", "bleu", "rouge", "meteor"),
        *("text_match", "tools", "tool_calls", "latency", "tokens"),
    }
)
# The field of a reply that results do not store.
_NOT_STORED: Final = "metadata"


def scores_stored_answers(config: MetricConfig) -> bool:
    """Return whether a metric needs only a stored answer: no model, no service and no user code."""
    if config.metric is not None:
        return False
    if config.type == "schema":
        return not has_reference_texts(config.options["schema"])
    if config.type == "rules":
        return not any(needs_model(rule) or _reads_metadata(rule) for rule in config.options["rules"])
    return config.type in _ALWAYS


def _reads_metadata(rule: Mapping[str, Any]) -> bool:
    paths = (rule.get(name) for name in ("target", "expected_path"))
    return any(_NOT_STORED in path for path in paths if isinstance(path, str))
