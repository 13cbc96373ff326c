"""Rules that check the record of an answer: the score of each rule, and the mean of all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import LlmError
from agenteval.metrics import text as patterns
from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.registry import REGISTRY, build
from agenteval.metrics.resources import Resources
from agenteval.metrics.rules import LONGEST_COMPARED, RULES, RuleBased
from agenteval.results.case import ToolCall, Usage
from agenteval.results.record import TokenUsage, token_usage
from agenteval.suite.formats.fluxloop.schema import RULES as SCHEMAS
from agenteval.suite.model import MetricConfig

NO_RESOURCES = cast(Resources, None)


def measure(trace: Mapping[str, Any], *rules: Mapping[str, Any]) -> Outcome:
    outcome = RuleBased(rules, NO_RESOURCES).measure(Observation(input="", response="", trace=trace))
    assert isinstance(outcome, Outcome)
    return outcome


def score(trace: Mapping[str, Any], check: str, **parameters: Any) -> tuple[float, str | None]:
    outcome = measure(trace, {"check": check, **parameters})
    reason = outcome.reason.removeprefix(f"{check}: ") if outcome.reason else None
    return outcome.score, reason


def test_every_rule_that_may_be_asked_for_exists() -> None:
    assert RULES.keys() == SCHEMAS.keys()
    metric = build(MetricConfig("a", "rules", "rule", options={"rules": ({"check": "success"},)}), NO_RESOURCES)
    assert isinstance(metric, RuleBased)
    assert "rules" in REGISTRY


@pytest.mark.parametrize(
    ("trace", "expected", "reason"),
    [
        ({"success": True}, 1.0, None),
        ({"success": "false"}, 0.0, "the trace is marked as failed"),
        ({"success": 1}, 1.0, None),
        ({"success": " Succeeded "}, 1.0, None),
        ({"success": "0.0"}, 0.0, "the trace is marked as failed"),
        ({"success": "off"}, 0.0, "the trace is marked as failed"),
        ({"status": "SUCCESS"}, 1.0, None),
        ({"success": True, "status": "Failed"}, 0.0, "the trace is marked as failed"),
    ],
)
def test_success(trace: dict[str, Any], expected: float, reason: str | None) -> None:
    assert score(trace, "success") == (expected, reason)


@pytest.mark.parametrize(
    ("duration", "expected", "reason"),
    [
        (0, 1.0, None),
        (1000, 1.0, None),
        (1000.0, 1.0, None),
        (1250, 0.8, "1250 ms is 250 ms over 1000 ms"),
        (4000.5, 1000 / 4000.5, "4000.5 ms is 3000.5 ms over 1000 ms"),
        (None, 0.0, "duration_ms is missing or not a number"),
        ("12", 0.0, "duration_ms is missing or not a number"),
        (True, 0.0, "duration_ms is missing or not a number"),
    ],
)
def test_latency_under(duration: Any, expected: float, reason: str | None) -> None:
    assert score({"duration_ms": duration}, "latency_under", budget_ms=1000.0) == (expected, reason)


@pytest.mark.parametrize(
    ("text", "keywords", "case_sensitive", "present"),
    [
        ("How can I HELP?", ["help", "assist"], False, ["help"]),
        ("How can I HELP?", ["help", "assist"], True, []),
        ("nothing", ["help", "assist"], False, []),
        ("straße", ["STRASSE"], False, ["STRASSE"]),
        ("help and assist", ["help", "assist"], False, ["help", "assist"]),
    ],
)
def test_keywords(text: str, keywords: list[str], case_sensitive: bool, present: list[str]) -> None:
    trace = {"output": text}
    found = score(trace, "contains", keywords=keywords, case_sensitive=case_sensitive)
    missing = None if present else f"output contains none of {', '.join(map(repr, keywords))}"
    assert found == (1.0 if present else 0.0, missing)
    absent = score(trace, "not_contains", keywords=keywords, case_sensitive=case_sensitive)
    named = f"output contains {', '.join(map(repr, present))}" if present else None
    assert absent == (0.0 if present else 1.0, named)


@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        (r"order \d+", [], 1.0),
        (r"^order", [], 0.0),
        (r"ORDER", ["IGNORECASE"], 1.0),
        (r"^second", [], 0.0),
        (r"^second", ["MULTILINE"], 1.0),
        (r"first.*second", [], 0.0),
    ],
)
def test_matches_regex(pattern: str, flags: list[str], expected: float) -> None:
    trace = {"output": "first order 66\nsecond"}
    reason = None if expected else f"output does not match {pattern!r}"
    assert score(trace, "matches_regex", pattern=pattern, flags=flags) == (expected, reason)


def test_a_pattern_that_an_answer_makes_endless_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    found, reason = score({"output": "a" * 60 + "!"}, "matches_regex", pattern=r"(?:a|aa|a?a)+$")
    assert found == 0.0
    assert reason is not None


def test_very_long_texts_are_compared_as_far_as_is_affordable() -> None:
    trace = {"output": "a" * LONGEST_COMPARED + "b" * 10**6, "gold": "a" * LONGEST_COMPARED}
    found, _ = score(trace, "similarity", expected_path="gold", method="levenshtein")
    assert found == 1.0
    trace["output"] = "c" + "a" * LONGEST_COMPARED
    _, reason = score(trace, "similarity", expected_path="gold", method="levenshtein", threshold=1.0)
    assert reason is not None
    assert f"levenshtein similarity (of the first {LONGEST_COMPARED} characters)" in reason


class Vectors:
    """Embeddings of a few texts."""

    def __init__(self, missing: bool = False) -> None:
        self.missing = missing

    def check(self, model: object) -> None:
        if self.missing:
            raise ConfigError(Problem("no embedding model"))

    async def vectors(self, texts: Sequence[str], model: object) -> list[tuple[float, ...]]:
        known = {"hello": (1.0, 0.0), "hi": (0.6, 0.8)}
        if not known.keys() >= set(texts):
            raise LlmError("unreachable")
        return [known[text] for text in texts]


def by_meaning(trace: dict[str, Any], *rules: dict[str, Any], missing: bool = False) -> Outcome:
    resources = cast(Resources, SimpleNamespace(embeddings=Vectors(missing)))
    outcome = RuleBased(rules, resources).measure(Observation(input="", response="", trace=trace))
    assert isinstance(outcome, Awaitable)

    async def wait() -> Outcome:
        return await outcome

    return asyncio.run(wait())


EMBEDDING = {"check": "similarity", "expected_path": "gold", "method": "embedding", "target": "output"}


def test_similarity_by_meaning_beside_other_rules() -> None:
    trace = {"output": "hi", "gold": "hello", "success": True}
    outcome = by_meaning(trace, {"check": "success"}, {**EMBEDDING, "threshold": 0.9})
    assert outcome.score == pytest.approx(0.8)
    assert outcome.reason == "similarity: embedding similarity of output to gold is 0.600, below 0.9"
    assert by_meaning({"output": "hi", "gold": "hi"}, EMBEDDING).score == 1.0
    assert by_meaning({"output": "hi"}, EMBEDDING).score == 0.0


def usage(
    prompt: float | None = None, completion: float | None = None, total: float | None = None
) -> dict[str, float]:
    given = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {name: value for name, value in given.items() if value is not None}


LONG = usage(30, 10)
PLACES = [
    {"token_usage": LONG},
    {"usage": {"input_tokens": 30, "output_tokens": 10}},
    {"metadata": {"token_usage": LONG}},
    {"timeline": [{"token_usage": usage(20, 5)}, {"usage": usage(10, 5)}]},
    {"timeline": [{"output": {"usage": usage(20, 5)}}, {"raw": {"output": {"messages": {"usage": usage(10, 5)}}}}]},
    {"observations": [{"output": {"message": {"usage_metadata": {"input_tokens": 30, "output_tokens": 10}}}}]},
    {"usage": {"inputTokens": 30, "outputTokens": 10, "totalTokens": 40}},
    {"usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 10}},
    {"response_metadata": {"token_usage": LONG}},
    {
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 5,
            "output_tokens": 10,
        }
    },
    {"usage": {"input": 30, "output": 10, "total": 40, "unit": "TOKENS"}},
    {"usage": {"prompt_tokens": 0, "input_tokens": 30, "completion_tokens": "10"}},
    # Of those who do not know it:
    {"usage": usage(0, 0, 0), "timeline": [{"usage": LONG}]},
    {"token_usage": {"total_tokens": 0}, "usage": LONG},
    # Never twice:
    {"token_usage": LONG, "usage": LONG, "summary": {"token_usage": LONG}, "timeline": [{"usage": LONG}]},
    {"timeline": [{"raw": {"id": "a"}, "usage": LONG}, {"raw": {"id": "a"}, "usage": LONG}]},
    {
        "timeline": [
            {"id": "chain", "usage": LONG},
            {"id": "step", "parent_observation_id": "chain"},
            {"id": "one", "parent_observation_id": "step", "usage": usage(20, 5)},
            {"id": "two", "parent_observation_id": "step", "usage": usage(10, 5)},
        ]
    },
]


@pytest.mark.parametrize("trace", PLACES)
def test_where_tokens_are_found(trace: dict[str, Any]) -> None:
    assert token_usage(trace) == TokenUsage(40.0, 30.0, 10.0)


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ({"usage": usage(total=7)}, TokenUsage(7.0)),
        ({"usage": usage(30, 10, 45)}, TokenUsage(45.0, 30.0, 10.0)),
        ({"usage": usage(30, 10, 0)}, TokenUsage(40.0, 30.0, 10.0)),
        ({"usage": usage(prompt=5)}, TokenUsage(5.0, 5.0, is_complete=False)),
        # A part of the tokens is not the total: calls that tell nothing, and requests without tokens.
        (
            {"timeline": [{"type": "generation", "usage": usage(1, 2)}, {"type": "generation", "usage": None}]},
            TokenUsage(3.0, None, None, is_complete=False),
        ),
        ({"usage": usage(0, 5)}, TokenUsage(5.0, 0.0, 5.0, is_complete=False)),
        ({"timeline": [{"type": "generation", "usage": None}]}, None),
        ({"usage": usage(9000, 9000, 1)}, TokenUsage(18000.0, 9000.0, 9000.0)),
        ({"usage": usage(0, 0, 0)}, TokenUsage(0.0, 0.0, 0.0, is_complete=False)),
        ({"timeline": [{"usage": usage(prompt=5)}, {"usage": usage(1, 2)}]}, TokenUsage(8.0, 6.0, is_complete=False)),
        ({"usage": {"total_tokens": "5000", "prompt_tokens": 1}}, TokenUsage(5000.0, 1.0)),
        ({"timeline": [{"usage": usage(total=7)}, {"usage": usage(1, 2)}]}, TokenUsage(10.0)),
        ({"timeline": [{"id": "a", "parent_observation_id": "a", "usage": usage(1, 2)}]}, TokenUsage(3.0, 1.0, 2.0)),
        ({}, None),
        ({"usage": {}, "timeline": "none"}, None),
        ({"usage": {"total_tokens": "7", "prompt_tokens": True}}, TokenUsage(7.0, unusable="prompt_tokens: True")),
        ({"usage": {"input_tokens": 7, "output_tokens": -1}}, TokenUsage(7.0, 7.0, None, False, "output_tokens: -1")),
        ({"timeline": [3, None, {"usage": [1]}]}, None),
    ],
)
def test_tokens(trace: dict[str, Any], expected: TokenUsage | None) -> None:
    assert token_usage(trace) == expected


def test_a_missing_count_is_within_budget_and_missing_usage_scores_0() -> None:
    assert score({"usage": usage(total=40)}, "token_usage_under", max_prompt_tokens=20.0) == (1.0, None)
    assert score({"usage": usage(total=40)}, "token_usage_under", max_total_tokens=20.0)[0] == 0.5
    assert score({"output": "a"}, "token_usage_under", max_total_tokens=1.0) == (
        0.0,
        "the trace contains no token usage",
    )


def test_rules_read_an_answer_without_a_trace() -> None:
    observation = Observation(
        input="q",
        response="the answer",
        latency_ms=500.0,
        usage=Usage(input_tokens=3, output_tokens=4),
        tool_calls=(ToolCall(name="find"),),
        config={"expected": "the answer"},
    )
    rules = (
        {"check": "success"},
        {"check": "output_not_empty"},
        {"check": "latency_under", "budget_ms": 500.0},
        {"check": "token_usage_under", "max_total_tokens": 7.0},
        {"check": "similarity", "expected_path": "metadata.expected"},
    )
    outcome = RuleBased(rules, NO_RESOURCES).measure(observation)
    assert isinstance(outcome, Outcome)
    assert (outcome.score, outcome.reason) == (1.0, None)


NOT_X = {"check": "not_contains", "keywords": ["x"]}
EMPTY = {"check": "matches_regex", "pattern": "^$|None"}
PROMPT = {"check": "token_usage_under", "max_prompt_tokens": 5}


@pytest.mark.parametrize(
    ("trace", "rule", "unmeasured"),
    [
        ({"output": "a"}, {**NOT_X, "target": "outptu"}, True),
        ({"output": "a"}, {**EMPTY, "target": "outptu"}, True),
        ({"output": None}, NOT_X, True),
        ({"output": ""}, NOT_X, False),
        ({"output": ""}, EMPTY, False),
        ({"output": "a"}, EMPTY, False),
        ({"outptu": "a"}, {**NOT_X, "target": "outptu"}, False),
        ({"output": "a"}, {**NOT_X, "target": "error"}, False),
        ({"output": "a"}, {**NOT_X, "target": "summary.error.text"}, False),
        ({"output": "a"}, {"check": "contains", "keywords": ["x"], "target": "outptu"}, False),
        ({"token_usage": {"total_tokens": 9}}, PROMPT, True),
        ({"token_usage": {"prompt_tokens": 4}}, PROMPT, False),
        ({"token_usage": {"prompt_tokens": 9}}, PROMPT, False),
        ({"token_usage": {"total_tokens": 9}}, {"check": "token_usage_under", "max_total_tokens": 9}, False),
    ],
)
def test_a_rule_that_passes_because_its_field_is_missing_measured_nothing(
    trace: Mapping[str, Any], rule: Mapping[str, Any], unmeasured: bool
) -> None:
    found = measure(trace, {"check": "success"}, rule)
    assert (found.details or {}).get("unmeasured") == ([f"rule 2: {rule['check']}"] if unmeasured else None)
    assert not unmeasured or found.score == 0.5
