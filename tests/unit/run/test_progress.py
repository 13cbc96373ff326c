from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from tests.unit.report import samples

from agenteval.results.case import CaseResult, CaseStatus, Usage
from agenteval.run.progress import REPEATING, RUNNING, Activity, ProgressTally, make_progress


class Clock:
    """A clock that advances by a given number of seconds at every reading."""

    def __init__(self, step: float) -> None:
        self.now, self._step = 0.0, step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


def _case(status: CaseStatus = "passed", cost: float | None = None, judge: float | None = None) -> CaseResult:
    score = samples.score().model_copy(update={"cost_usd": judge})
    turn = samples.turn("?", "1", "1", score).model_copy(update={"usage": Usage(cost_usd=cost)})
    return samples.case("a", samples.iteration(turn, status=status), status=status)


def _tally(done: int, elapsed: float, total: int | None = 100) -> ProgressTally:
    tally = ProgressTally(total, 0.0, lambda: elapsed)
    for _ in range(done):
        tally.add(_case())
    return tally


@pytest.mark.parametrize(
    ("done", "elapsed", "rate", "left"),
    [
        (0, 5.0, "", ""),
        (10, 4.0, "2.5/s", "about 36.0 s left"),
        (10, 60.0, "10.0/min", "about 9 min 0 s left"),
        (100, 10.0, "10.0/s", ""),
        (10, 0.0, "", "about 0.0 s left"),
    ],
)
def test_rate_and_remaining_time(done: int, elapsed: float, rate: str, left: str) -> None:
    tally = _tally(done, elapsed)
    assert (tally.rate, tally.left) == (rate, left)


def test_where_the_end_is_not_known_there_is_no_remaining_time() -> None:
    assert _tally(10, 4.0, total=None).left == ""


def _lines(total: int | None, done: int, step: float, activity: Activity = RUNNING) -> Iterator[str]:
    stream = io.StringIO()
    with make_progress(total, stream, activity, bar=False, quiet=False, clock=Clock(step)) as progress:
        for _ in range(done):
            progress.finished(_case(cost=0.001))
    yield from stream.getvalue().splitlines()


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end() -> None:
    lines = list(_lines(1_000, 1_000, 0.1))
    assert lines[0] == "running 1,000 cases"
    assert 5 < len(lines) < 50
    assert lines[-1].startswith("1,000/1,000 cases, 1,000 passed, ")
    assert lines[-1].endswith(", $1.00")
    assert "left, $0." in lines[5]
    assert "/s, about " in lines[5]


def test_a_log_of_a_quick_run_has_two_lines() -> None:
    assert len(list(_lines(50, 50, 0.0001))) == 2
    assert list(_lines(1, 1, 1.0))[-1].startswith("1/1 case, 1 passed, ")


def test_a_log_counts_the_iterations_of_cases_that_repeat() -> None:
    stream = io.StringIO()
    with make_progress(54, stream, REPEATING, bar=False, quiet=False, clock=Clock(4.0)) as progress:
        for _ in range(3):
            progress.iterated("a")
    assert stream.getvalue().splitlines()[:2] == [
        "running 54 iterations",
        "3/54 iterations, 16.0 s, 7.5/min, about 7 min 56 s left",
    ]
