"""Helpers for the Python runtime: blocking calls in threads, pauses of the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector while many lasting objects are made, and exclude them from later collections."""
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

    Unlike with ``asyncio.to_thread``, a call that was cancelled or took too long does not keep the
    program from ending.
    """
    future: Future[ResultT] = Future()

    def work() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)

    # Keeps the context of the caller, which may have a confinement.
    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    return await asyncio.wrap_future(future)
