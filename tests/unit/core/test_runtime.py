"""Blocking functions in threads: what they return, what they raise, and giving them up."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agenteval.core.runtime import in_thread


def test_what_it_returns() -> None:
    async def run() -> tuple[str, str]:
        return await in_thread(lambda: threading.current_thread().name), threading.current_thread().name

    there, here = asyncio.run(run())
    assert there != here


def test_what_it_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 / 0))


def test_giving_up_waits_for_nothing() -> None:
    release = threading.Event()
    ended = threading.Event()

    def blocked() -> None:
        release.wait()
        ended.set()

    async def run() -> None:
        async with asyncio.timeout(0.01):
            await in_thread(blocked)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    # Its end concerns nobody any more, although the loop is closed.
    release.set()
    assert ended.wait(60)
    time.sleep(0.01)
