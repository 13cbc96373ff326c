"""Ends a run at the first signal, so that finished cases can still be reported."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupter:
    """Ends a run in another thread as SIGINT would; threads do not receive signals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = False
        self._stop: Callable[[], object] | None = None

    def interrupt(self) -> None:
        """End the current run, or the next run as soon as it begins."""
        with self._lock:
            self._requested = True
            if self._stop is not None:
                self._stop()

    @contextmanager
    def calling(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call a function on an interruption within the block; any thread may call it."""
        with self._lock:
            self._stop = stop
            if self._requested:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = None


_INTERRUPTER: ContextVar[Interrupter | None] = ContextVar("interrupter", default=None)


@contextmanager
def interruptible(interrupter: Interrupter) -> Iterator[None]:
    """Let an interrupter end the runs in the block, and in threads that inherit its context."""
    token = _INTERRUPTER.set(interrupter)
    try:
        yield
    finally:
        _INTERRUPTER.reset(token)


@contextmanager
def handlers_restored() -> Iterator[None]:
    """Restore the signal handlers after the block; only in the main thread."""
    if not _in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # `None` is a handler that Python did not install and cannot restore.
            if handler is not None:
                signal.signal(number, handler)


async def until_signal(work: Coroutine[Any, Any, None]) -> int | None:
    """Run a coroutine, and cancel it at the first signal.

    Signals are handled in the main thread only; in other threads an ``Interrupter`` replaces them.

    Args:
        work: the coroutine; its exceptions are raised here.

    Returns:
        The number of the signal, or ``None`` without one.
    """
    received: list[int] = []
    task = asyncio.create_task(work)

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    if _in_main_thread():
        for number in _SIGNALS:
            loop.add_signal_handler(number, stop, number)
    interrupter = _INTERRUPTER.get() or Interrupter()
    with interrupter.calling(lambda: loop.call_soon_threadsafe(stop, signal.SIGINT)):
        try:
            await task
        except asyncio.CancelledError:
            if not received:
                raise
    return received[0] if received else None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
