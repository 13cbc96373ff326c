"""Limits concurrent calls and calls per minute."""

from __future__ import annotations

import asyncio


class RateLimiter:
    """Limits calls; use it as an asynchronous context manager around each call."""

    def __init__(self, concurrency: int, per_minute: int | None = None) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._interval_s = 60 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        try:
            if self._interval_s:
                await self._turn()
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()

    async def _turn(self) -> None:
        """Wait for the next start; starts are evenly spaced, because bursts exceed providers' limits."""
        now = asyncio.get_running_loop().time()
        start = max(self._next, now)
        self._next = start + self._interval_s
        await asyncio.sleep(start - now)
