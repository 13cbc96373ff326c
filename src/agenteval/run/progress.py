"""Shows how far a run is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import Protocol, TextIO

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


def make_progress(total: int | None, stream: TextIO, doing: str, *, bar: bool, quiet: bool) -> Progress:
    """The progress display for a stream.

    Args:
        total: cases to run; ``None`` where that is not known before.
        stream: where to write; progress belongs on stderr.
        doing: what is done with the cases, ``running``.
        bar: draw a bar; otherwise write lines.
        quiet: show nothing.
    """
    if quiet:
        return SilentProgress()
    return BarProgress(total, stream, doing) if bar else LineProgress(total, stream, doing)


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


class LineProgress:
    """For logs: how many are done and how many of those did not pass."""

    def __init__(self, total: int | None, stream: TextIO, doing: str) -> None:
        self._total = total
        self._doing = doing
        self._noun = "case" if total == 1 else "cases"
        self._stream = stream
        self._counts: Counter[str] = Counter()
        self._started = self._last = 0.0

    def __enter__(self) -> LineProgress:
        self._started = self._last = time.monotonic()
        self._write(f"{self._doing} traces" if self._total is None else f"{self._doing} {self._total} {self._noun}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, case: CaseResult) -> None:
        """Count; write if it is time."""
        self._counts[case.status] += 1
        done = self._counts.total()
        now = time.monotonic()
        if done == self._total or now - self._last >= _LOG_INTERVAL_S:
            self._last = now
            of_all = "" if self._total is None else f"/{self._total}"
            self._write(f"{done}{of_all} {self._noun}, {describe(self._counts)}, {now - self._started:.1f} s")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class BarProgress:
    """For people: a bar with rate and remaining time."""

    def __init__(self, total: int | None, stream: TextIO, doing: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._counts: Counter[str] = Counter()
        self._display = RichProgress(
            TextColumn(doing),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            TimeRemainingColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._display.add_task("cases", total=total, outcome="")

    def __enter__(self) -> BarProgress:
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def finished(self, case: CaseResult) -> None:
        """Move the bar."""
        self._counts[case.status] += 1
        self._display.update(self._task, advance=1, outcome=describe(self._counts))


def describe(counts: Counter[str]) -> str:
    """``12 passed, 1 failed``."""
    return ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "error", "skipped") if counts[name])
