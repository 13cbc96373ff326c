from __future__ import annotations

import io

from tests.unit.report import samples

from agenteval.core import text as texts
from agenteval.run.progress import LiveProgress, Step


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _live(total: int | None = 118, title: str = "") -> tuple[LiveProgress, Clock]:
    clock = Clock()
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


def test_hostile_names_have_no_effect() -> None:
    live, _ = _live(title="\x1b[2J::error::x")
    live.began(Step("\x1b]0;x\x07[red]\n::warning::"))
    live.finished(samples.failed_case("\x1b[31m\u202e::error::", "1", "2"))
    text = "\n".join(_shown(live))
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "::" not in text
