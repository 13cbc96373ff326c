"""The correlation of iterations within a run."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.compare.statistics.correlation import within_run_correlation


def simulated(
    correlation: float, cases: int = 400, runs: int = 5, iterations: int = 5
) -> list[list[tuple[int, int]]]:
    generator = np.random.default_rng(3)
    spread = (1 - correlation) / correlation
    rates = generator.beta(0.4 * spread, 0.6 * spread, (cases, runs))
    failures = generator.binomial(iterations, rates)
    return [[(failed, iterations) for failed in case] for case in failures.tolist()]


@pytest.mark.parametrize("correlation", [0.1, 0.3, 0.6])
def test_it_finds_the_correlation_of_a_simulation(correlation: float) -> None:
    assert within_run_correlation(simulated(correlation)) == pytest.approx(correlation, abs=0.051)


def test_runs_that_agree_more_than_chance_have_none() -> None:
    assert within_run_correlation([[(1, 3), (1, 3)]] * 6) == 0.0


def test_runs_that_are_each_of_one_kind() -> None:
    assert within_run_correlation([[(0, 3), (3, 3)]] * 6) == 0.9


@pytest.mark.parametrize(
    "cases",
    [
        [],
        [[(1, 3)]] * 20,
        [[(1, 1), (0, 1)]] * 20,
        [[(0, 3), (0, 3)]] * 20,
        [[(0, 3), (3, 3)]] * 4,
    ],
    ids=["no case", "one run", "one iteration", "nothing varies", "four cases vary"],
)
def test_too_little_data_gives_no_correlation(cases: list[list[tuple[int, int]]]) -> None:
    assert within_run_correlation(cases) is None


def test_by_hand() -> None:
    # Per case: rates 0 and 2/3; MSB = 3 * 2/9 = 2/3, MSW = (2/9 / 2) * 3/2 = 1/6; (2/3 - 1/6) / (2/3 + 2/6) = 0.5.
    assert within_run_correlation([[(0, 3), (2, 3)]] * 5) == 0.5
