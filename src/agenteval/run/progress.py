"""Shows a run on a terminal while it runs: failures as they happen, a bar, and what takes long."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from agenteval.core import escape
from agenteval.core import text as texts
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.report import words
from agenteval.report.terminal_lines import Line, Part, Style, laid_out
from agenteval.report.words import count, duration, money
from agenteval.results.case import CaseResult

if TYPE_CHECKING:
    from rich.text import Text


# Seconds between two lines in a log.
_LOG_INTERVAL_S = 10.0


#: What a run does, and what it counts.
Activity = tuple[str, str]
RUNNING: Activity = ("running", "case")
REPEATING: Activity = ("running", "iteration")
SCORING: Activity = ("scoring", "trace")


@dataclass(eq=False, slots=True)
class Step:
    """Something that takes time: a turn of a conversation, or the scoring of an iteration. Each one is unique.

    Attributes:
        what: ``turn 2``, ``scoring``; empty in a case of one turn.
    """

    case: str
    what: str = ""


@dataclass(frozen=True)
class Retry:
    """A failed attempt that is repeated."""

    reason: str
    attempt: int
    attempts: int
    wait_s: float


class Progress:
    """Receives every finished iteration and case, and the steps in progress; shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def iterated(self, case: str) -> None:
        """Count a finished iteration of the case with an id."""

    def finished(self, case: CaseResult) -> None:
        """Count a finished case."""

    def began(self, step: Step) -> None:
        """Note that a step has begun."""

    def retrying(self, step: Step, retry: Retry) -> None:
        """Note that a step waits for its next attempt."""

    def ended(self, step: Step) -> None:
        """Note that a step has ended."""


