from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import AGGREGATE, answer, many, scores

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import evaluate
from agenteval.results.analysis.summary import Moments, share_p, t_interval, welch_p, wilson
from agenteval.suite.evaluation import Analyses, Evaluation

# Two-sided 95 % quantiles of Student's t, from Fisher and Yates' tables.
T_975 = {1: 12.7062, 4: 2.7764, 9: 2.2622, 29: 2.0452, 120: 1.9799}
Z_975 = 1.959963984540054


def _infer(answers: list[EvaluatedAnswer], **settings: object) -> dict[str, Any]:
    analyses = Analyses(statistics=True, **settings)  # type: ignore[arg-type]
    found: dict[str, Any] = evaluate(answers, Evaluation(analyses=analyses), AGGREGATE).analysis["statistics"]
    return found


@given(st.integers(1, 200), st.data())
def test_wilsons_bounds_are_the_roots_of_the_score_equation(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    share, square = successes / trials, Z_975**2 / trials
    low, high = sorted(np.roots([1 + square, -(2 * share + square), share * share]).real)
    assert wilson(successes, trials, 0.95) == pytest.approx((max(0.0, low), min(1.0, high)), abs=1e-7)


@pytest.mark.parametrize(("freedom", "quantile"), T_975.items())
def test_the_interval_of_a_mean_uses_students_quantile(freedom: int, quantile: float) -> None:
    values = np.random.default_rng(freedom).normal(0.5, 0.01, freedom + 1)
    margin = quantile * values.std(ddof=1) / math.sqrt(freedom + 1)
    expected = (max(0.0, values.mean() - margin), min(1.0, values.mean() + margin))
    assert t_interval(Moments.of(values.tolist()), 0.95) == pytest.approx(expected, abs=2e-5)


def test_without_spread_there_is_no_interval() -> None:
    assert wilson(0, 0, 0.95) is None
    assert t_interval(Moments.of([0.5]), 0.95) is None
    assert t_interval(Moments.of([0.5] * 9), 0.95) is None
    assert welch_p(Moments.of([0.5] * 9), Moments.of([0.4] * 9)) is None


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_the_test_of_shares_is_fishers_by_enumeration(trials: int, other: int, data: st.DataObject) -> None:
    successes, others = data.draw(st.integers(0, trials)), data.draw(st.integers(0, other))
    total = successes + others
    ways = {
        k: Fraction(math.comb(trials, k) * math.comb(other, total - k), math.comb(trials + other, total))
        for k in range(max(0, total - other), min(trials, total) + 1)
    }
    more = sum(p for k, p in ways.items() if k >= successes)
    less = sum(p for k, p in ways.items() if k <= successes)
    assert share_p(successes, trials, others, other) == pytest.approx(float(min(1, 2 * min(more, less))))


def test_large_counts_take_the_normal_test() -> None:
    exact, normal = share_p(7000, 9999, 7200, 9999), share_p(7001, 10_001, 7200, 10_000)
    assert normal == pytest.approx(exact, rel=0.05)
    assert share_p(20_000, 20_000, 20_000, 20_000) == 1.0


@given(st.lists(scores, min_size=3, max_size=9), st.lists(scores, min_size=3, max_size=9))
def test_welchs_p_is_the_tail_of_its_density(left: list[float], right: list[float]) -> None:
    a, b = np.var(left, ddof=1) / len(left), np.var(right, ddof=1) / len(right)
    assume(a + b > 1e-6)
    t = abs(np.mean(left) - np.mean(right)) / math.sqrt(a + b)
    freedom = float((a + b) ** 2 / (a**2 / (len(left) - 1) + b**2 / (len(right) - 1)))
    # The integral of t's density in the angle whose tangent is x / sqrt(freedom): smooth and finite.
    angles = np.linspace(0, math.atan(t / math.sqrt(freedom)), 20_001)
    constant = math.gamma((freedom + 1) / 2) / (math.gamma(freedom / 2) * math.sqrt(math.pi))
    central = 2 * constant * np.trapezoid(np.cos(angles) ** (freedom - 1), angles)
    assert welch_p(Moments.of(left), Moments.of(right)) == pytest.approx(1 - central, abs=1e-6)
    assert welch_p(Moments.of(right), Moments.of(left)) == pytest.approx(welch_p(Moments.of(left), Moments.of(right)))


def test_every_persona_is_tested_against_all_others() -> None:
    answers = many()
    found = _infer(answers)
    assert {(test["subject"], test["measure"]) for test in found["tests"]} == set(
        itertools.product(("default", "expert", "novice"), ("pass_rate", "final_score"))
    )
    for test in found["tests"]:
        own = [item for item in answers if (item.persona or "default") == test["subject"]]
        rest = [item for item in answers if (item.persona or "default") != test["subject"]]
        if test["measure"] == "pass_rate":
            passed = [sum(bool(item.passed) for item in group) for group in (own, rest)]
            assert test["p"] == pytest.approx(share_p(passed[0], len(own), passed[1], len(rest)))
            assert test["difference"] == pytest.approx(passed[0] / len(own) - passed[1] / len(rest))
        else:
            means = [Moments.of([item.final_score or 0.0 for item in group]) for group in (own, rest)]
            assert test["p"] == pytest.approx(welch_p(*means), rel=1e-6)
            assert test["difference"] == pytest.approx(means[0].mean - means[1].mean)


def test_holms_correction_decides_what_is_significant() -> None:
    tests = _infer(many(), significance=0.2)["tests"]
    ordered = sorted(tests, key=lambda test: test["p"])
    standing = True
    for rank, test in enumerate(ordered):
        standing = standing and test["p"] * (len(ordered) - rank) <= 0.2
        assert test["significant"] == standing
    assert any(test["significant"] for test in tests)
    assert not all(test["significant"] for test in tests)


def test_the_baseline_is_tested_too(tmp_path: Path) -> None:
    baseline = tmp_path / "summary.json"
    baseline.write_text(json.dumps(evaluate(many(seed=1), Evaluation(), AGGREGATE).content), encoding="utf-8")
    worse = [answer(0.2 + number % 7 / 20, name=str(number), metric_scores={"clarity": 0.1}) for number in range(90)]
    found = [test for test in _infer(worse, baseline=str(baseline))["tests"] if test["against"] == "the baseline"]
    assert [test["measure"] for test in found] == ["pass_rate", "final_score", "clarity"]
    assert all(test["significant"] and test["difference"] < 0 for test in found)
    again = [
        test for test in _infer(many(seed=1), baseline=str(baseline))["tests"] if test["against"] == "the baseline"
    ]
    assert len(again) == 5
    assert all(test["p"] == pytest.approx(1.0) and not test["significant"] for test in again)
