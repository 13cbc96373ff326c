"""Helpers for the Python runtime: blocking calls in threads, pauses of the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from agenteval.core.errors import AgentEvalError


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
        Exception: whatever the function raises.
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
        Exception: whatever the code raises.
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
