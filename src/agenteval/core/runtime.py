"""Helpers for the Python runtime: threads, pauses, optional packages, and the signals that end a run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from importlib.util import find_spec
from threading import Thread
from types import FrameType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agenteval.core.errors import AgentEvalError, ending_signals


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector in the block, and exclude the objects created in it from later collections."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


ResultT = TypeVar("ResultT")


async def in_thread(function: Callable[[], ResultT]) -> ResultT:
    """Run a blocking function in a thread.

    Unlike with ``asyncio.to_thread``, a call that was cancelled or timed out does not keep the program
    alive.

    Raises:
        AgentEvalError: the function raised an exception that would end a program, a task or an iterator, such as
            ``SystemExit``.
    """
    future: Future[ResultT] = Future()

    def work() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting caller
            future.set_exception(_harmless(error))

    # The thread gets the caller's context, which may contain a confinement.
    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    return await asyncio.wrap_future(future)


async def contained(work: Awaitable[ResultT]) -> ResultT:
    """Await a caller's code in a separate task, so that cancelling that task does not cancel the current one.

    Raises:
        CancelledError: the current task is being cancelled.
        AgentEvalError: the code raised an exception that would end a program, a task or an iterator, such as
            ``KeyboardInterrupt``.
    """
    try:
        return await asyncio.ensure_future(_raising_harmless(work))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _harmless(error) from error
    finally:
        if asyncio.iscoroutine(work):
            # A task that is cancelled before it starts would leave it unused, which Python warns of.
            work.close()


async def _raising_harmless(work: Awaitable[ResultT]) -> ResultT:
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        # Such an exception would end the event loop.
        raise _harmless(error) from error


def _harmless(error: BaseException) -> Exception:
    """Return an exception that a future can carry and that concerns only the code that waits for it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    text = str(error)
    wrapped = AgentEvalError(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    wrapped.__cause__ = error
    return wrapped


DISTRIBUTION = "agenteval-action"
# Extra → modules of it that are used.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "files": ("lxml", "mammoth", "markdownify", "openpyxl", "pptx", "pypdfium2", "xlrd"),
    "azure": ("azure.ai.evaluation",),
    "local": ("model2vec",),
}


def missing_extra(extra: str) -> str | None:
    """Return the command that installs a missing extra; ``None`` if it is installed. Nothing is imported."""
    if all(map(_is_installed, _MODULES[extra])):
        return None
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The parent package is missing as well.
        return False


# The Dockerfile sets it.
_VARIABLE = "AGENTEVAL_CONTAINER"
_HERE = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - clients use it as an address too
_HINT = (
    "; in the action, localhost is its container, not the machine of the job: use a service container, or "
    "`uses: org/agenteval-action/native@v1`"
)


def is_in_image(environment: Mapping[str, str]) -> bool:
    """Return whether a process with this environment runs in the image."""
    return bool(environment.get(_VARIABLE))


def localhost_hint(address: str) -> str:
    """Return the end of a message about an address that cannot be reached; empty outside of the image."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname
    except ValueError:
        return ""
    return _HINT if host in _HERE and is_in_image(os.environ) else ""


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
