from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.results.analysis.answers import AGGREGATE, answer

from agenteval.results.analysis.summary import category, find_failures


@pytest.mark.parametrize(
    ("metric", "reason", "expected"),
    [
        ("speed", "took 2400 ms, 1000 ms are allowed", "latency"),
        ("quality", "the request timed out", "latency"),
        ("latency_budget", "too much", "latency"),
        ("budget", "5,000 tokens, 4,000 are allowed", "token_usage"),
        ("quality", "It calls the wrong tool.", "tool_calls"),
        ("intent_recognition", "It calls the wrong tool.", "intent_recognition"),
        ("quality", "The user's intent was missed.", "intent_recognition"),
        ("quality", "HTTP error 500", "runtime_error"),
        ("basics", "the output is empty", "empty_output"),
        ("words", "missing keywords: error, timeout", "content"),
        ("quality", "A toolbox and an intentional terror.", "general"),
        ("rules", "contains: output contains none of 'error'", "content"),
        ("rules", "latency_under: 304947 ms is 204947 ms over 100000 ms", "latency"),
        ("rules", "success: the trace says that it failed", "runtime_error"),
        ("rules", "output_not_empty: output is empty", "empty_output"),
        ("quality", "The answer contains a success story.", "general"),
        ("quality", "", "general"),
    ],
)
def test_reasons_belong_to_the_first_category_that_matches(metric: str, reason: str, expected: str) -> None:
    assert category(metric, reason) == expected


def test_only_the_beginning_of_a_reason_is_read() -> None:
    assert category("quality", "x " * 300 + "timeout") == "general"


def test_failed_answers_count_once_for_each_category() -> None:
    both = answer(0.1, name="b", reasons={"m": "wrong tool", "n": "another tool", "intent": "missed"})
    silent = answer(0.1, name="c")
    crashed = replace(answer(0.1, name="d"), success=False)
    fine = answer(0.9, name="e", reasons={"m": "wrong tool"})
    unknown = answer(None, name="f", reasons={"m": "wrong tool"})
    found = find_failures([both, silent, crashed, fine, unknown], AGGREGATE, causes=True)
    assert found["count"] == 3
    assert found["categorized"] == {
        "general": 1,
        "intent_recognition": 1,
        "runtime_error": 1,
        "tool_calls": 1,
    }
    assert found["examples"]["tool_calls"] == ["b"]


def test_only_reasons_for_lost_points_are_causes() -> None:
    praised = answer(
        0.4, metric_scores={"m": 0.2, "n": 0.9}, reasons={"m": "the output is empty", "n": "no tool was needed"}
    )
    found = find_failures([praised], AGGREGATE, causes=True)
    assert list(found["categorized"]) == ["empty_output"]
