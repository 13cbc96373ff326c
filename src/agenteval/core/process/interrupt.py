"""Ends a run at the first signal, so that finished cases can still be reported."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def until_signal(work: Coroutine[Any, Any, None]) -> int | None:
    """Run a coroutine, and cancel it at the first signal.

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
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not received:
            raise
    return received[0] if received else None
