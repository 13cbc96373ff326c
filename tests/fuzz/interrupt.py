"""Ends what takes too long, in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM}


@contextmanager
def raised_after(seconds: float, error: type[Exception], timer: int = signal.ITIMER_REAL) -> Iterator[None]:
    """Raise an error in the body if it is not done by then.

    Args:
        seconds: how long it may take.
        error: what is raised.
        timer: which time counts: ``signal.ITIMER_REAL``, or ``signal.ITIMER_VIRTUAL`` for that of the processor.
    """
    number = _SIGNALS[timer]

    def stop(signum: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(number, stop)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
