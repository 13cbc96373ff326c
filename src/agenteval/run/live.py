"""Shows a run on a terminal while it runs: failures as they happen, a bar, and what takes long."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from agenteval.core.masking import shortened
from agenteval.core.text import cells, escape
from agenteval.report.terminal.lines import Line, Part, Style, laid_out
from agenteval.report.view import view
from agenteval.report.view.view import duration
from agenteval.results.case import CaseResult
from agenteval.run.progress import Activity, Retry, Step, Tally

if TYPE_CHECKING:
    from rich.text import Text

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


class LiveProgress:
    """Draws the lines of :meth:`lines` again several times a second; nothing of it stays when the run ends."""

    def __init__(
        self, total: int | None, stream: TextIO, activity: Activity, title: str, clock: Callable[[], float]
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._clock = clock
        self._title = title
        self._tally = Tally(total, activity, clock(), clock)
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

    def __enter__(self) -> LiveProgress:
        self._tally.started = self._clock()
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

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
            shown: list[_Parts] = [[(cells.cut(_text(self._title), columns), "dim")]] if self._title else []
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
        taken = sum(cells.width(text) for text, _ in figures)
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
        for name, _, style in _COUNTS:
            counted += tally.counts[name]
            end = round(length * counted / max(1, tally.total or 1))
            parts.append(("━" * (end - drawn), style))
            drawn = max(drawn, end)
        return [*parts, ("─" * (length - drawn), "dim")]

    def _waiting(self, now: float, columns: int) -> Iterator[_Parts]:
        for step, (retry, since) in list(self._retries.items())[:_MOST_RETRIES]:
            left = max(0.0, since + retry.wait_s - now)
            when = f" (try {retry.attempt} of {retry.attempts}{f', again in {left:.0f} s' if left else ''})"
            name = f"{_text(step.case)}  "
            room = max(_SHORTEST_BAR, columns - cells.width(name) - len(when) - len("retry    "))
            yield [("retry    ", "dim"), (name, ""), (cells.cut(_text(retry.reason), room), "dim"), (when, "dim")]

    def _running(self, now: float, columns: int) -> Iterator[_Parts]:
        """Yield the steps that take long, the longest first, and the number of the others."""
        slow = [(now - since, step) for step, since in self._steps.items() if now - since > _LONG_S]
        slow.sort(key=lambda item: -item[0])
        if not slow:
            return
        line: _Parts = [("running  ", "dim")]
        taken, named = len("running  "), 0
        for seconds, step in slow[:_MOST_STEPS]:
            what = f" {step.what}" if step.what else ""
            text = f"{_text(step.case)}{what}  {duration(int(seconds)).replace('.0 s', ' s')}  "
            if named and taken + cells.width(text) > columns - len("+ 99"):
                break
            line.append((text, "yellow"))
            taken += cells.width(text)
            named += 1
        others = len(self._steps) - named
        yield [*line, (f"+ {others:,}", "dim")] if others else line


def _failure(case: CaseResult, columns: int) -> Iterator[_Parts]:
    sign, style = _SIGNS[case.status]
    parts: tuple[Part, ...] = ((f"{sign} ", style), (_text(case.name), ""), (f"  {_text(view.why(case))}", "dim"))
    first, *others = laid_out(Line(parts), columns)
    yield first
    if len(others) >= _LINES_OF_A_FAILURE:
        others = [[*others[0][:-1], (cells.cut(f"{others[0][-1][0]} …", columns - 2), "dim")]]
    yield from others


def _text(text: str) -> str:
    return escape.terminal(shortened(text, _LONGEST_TEXT), wrapped=True)
