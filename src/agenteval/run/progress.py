"""Shows a run's progress, rate and cost: a bar on a terminal, periodic plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TextIO

from agenteval.report.view.view import count, duration, money
from agenteval.results.case import CaseResult

# Seconds between two lines in a log.
_LOG_INTERVAL_S = 10.0


@dataclass(frozen=True)
class Activity:
    """What a run does, and what it counts.

    Attributes:
        doing: the activity, such as ``running``.
        unit: noun of what is counted.
        statuses: returns the status of each unit of a finished case.
    """

    doing: str
    unit: str
    statuses: Callable[[CaseResult], Iterable[str]]


def _of_case(case: CaseResult) -> Iterable[str]:
    return (case.status,)


def _of_iterations(case: CaseResult) -> Iterable[str]:
    return (iteration.status for iteration in case.iterations)


RUNNING = Activity("running", "case", _of_case)
SCORING = Activity("scoring", "trace", _of_case)
# A confirmation run contains a case several times.
CONFIRMING = Activity("confirming with", "iteration", _of_iterations)


class Progress(Protocol):
    """Receives every finished case."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def finished(self, case: CaseResult) -> None:
        """Count a finished case."""
        ...


def make_progress(
    total: int | None,
    stream: TextIO,
    activity: Activity,
    *,
    bar: bool,
    quiet: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Progress:
    """Return the progress display for a stream.

    Args:
        total: number of units to run; ``None`` if unknown.
        stream: where to write; progress belongs on stderr.
        activity: the activity, and its units.
        bar: draw a bar; otherwise write lines.
        quiet: show nothing.
        clock: monotonic, in seconds.
    """
    if quiet:
        return SilentProgress()
    kind = BarProgress if bar else LineProgress
    return kind(total, stream, activity, clock)


class SilentProgress:
    """Shows nothing."""

    def __enter__(self) -> SilentProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, case: CaseResult) -> None:
        """Do nothing."""


@dataclass
class Tally:
    """The number, time and cost of finished cases.

    Attributes:
        total: number of units to run; ``None`` if unknown.
        activity: the units.
        started: start of the first case, in seconds of the clock.
        clock: monotonic, in seconds.
        cost_usd: cost of agents, as they report it, and of judges.
    """

    total: int | None
    activity: Activity
    started: float
    clock: Callable[[], float] = time.monotonic
    counts: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0

    def add(self, case: CaseResult) -> None:
        """Count a finished case."""
        self.counts.update(self.activity.statuses(case))
        self.cost_usd += sum(turn.usage.cost_usd or 0.0 for turn in case.turns if turn.usage)
        self.cost_usd += sum(score.cost_usd or 0.0 for score in case.scores)

    @property
    def done(self) -> int:
        """The number of finished units."""
        return self.counts.total()

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


class LineProgress:
    """Progress for logs: a periodic line."""

    def __init__(self, total: int | None, stream: TextIO, activity: Activity, clock: Callable[[], float]) -> None:
        self._total = total
        self._activity = activity
        self._stream = stream
        self._clock = clock
        self._tally = Tally(total, activity, clock(), clock)
        self._last = 0.0

    def __enter__(self) -> LineProgress:
        self._last = self._clock()
        self._tally = Tally(self._total, self._activity, self._last, self._clock)
        unit = self._activity.unit
        self._write(f"{self._activity.doing} {f'{unit}s' if self._total is None else count(self._total, unit)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, case: CaseResult) -> None:
        """Count a finished case; write a line if it is due."""
        tally = self._tally
        tally.add(case)
        now = self._clock()
        if tally.done == self._total or now - self._last >= _LOG_INTERVAL_S:
            self._last = now
            of_all = f"{tally.done:,}" if self._total is None else f"{tally.done:,}/{self._total:,}"
            rest = (tally.outcomes, duration(tally.elapsed_s), tally.rate, tally.left, tally.cost)
            unit = self._activity.unit if self._total == 1 else f"{self._activity.unit}s"
            self._write(f"{of_all} {unit}, {', '.join(filter(None, rest))}")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class BarProgress:
    """Progress for terminals: a bar with rate, remaining time and cost."""

    def __init__(self, total: int | None, stream: TextIO, activity: Activity, clock: Callable[[], float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._clock = clock
        self._tally = Tally(total, activity, clock(), clock)
        self._display = RichProgress(
            TextColumn(activity.doing),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            # Rich handles NO_COLOR.
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._display.add_task(f"{activity.unit}s", total=total, outcome="")

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
        self._display.update(self._task, completed=tally.done, outcome=" · ".join(filter(None, parts)))
