"""Blocking functions in threads, and addresses that the image cannot reach."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agenteval.core.errors import AgentEvalError
from agenteval.core.runtime import contained, in_thread, localhost_hint


def test_an_exception_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 / 0))


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(3), KeyboardInterrupt(3), asyncio.CancelledError(3)])
def test_what_would_end_more_than_the_call_is_wrapped(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(AgentEvalError, match=f"{type(error).__name__}: 3"):
        asyncio.run(in_thread(fail))


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
    # The call ends after its caller, when the loop is closed.
    release.set()
    assert ended.wait(60)
    time.sleep(0.01)


def test_a_callers_coroutine_that_is_cancelled_before_it_starts_is_not_left_unused() -> None:
    async def unused() -> None:
        raise AssertionError

    async def run() -> None:
        task = asyncio.create_task(contained(unused()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    # Python warns of a coroutine that was never awaited; tests fail at warnings.
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_only_addresses_of_the_image_itself_get_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_CONTAINER", "1")
    hinted = ("http://localhost:8080/x", "https://127.0.0.1", "http://[::1]:1", "localhost:11434", "0.0.0.0:80")
    plain = ("http://agent:8080", "https://localhost.example", "127.0.0.10:80", "http://[::1", "")

    assert {address: bool(localhost_hint(address)) for address in (*hinted, *plain)} == {
        **dict.fromkeys(hinted, True),
        **dict.fromkeys(plain, False),
    }

    monkeypatch.delenv("AGENTEVAL_CONTAINER")
    assert {localhost_hint(address) for address in hinted} == {""}
