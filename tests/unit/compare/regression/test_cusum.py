"""When a long look at the base branch is due."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.compare.regression.cusum import REFERENCE_RUNS, is_due, may_become_due, next_sum

LEVELS = st.floats(0.3, 0.9)
MIN_EFFECT = 0.01


def reference_arithmetic(first: list[float], levels: list[float]) -> list[float]:
    """The sums as the specification of the gate computes them, with numpy."""
    known = np.array(first)
    deviation = max(known.std(ddof=1) * np.sqrt(1 + 1 / len(known)), 1e-3)
    total, sums = 0.0, []
    for level in levels:
        total = max(0.0, total + (known.mean() - level) / deviation - 0.5)
        sums.append(total)
    return sums


def sums_of(first: list[float], levels: list[float], min_effect: float = MIN_EFFECT) -> list[float]:
    total, sums = 0.0, []
    for level in levels:
        total = next_sum(total, first, level, min_effect)
        sums.append(total)
    return sums


@given(st.lists(LEVELS, min_size=3, max_size=10), st.lists(LEVELS, min_size=1, max_size=30))
def test_the_sums_are_those_of_the_reference(first: list[float], levels: list[float]) -> None:
    assert sums_of(first, levels, 0.0) == pytest.approx(reference_arithmetic(first, levels), rel=1e-9, abs=1e-9)


def test_a_slow_decline_makes_a_long_look_due_and_chance_does_not() -> None:
    first = [0.90, 0.88, 0.92, 0.89, 0.91, 0.90, 0.88, 0.92, 0.89, 0.91]
    falling = sums_of(first, [0.90 - 0.01 * number for number in range(1, 9)])
    assert [is_due([total], 0) for total in falling].index(True) == 3
    assert not any(is_due([total], 0) for total in sums_of(first, first * 3))


@given(st.lists(LEVELS, min_size=3, max_size=10), st.lists(LEVELS, min_size=1), st.floats(0, 5), st.floats(0, 0.2))
def test_a_lower_run_never_makes_the_sum_smaller(
    first: list[float], levels: list[float], total: float, drop: float
) -> None:
    for level in levels:
        higher = next_sum(total, first, level, MIN_EFFECT)
        assert 0 <= higher <= next_sum(total, first, level - drop, MIN_EFFECT) + 1e-9


def test_too_few_runs_say_nothing_and_only_the_first_ten_are_the_reference() -> None:
    assert next_sum(1.5, [0.9, 0.8], 0.1, MIN_EFFECT) == 1.5
    first = [0.90, 0.88] * (REFERENCE_RUNS // 2)
    assert next_sum(0, [*first, 0.1, 0.2], 0.8, MIN_EFFECT) == next_sum(0, first, 0.8, MIN_EFFECT)


def test_an_agent_that_repeats_its_answers_may_fall_by_less_than_what_counts() -> None:
    assert sums_of([0.9] * 5, [0.8976] * 20) == [0.0] * 20
    assert is_due(sums_of([0.9] * 5, [0.88] * 2), 0)


@pytest.mark.parametrize(
    ("sums", "merges", "due"),
    [([], 9, False), ([], 10, True), ([4.0], 0, False), ([4.01], 0, True), ([0.0, 5.0], 1, True)],
)
def test_when_a_long_look_is_due(sums: list[float], merges: int, due: bool) -> None:
    assert is_due(sums, merges) is due


def test_when_early_commits_are_kept_ready() -> None:
    assert not may_become_due([0.0], 3)
    assert may_become_due([0.1], 0)
    assert may_become_due([0.0], 9)
