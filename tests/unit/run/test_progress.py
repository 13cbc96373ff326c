"""Progress of a run, in a log and in a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from tests.unit.report import samples

from agenteval.core import text as texts
from agenteval.results.case import CaseResult, CaseStatus, Usage
from agenteval.run.progress import (
    REPEATING,
    RUNNING,
    Activity,
    LiveProgress,
    ProgressTally,
    Retry,
    Step,
    make_progress,
)


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


class StandingClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _live(total: int | None = 118, title: str = "") -> tuple[LiveProgress, StandingClock]:
    clock = StandingClock()
    return LiveProgress(total, io.StringIO(), title, clock), clock


def _shown(live: LiveProgress, columns: int = 80) -> list[str]:
    return ["".join(text for text, _ in line) for line in live.lines(columns)]


def test_failures_stand_above_the_bar_with_counts_rate_rest_and_cost() -> None:
    live, clock = _live(title="support-bot · 118 cases")
    clock.now = 20.0
    for _ in range(76):
        live.finished(samples.passed_case("fine"))
    live.finished(samples.failed_case("refunds", "30 days", "14 days", samples.score(value=0.0, reason="wrong")))
    error = samples.iteration(samples.turn("?", "1", None, error="503 Service Unavailable"), status="error")
    live.finished(samples.case("shipping", error, status="error"))
    assert _shown(live, 100) == [
        "support-bot · 118 cases",
        "✗ refunds  numeric 0.00 < 1.00: wrong",
        "! shipping  agent error: 503 Service Unavailable",
        "━" * 30 + "─" * 15 + "  78/118  76 pass  1 fail  1 error  3.9/s · 10.3 s left",
    ]


def test_iterations_of_cases_that_are_not_finished_count() -> None:
    live, clock = _live(total=54)
    clock.now = 10.0
    first = samples.passed_case("a")
    for case in (first.id, "b", first.id):
        live.iterated(case)
    assert _shown(live, 60)[0].endswith("─  3/54  18.0/min · 2 min 50 s left")
    live.finished(first)
    assert "  3/54  1 pass  " in _shown(live, 60)[0]


def test_a_failure_takes_two_lines_at_most_and_only_the_last_ones_are_shown() -> None:
    live, _ = _live()
    for number in range(30):
        live.finished(samples.failed_case(f"case {number}", "1", "2", samples.score(value=0.0, reason="word " * 90)))
    lines = _shown(live, 40)
    assert lines[0].startswith("✗ case 22  ")
    assert [line[:2] for line in lines[:16]] == ["✗ ", "  "] * 8
    assert all(texts.width(line) <= 40 for line in lines)
    assert lines[1].endswith("…")


def test_what_takes_long_is_named_after_five_seconds() -> None:
    live, clock = _live()
    steps = [Step("warranty"), Step("cancel-then-refund", "turn 2")]
    for step in steps:
        live.began(step)
        clock.now += 4.0
    assert _shown(live)[-1] == "running  warranty  8 s  + 1"
    clock.now = 90.0
    for number in range(13):
        live.began(Step(f"new {number}"))
    assert _shown(live)[-1] == "running  warranty  1 min 30 s  cancel-then-refund turn 2  1 min 26 s  + 13"
    live.ended(steps[0])
    assert "warranty" not in _shown(live)[-1]


def test_three_retries_are_named_with_the_time_until_they_begin() -> None:
    live, clock = _live(total=None)
    steps = [Step(name) for name in "abcd"]
    for step in steps:
        live.retrying(step, Retry("503 Service Unavailable", 2, 4, 8.0))
    clock.now = 3.0
    again = "503 Service Unavailable (try 2 of 4, again in 5 s)"
    assert _shown(live) == ["0", *(f"retry    {name}  {again}" for name in "abc")]
    clock.now = 9.0
    live.ended(steps[0])
    assert _shown(live)[1:] == [f"retry    {name}  503 Service Unavailable (try 2 of 4)" for name in "bcd"]
    assert _shown(live, 45)[1] == "retry    b  503 Service Unavail… (try 2 of 4)"


def test_a_narrow_terminal_has_the_bar_in_a_line_of_its_own() -> None:
    live, _ = _live(total=2)
    live.finished(samples.passed_case("fine"))
    assert _shown(live, 30) == ["━" * 15 + "─" * 15, "1/2  1 pass  0.0 s left"]


def test_hostile_names_have_no_effect() -> None:
    live, _ = _live(title="\x1b[2J::error::x")
    live.began(Step("\x1b]0;x\x07[red]\n::warning::"))
    live.finished(samples.failed_case("\x1b[31m\u202e::error::", "1", "2"))
    text = "\n".join(_shown(live))
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "::" not in text
