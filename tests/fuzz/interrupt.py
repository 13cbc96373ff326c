"""Ends what takes too long, in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM}


@contextmanager
def raised_after(seconds: float, error: type[Exception], timer: int = signal.ITIMER_REAL) -> Iterator[None]:
    """Raise an error in the body if it is not done by then; ``ITIMER_VIRTUAL`` counts the processor's time."""
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
