"""When errors make a comparison worthless."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agenteval.compare.statistics.error_rate import error_problem
from agenteval.compare.statistics.model import ErrorCounts
from agenteval.compare.statistics.parameters import GateParameters

PARAMETERS = GateParameters()


def counts(
    *, current: int = 0, iterations: int = 300, lost: int = 0, cases: int = 100, before: int = 0, pool: int = 0
) -> ErrorCounts:
    return ErrorCounts(
        current=current,
        current_iterations=iterations,
        lost_cases=lost,
        cases=cases,
        baseline=before,
        baseline_iterations=pool,
    )


@pytest.mark.parametrize(
    "errors",
    [
        counts(),
        counts(current=30),
        counts(lost=5),
        counts(current=6, before=20, pool=1000),
        counts(current=3, before=0, pool=0),
        counts(iterations=0, cases=0),
    ],
)
def test_few_or_usual_losses_are_not_a_problem(errors: ErrorCounts) -> None:
    assert error_problem(errors, PARAMETERS) is None


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (counts(current=31), "10% of the iterations"),
        (counts(lost=6), "6% of the cases"),
        (counts(current=15, before=5, pool=3000), "in the baseline 0.2%"),
    ],
)
def test_much_or_unusual_loss_is(errors: ErrorCounts, words: str) -> None:
    assert words in (error_problem(errors, PARAMETERS) or "")


@given(current=st.integers(0, 299), before=st.integers(0, 300))
def test_one_more_error_never_helps(current: int, before: int) -> None:
    assume(error_problem(counts(current=current, before=before, pool=1500), PARAMETERS))
    assert error_problem(counts(current=current + 1, before=before, pool=1500), PARAMETERS)


@pytest.mark.parametrize("wrong", [{"current": 301}, {"lost": 101}, {"before": 1}, {"current": -1}])
def test_more_lost_than_there_was(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="lost of"):
        counts(**wrong)
