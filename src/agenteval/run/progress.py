"""Shows a run's progress, rate and cost: periodic plain lines in a log; ``live.py`` draws on terminals."""

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


@dataclass(eq=False, slots=True)
class Step:
    """Something that takes time: a turn of a conversation, or the scoring of an iteration. Each one is unique.

    Attributes:
        case: name of the case.
        what: ``turn 2``, ``scoring``; empty in a case of one turn.
    """

    case: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt that is repeated.

    Attributes:
        reason: why it failed.
        attempt: the next attempt, from 2.
        attempts: how many there may be.
        wait_s: seconds before it.
    """

    reason: str
    attempt: int
    attempts: int
    wait_s: float


class Progress(Protocol):
    """Receives every finished case, and the steps in progress."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def finished(self, case: CaseResult) -> None:
        """Count a finished case."""
        ...

    def began(self, step: Step) -> None:
        """Note that a step has begun."""
        ...

    def retrying(self, step: Step, retry: Retry) -> None:
        """Note that a step waits for its next attempt."""
        ...

    def ended(self, step: Step) -> None:
        """Note that a step has ended."""
        ...


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
    """Return the progress display for a stream.

    Args:
        total: number of units to run; ``None`` if unknown.
        stream: where to write; progress belongs on stderr.
        activity: the activity, and its units.
        bar: draw a bar; otherwise write lines.
        quiet: show nothing.
        title: what is run, for the first line of a terminal.
        clock: monotonic, in seconds.
    """
    if quiet:
        return SilentProgress()
    if bar:
        from agenteval.run.live import LiveProgress

        return LiveProgress(total, stream, activity, title, clock)
    return LineProgress(total, stream, activity, clock)


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

    def began(self, step: Step) -> None:
        """Do nothing."""

    def retrying(self, step: Step, retry: Retry) -> None:
        """Do nothing."""

    def ended(self, step: Step) -> None:
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


class LineProgress(SilentProgress):
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

    def finished(self, case: CaseResult) -> None:
        """Count a finished case; write a line if it is due."""
        tally = self._tally
        tally.add(case)
        now = self._clock()
        if tally.done == self._total or now - self._last >= _LOG_INTERVAL_S:
            self._last = now
            of_all = f"{tally.done:,}" if self._total is None else f"{tally.done:,}/{self._total:,}"
            rest = (tally.outcomes, duration(tally.elapsed_s), tally.rate, tally.left, tally.cost)
            unit = self._activity.unit if (self._total or tally.done) == 1 else f"{self._activity.unit}s"
            self._write(f"{of_all} {unit}, {', '.join(filter(None, rest))}")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)
