from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.results.analysis.answers import many

from agenteval.results.analysis.answers import Averaged
from agenteval.results.analysis.criteria import find_trends, relative_trend, trend


@pytest.mark.parametrize(
    ("values", "direction", "slope"),
    [
        ([(0, 0.5), (1, 0.9)], "increasing", 0.4),
        ([(0, 0.9), (4, 0.5)], "decreasing", -0.1),
        ([(0, 0.5), (10, 0.6)], "stable", 0.01),
        ([(0, 0.5), (10, 0.602)], "increasing", 0.0102),
        ([(0, 0.5), (10, 0.398)], "decreasing", -0.0102),
        ([(3, 0.5)], "stable", 0.0),
        ([(0, 0.4), (0, 0.6), (1, 0.2), (2, 0.9)], "increasing", 0.2),
    ],
)
def test_the_slope_goes_from_the_first_to_the_last_iteration(
    values: list[tuple[int, float | None]], direction: str, slope: float
) -> None:
    found = trend(values)
    assert found is not None
    assert found.direction == direction
    assert found.slope == pytest.approx(slope)


def test_iterations_without_values_have_no_trend() -> None:
    assert trend([(0, None), (1, None)]) is None


def test_times_are_stable_within_one_percent_of_their_mean() -> None:
    stable, rising = relative_trend([(0, 1000.0), (1, 1009.0)]), relative_trend([(0, 1000.0), (1, 1020.0)])
    assert stable is not None
    assert rising is not None
    assert (stable.direction, rising.direction) == ("stable", "increasing")


def test_points_are_the_means_of_the_iterations() -> None:
    answers = many()
    found = find_trends(Averaged(answers, answers))
    assert found.scores is not None
    assert found.durations is not None
    assert [iteration for iteration, _ in found.scores.points] == list(range(10))
    for iteration, mean in found.scores.points:
        own = [item.final_score for item in answers if item.order == iteration]
        assert mean == pytest.approx(np.mean(np.array(own, dtype=float)))
    for iteration, mean in found.durations.points:
        assert mean == pytest.approx(np.mean([item.duration_ms or 0 for item in answers if item.order == iteration]))


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1), st.randoms())
def test_order_does_not_matter_and_reversing_time_turns_the_trend(
    values: list[tuple[int, float | None]], source: object
) -> None:
    assert trend(sorted(values, key=str)) == trend(values)
    forward, backward = trend(values), trend([(-iteration, value) for iteration, value in values])
    assert forward is not None
    assert backward is not None
    assert backward.slope == pytest.approx(-forward.slope)
