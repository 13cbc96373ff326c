"""Shows how far a run is, how fast, and at what cost: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TextIO

from agenteval.report.view.view import count, duration, money
from agenteval.results.model import CaseResult

# In a log, a line at most this often (seconds): enough to see that a run is alive.
_LOG_INTERVAL_S = 10.0


class Progress(Protocol):
    """Told about every finished case."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def finished(self, case: CaseResult) -> None:
        """One more case is done."""
        ...


def make_progress(
    total: int | None,
    stream: TextIO,
    doing: str,
    *,
    bar: bool,
    quiet: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """The progress display for a stream.

    Args:
        total: cases to run; ``None`` where that is not known before.
        stream: where to write; progress belongs on stderr.
        doing: what is done with the cases, ``running``.
        bar: draw a bar; otherwise write lines.
        quiet: show nothing.
        clock: monotonic, in seconds.
    """
    if quiet:
        return SilentProgress()
    kind = BarProgress if bar else LineProgress
    return kind(total, stream, doing, clock)


class SilentProgress:
    """Shows nothing."""

    def __enter__(self) -> SilentProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, case: CaseResult) -> None:
        """Nothing to show."""


@dataclass
class Tally:
    """What has finished, and what it took.

    Attributes:
        total: cases to run; ``None`` where that is not known before.
        started: when the first began, in seconds of the clock.
        clock: monotonic, in seconds.
        cost_usd: of agents, as they say, and of judges.
    """

    total: int | None
    started: float
    clock: Callable[[], float] = time.monotonic
    counts: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0

    def add(self, case: CaseResult) -> None:
        """One more case."""
        self.counts[case.status] += 1
        for iteration in case.iterations:
            for turn in iteration.turns:
                self.cost_usd += (turn.usage.cost_usd or 0.0) if turn.usage else 0.0
                self.cost_usd += sum(score.cost_usd or 0.0 for score in turn.scores)

    @property
    def done(self) -> int:
        """How many cases have finished."""
        return self.counts.total()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    @property
    def outcomes(self) -> str:
        """``12 passed, 1 failed``."""
        names = ("passed", "failed", "error", "skipped")
        return ", ".join(f"{self.counts[name]:,} {name}" for name in names if self.counts[name])

    @property
    def rate(self) -> str:
        """``2.5/s`` or ``12/min``; empty before anything has finished."""
        if not self.done or self.elapsed_s <= 0:
            return ""
        per_second = self.done / self.elapsed_s
        return f"{per_second:.1f}/s" if per_second >= 1 else f"{60 * per_second:.1f}/min"

    @property
    def left(self) -> str:
        """``about 2 min 5 s left``, if the rest takes as long as what has finished."""
        if not self.done or self.total is None or self.done >= self.total:
            return ""
        return f"about {duration(self.elapsed_s / self.done * (self.total - self.done))} left"

    @property
    def cost(self) -> str:
        """What it cost so far; empty where nothing did."""
        return money(self.cost_usd) if self.cost_usd else ""


class LineProgress:
    """For logs: a line now and then."""

    def __init__(self, total: int | None, stream: TextIO, doing: str, clock: Callable[[], float]) -> None:
        self._total = total
        self._doing = doing
        self._stream = stream
        self._clock = clock
        self._tally = Tally(total, clock(), clock)
        self._last = 0.0

    def __enter__(self) -> LineProgress:
        self._last = self._clock()
        self._tally = Tally(self._total, self._last, self._clock)
        self._write(f"{self._doing} {'traces' if self._total is None else count(self._total, 'case')}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, case: CaseResult) -> None:
        """Count; write if it is time."""
        tally = self._tally
        tally.add(case)
        now = self._clock()
        if tally.done == self._total or now - self._last >= _LOG_INTERVAL_S:
            self._last = now
            of_all = f"{tally.done:,}" if self._total is None else f"{tally.done:,}/{self._total:,}"
            rest = (tally.outcomes, duration(tally.elapsed_s), tally.rate, tally.left, tally.cost)
            self._write(f"{of_all} {'case' if self._total == 1 else 'cases'}, {', '.join(filter(None, rest))}")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class BarProgress:
    """For people: a bar with rate, remaining time and cost."""

    def __init__(self, total: int | None, stream: TextIO, doing: str, clock: Callable[[], float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._clock = clock
        self._tally = Tally(total, clock(), clock)
        self._display = RichProgress(
            TextColumn(doing),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            # Rich knows NO_COLOR itself.
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._display.add_task("cases", total=total, outcome="")

    def __enter__(self) -> BarProgress:
        self._tally.started = self._clock()
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def finished(self, case: CaseResult) -> None:
        """Move the bar."""
        tally = self._tally
        tally.add(case)
        parts = (tally.outcomes, tally.rate, tally.left, tally.cost)
        self._display.update(self._task, advance=1, outcome=" · ".join(filter(None, parts)))
