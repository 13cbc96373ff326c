"""Checks the record of an answer against rules; the score is the mean of their scores."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agenteval.metrics.base import Observation, Outcome, record_of
from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.rules.checks import (
    RuleScore,
    contains,
    latency_under,
    matches_regex,
    not_contains,
    output_not_empty,
    success,
    token_usage_under,
)
from agenteval.metrics.rules.similarity import meaning, similarity
from agenteval.results.metric_use import UNMEASURED
from agenteval.results.record.fields import Record
from agenteval.suite.rules import why_nothing

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


@dataclass(frozen=True, slots=True)
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