def make_progress(
    total: int | None,
    stream: TextIO,
    activity: Activity,
    *,
    bar: bool,
    quiet: bool,
    title: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Return the progress display for a stream."""
    if quiet:
        return Progress()
    if bar:
        return LiveProgress(total, stream, title, clock)
    return LineProgress(total, stream, activity, clock)


@dataclass
class ProgressTally:
    """The number, time and cost of finished iterations and cases.

    Attributes:
        total: all iterations.
        started: start of the first case, in seconds of the clock.
        counts: finished cases by status; ``iterations``: those of these cases; ``open``: those of other cases, by id.
        cost_usd: cost of agents, as they report it, and of judges.
    """

    total: int | None
    started: float
    clock: Callable[[], float] = time.monotonic
    counts: Counter[str] = field(default_factory=Counter)
    iterations: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0

    def add(self, case: CaseResult) -> None:
        """Count a finished case."""
        self.counts[case.status] += 1
        # A case that is continued has iterations of an earlier run.
        self.iterations[case.status] += max(1, self.open.pop(case.id, 0), len(case.iterations))
        self.cost_usd += sum(turn.usage.cost_usd or 0.0 for turn in case.turns if turn.usage)
        self.cost_usd += sum(score.cost_usd or 0.0 for score in case.scores)

    @property
    def done(self) -> int:
        """The number of finished iterations."""
        return self.iterations.total() + self.open.total()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    @property
    def outcomes(self) -> str:
        """Return the counts, as in ``12 passed, 1 failed``."""
        names = ("passed", "failed", "error", "skipped")
        return ", ".join(f"{self.counts[name]:,} {name}" for name in names if self.counts[name])

    @property
    def rate(self) -> str:
        """Return the rate, as in ``2.5/s`` or ``12/min``; empty before the first case has finished."""
        if not self.done or self.elapsed_s <= 0:
            return ""
        per_second = self.done / self.elapsed_s
        return f"{per_second:.1f}/s" if per_second >= 1 else f"{60 * per_second:.1f}/min"

    @property
    def left(self) -> str:
        """Return the estimated remaining time at the average rate, as in ``about 2 min 5 s left``."""
        if not self.done or self.total is None or self.done >= self.total:
            return ""
        return f"about {duration(self.elapsed_s / self.done * (self.total - self.done))} left"

    @property
    def cost(self) -> str:
        """Return the cost so far; empty if it is 0."""
        return money(self.cost_usd) if self.cost_usd else ""


class LineProgress(Progress):
    """Progress for logs: a periodic line."""

    def __init__(self, total: int | None, stream: TextIO, activity: Activity, clock: Callable[[], float]) -> None:
        self._total = total
        self._activity = activity
        self._stream = stream
        self._clock = clock
        self._tally = ProgressTally(total, clock(), clock)
        self._last = clock()

    def __enter__(self) -> Self:
        self._last = self._clock()
        self._tally = ProgressTally(self._total, self._last, self._clock)
        doing, unit = self._activity
        self._write(f"{doing} {f'{unit}s' if self._total is None else count(self._total, unit)}")
        return self

    def iterated(self, case: str) -> None:
        """Count a finished iteration; write a line if it is due."""
        self._tally.open[case] += 1
        self._tell(is_end=False)

    def finished(self, case: CaseResult) -> None:
        """Count a finished case; write a line if it is due."""
        self._tally.add(case)
        self._tell(is_end=self._tally.done == self._total)

    def _tell(self, *, is_end: bool) -> None:
        tally = self._tally
        now = self._clock()
        if is_end or now - self._last >= _LOG_INTERVAL_S:
            self._last = now
            of_all = f"{tally.done:,}" if self._total is None else f"{tally.done:,}/{self._total:,}"
            rest = (tally.outcomes, duration(tally.elapsed_s), tally.rate, tally.left, tally.cost)
            unit = self._activity[1] if (self._total or tally.done) == 1 else f"{self._activity[1]}s"
            self._write(f"{of_all} {unit}, {', '.join(filter(None, rest))}")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class PassProgress(LineProgress):
    """Progress of all passes after the first run: one count, a periodic line."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(None, stream, ("running", "further iteration"), time.monotonic)

    def __enter__(self) -> Self:
        return self


# Seconds after which a step is named.
_LONG_S = 5.0
_REDRAWN_PER_SECOND = 4
_MOST_FAILURES = 8
_MOST_RETRIES = 3
_MOST_STEPS = 4
_LINES_OF_A_FAILURE = 2
_LONGEST_TEXT = 500
_BAR = 48
_SHORTEST_BAR = 10

_Parts = list[Part]

_COUNTS: tuple[tuple[str, str, Style], ...] = (
    ("passed", "pass", "green"),
    ("failed", "fail", "bold red"),
    ("error", "error", "magenta"),
)
_SIGNS: dict[str, Part] = {"failed": ("✗", "bold red"), "error": ("!", "bold magenta")}


class LiveProgress(Progress):
    """Draws the lines of :meth:`lines` again several times a second; nothing of it stays when the run ends."""

    def __init__(self, total: int | None, stream: TextIO, title: str, clock: Callable[[], float]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._clock = clock
        self._title = title
        self._tally = ProgressTally(total, clock(), clock)
        self._failures: deque[CaseResult] = deque(maxlen=_MOST_FAILURES)
        self._steps: dict[Step, float] = {}
        self._retries: dict[Step, tuple[Retry, float]] = {}
        # A thread draws, while the run changes what it draws.
        self._lock = threading.Lock()
        # Rich handles NO_COLOR.
        self._console = Console(file=stream, highlight=False, emoji=False, markup=False)
        self._display = Live(
            console=self._console,
            get_renderable=self._drawn,
            refresh_per_second=_REDRAWN_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._tally.started = self._clock()
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def iterated(self, case: str) -> None:
        """Count a finished iteration."""
        with self._lock:
            self._tally.open[case] += 1

    def finished(self, case: CaseResult) -> None:
        """Count a finished case, and show it if it did not pass."""
        with self._lock:
            self._tally.add(case)
            if case.status in _SIGNS:
                self._failures.append(case)

    def began(self, step: Step) -> None:
        """Note when a step began."""
        with self._lock:
            self._steps[step] = self._clock()

    def retrying(self, step: Step, retry: Retry) -> None:
        """Show why a step waits."""
        with self._lock:
            self._retries[step] = (retry, self._clock())

    def ended(self, step: Step) -> None:
        """Forget a step."""
        with self._lock:
            self._steps.pop(step, None)
            self._retries.pop(step, None)

    def _drawn(self) -> Text:
        from rich.text import Text

        lines = self.lines(self._console.width)
        return Text("\n").join(Text.assemble(*line, no_wrap=True, overflow="ellipsis") for line in lines)

    def lines(self, columns: int) -> list[_Parts]:
        """Return what is to be shown now, for a number of cells in a line."""
        with self._lock:
            now = self._clock()
            shown: list[_Parts] = [[(texts.cut(_text(self._title), columns), "dim")]] if self._title else []
            for case in self._failures:
                shown += _failure(case, columns)
            shown += self._bar(columns)
            shown += self._waiting(now, columns)
            shown += self._running(now, columns)
        return shown

    def _bar(self, columns: int) -> Iterator[_Parts]:
        tally = self._tally
        of_all = f"{tally.done:,}" if tally.total is None else f"{tally.done:,}/{tally.total:,}"
        figures: _Parts = [(of_all, "bold")]
        figures += [
            (f"  {tally.counts[name]:,} {word}", style) for name, word, style in _COUNTS if tally.counts[name]
        ]
        rest = " · ".join(filter(None, (tally.rate, tally.left.removeprefix("about "), tally.cost)))
        figures += [(f"  {rest}", "dim")] if rest else []
        taken = sum(texts.width(text) for text, _ in figures)
        length = min(_BAR, columns - taken - 2)
        if tally.total is None:
            yield figures
        elif length >= _SHORTEST_BAR:
            yield [*self._drawn_bar(length), ("  ", ""), *figures]
        else:
            yield self._drawn_bar(min(_BAR, columns))
            yield figures

    def _drawn_bar(self, length: int) -> _Parts:
        tally = self._tally
        parts: _Parts = []
        drawn = counted = 0
        amounts: list[tuple[int, Style]] = [(tally.iterations[name], style) for name, _, style in _COUNTS]
        for amount, style in (*amounts, (tally.open.total(), "dim")):
            counted += amount
            end = round(length * counted / max(1, tally.total or 1))
            parts.append(("━" * (end - drawn), style))
            drawn = max(drawn, end)
        return [*parts, ("─" * (length - drawn), "dim")]

    def _waiting(self, now: float, columns: int) -> Iterator[_Parts]:
        for step, (retry, since) in list(self._retries.items())[:_MOST_RETRIES]:
            left = max(0.0, since + retry.wait_s - now)
            when = f" (try {retry.attempt} of {retry.attempts}{f', again in {left:.0f} s' if left else ''})"
            name = f"{_text(step.case)}  "
            room = max(_SHORTEST_BAR, columns - texts.width(name) - len(when) - len("retry    "))
            yield [("retry    ", "dim"), (name, ""), (texts.cut(_text(retry.reason), room), "dim"), (when, "dim")]

    def _running(self, now: float, columns: int) -> Iterator[_Parts]:
        slow = [(now - since, step) for step, since in self._steps.items() if now - since > _LONG_S]
        slow.sort(key=lambda item: -item[0])
        if not slow:
            return
        line: _Parts = [("running  ", "dim")]
        taken, named = len("running  "), 0
        for seconds, step in slow[:_MOST_STEPS]:
            what = f" {step.what}" if step.what else ""
            text = f"{_text(step.case)}{what}  {duration(int(seconds)).replace('.0 s', ' s')}  "
            if named and taken + texts.width(text) > columns - len("+ 99"):
                break
            line.append((text, "yellow"))
            taken += texts.width(text)
            named += 1
        others = len(self._steps) - named
        yield [*line, (f"+ {others:,}", "dim")] if others else line


def _failure(case: CaseResult, columns: int) -> Iterator[_Parts]:
    sign, style = _SIGNS[case.status]
    parts: tuple[Part, ...] = ((f"{sign} ", style), (_text(case.name), ""), (f"  {_text(words.why(case))}", "dim"))
    first, *others = laid_out(Line(parts), columns)
    yield first
    if len(others) >= _LINES_OF_A_FAILURE:
        others = [[*others[0][:-1], (texts.cut(f"{others[0][-1][0]} …", columns - 2), "dim")]]
    yield from others


def _text(text: str) -> str:
    return escape.terminal(shortened(text, _LONGEST_TEXT), wrapped=True)
