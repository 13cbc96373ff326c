"""Ends a run at the first signal, and lets its reports be written before a later signal takes effect."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import FrameType
from typing import Any

from agenteval.core.signals import ending_signals


class Interrupter:
    """Tells a run that it must end.

    A signal before the run has its usual effect. One during the run ends it. After the run, the first one is held, so
    that the reports are written, and the next one has its usual effect.
    """

    def __init__(self) -> None:
        # The handler of a signal may run while its own thread holds the lock.
        self._lock = threading.RLock()
        self._stop: Callable[[int], object] | None = None
        self._is_requested = False
        self._has_run = False
        self._held: int | None = None

    @property
    def held(self) -> int | None:
        """Number of the signal that is held; ``None`` for none."""
        return self._held

    def interrupt(self) -> None:
        """End the current run as SIGINT would, or the next run as soon as it begins; any thread may call it."""
        with self._lock:
            self._is_requested = True
            if self._stop is not None:
                self._stop(signal.SIGINT)

    def take(self, number: int) -> bool:
        """Take a signal; return whether it has no further effect."""
        with self._lock:
            if self._stop is not None:
                self._stop(number)
            elif self._has_run and self._held is None:
                self._held = number
            else:
                return False
            return True

    def begin_reports(self) -> None:
        """Hold the next signal, as after a run."""
        self._has_run = True

    @contextmanager
    def calling(self, stop: Callable[[int], object]) -> Iterator[None]:
        """Call a function with the number of each signal within the block; any thread may call it."""
        with self._lock:
            self._stop = stop
            self._has_run = True
            if self._held is not None or self._is_requested:
                stop(self._held or signal.SIGINT)
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
def signals_taken() -> Iterator[Interrupter]:
    """Let signals end the runs in the block, and hold them for reports; see ``Interrupter``.

    Only the main thread receives signals. In another thread, the interrupter of its context replaces them.
    """
    interrupter = _INTERRUPTER.get() or Interrupter()
    if not _in_main_thread():
        with interruptible(interrupter):
            yield interrupter
        return
    before = {number: signal.getsignal(number) for number in ending_signals()}

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupter.take(number):
            return
        usual = before[signal.Signals(number)]
        if callable(usual):
            usual(number, frame)
        elif usual == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    # `None` is a handler that Python did not install and cannot restore.
    ours = [number for number, usual in before.items() if usual is not None]
    try:
        for number in ours:
            signal.signal(number, handle)
        with interruptible(interrupter):
            yield interrupter
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextmanager
def finished_first() -> Iterator[None]:
    """Finish the block before a signal takes effect; a second signal takes effect at once."""
    with signals_taken() as interrupter:
        interrupter.begin_reports()
        yield
    if interrupter.held is not None:
        signal.raise_signal(interrupter.held)


def held_signal() -> int | None:
    """Return the number of the signal that is held until the reports are written; ``None`` for none."""
    interrupter = _INTERRUPTER.get()
    return None if interrupter is None else interrupter.held


async def until_signal(work: Coroutine[Any, Any, None]) -> int | None:
    """Run a coroutine, and cancel it at the first signal.

    A caller that must not miss a signal after the coroutine calls it inside ``signals_taken``.

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
    taken = _INTERRUPTER.get()
    with (
        nullcontext(taken) if taken is not None else signals_taken() as interrupter,
        _woken(loop),
        interrupter.calling(lambda number: loop.call_soon_threadsafe(stop, number)),
    ):
        try:
            await task
        except asyncio.CancelledError:
            if not received:
                raise
    return received[0] if received else None


@contextmanager
def _woken(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake a waiting loop at a signal: Python runs the handler when the loop continues."""
    if not _in_main_thread() or sys.platform == "win32":
        yield
        return
    ours, systems = socket.socketpair()
    with ours, systems:
        ours.setblocking(False)
        systems.setblocking(False)
        loop.add_reader(ours, ours.recv, 1 << 12)
        before = signal.set_wakeup_fd(systems.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(ours)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
