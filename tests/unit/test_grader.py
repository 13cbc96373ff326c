"""What graders, metrics and evaluation functions of users return: nothing becomes a verdict by leniency."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from agenteval.agents.worker.metrics import verdict
from agenteval.grader import GraderResult, result
from agenteval.results.analysis.answers import tool_checks
from agenteval.results.record import reported_success

NOT_BOOLEANS: list[Any] = [
    "false",
    "true",
    "",
    0,
    1,
    0.0,
    math.nan,
    [],
    [False],
    {},
    np.array([True, False]),
    np.float64(1),
]
NOT_NUMBERS: list[Any] = ["0.9", "", b"1", [], {}, None, 1j, np.array([0.5]), np.str_("1")]


@pytest.mark.parametrize("passed", NOT_BOOLEANS, ids=repr)
def test_a_verdict_is_a_boolean(passed: Any) -> None:
    with pytest.raises(TypeError, match="it must be True or False"):
        result(GraderResult(score=1.0, passed=passed))
    with pytest.raises(TypeError, match="without a boolean 'passed'"):
        verdict({"passed": passed})


@pytest.mark.parametrize("score", NOT_NUMBERS, ids=repr)
def test_a_score_is_a_number(score: Any) -> None:
    with pytest.raises(TypeError, match="not a number from 0 to 1"):
        result(GraderResult(score=score, passed=True))
    if score is not None:
        with pytest.raises(TypeError, match="not a number from 0 to 1"):
            verdict({"passed": True, "score": score})


@pytest.mark.parametrize("score", [math.nan, math.inf, np.float32("nan"), Decimal("NaN")], ids=repr)
def test_a_score_is_finite(score: Any) -> None:
    with pytest.raises(ValueError, match="not a number from 0 to 1"):
        result(GraderResult(score=score))


@pytest.mark.parametrize(
    ("value", "score", "passed"),
    [
        (True, 1.0, True),
        (np.bool_(False), 0.0, False),
        (np.float32(0.5), 0.5, None),
        (1, 1.0, None),
        (GraderResult(score=np.float64(0.25), passed=np.bool_(True)), 0.25, True),  # type: ignore[arg-type]
        (GraderResult(score=Decimal("0.5")), 0.5, None),  # type: ignore[arg-type]
        (GraderResult(score=Fraction(1, 4), passed=False), 0.25, False),  # type: ignore[arg-type]
        (GraderResult(score=True), 1.0, None),
    ],
    ids=repr,
)
def test_numbers_and_booleans_of_other_libraries_count(value: Any, score: float, passed: bool | None) -> None:
    found = result(value)
    assert (found["score"], found["passed"]) == (score, passed)
    assert type(found["score"]) is float


@pytest.mark.parametrize(
    ("written", "yes"),
    [
        ("true", True),
        ("1", True),
        ('"ok"', True),
        ('"false"', False),
        ('" No "', False),
        ("0", False),
        ("NaN", False),
        ("Infinity", False),
        ("1" + "0" * 400, True),
        ("{}", False),
        ('{"ok": false}', False),
        ('"NaN"', False),
    ],
)
def test_what_a_trace_reports_is_read_strictly(written: str, yes: bool) -> None:
    value = json.loads(written)
    assert reported_success({"success": value}) is yes
    shares = tool_checks({"tool_calling": {"proper_timing": value}}, ())["proper_timing"]
    assert shares == (float(yes),)


def test_a_list_of_checks_counts_each_entry() -> None:
    value = [True, "false", None, {}, math.nan, [0.5, -1, 7]]
    shares = tool_checks({"tool_calling": {"proper_timing": value}}, ())["proper_timing"]
    assert shares == (1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 1.0)
