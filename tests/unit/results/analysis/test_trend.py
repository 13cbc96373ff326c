from __future__ import annotations

import numpy as np
import pytest
from tests.unit.results.analysis.answers import answer, many

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.summary import trend


def _scored(values: list[tuple[int, float | None]]) -> list[EvaluatedAnswer]:
    return [answer(value, order=order) for order, value in values]


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
    found = trend(_scored(values), "final_score")
    assert found is not None
    assert (found["trend"], found["slope"]) == (direction, pytest.approx(slope))


def test_iterations_without_values_have_no_trend() -> None:
    assert trend(_scored([(0, None), (1, None)]), "final_score") is None


@pytest.mark.parametrize(("last", "direction"), [(1009.0, "stable"), (1020.0, "increasing"), (980.0, "decreasing")])
def test_times_are_stable_within_one_percent_of_their_mean(last: float, direction: str) -> None:
    found = trend([answer(0.9, 1000.0, order=0), answer(0.9, last, order=1)], "duration_ms")
    assert found is not None
    assert found["trend"] == direction


def test_points_are_the_means_of_the_iterations() -> None:
    answers = many()
    found = trend(answers, "final_score")
    assert found is not None
    assert [iteration for iteration, _ in found["points"]] == list(range(10))
    for iteration, mean in found["points"]:
        own = [item.final_score for item in answers if item.order == iteration]
        assert mean == pytest.approx(np.mean(np.array(own, dtype=float)))
