"""Counts calls and money, and stops before either runs over, however many calls are under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agenteval.llm.model import BudgetSpentError

# What most judge metrics need at most.
_CALLS_OF_A_MEASUREMENT = 6


@dataclass(frozen=True)
class Limits:
    """What a run may spend; ``None`` is no limit."""

    max_calls: int | None = None
    max_cost_usd: float | None = None


@dataclass
class Budget:
    """The one account of a run.

    Every request sent counts as a call, a repeated one too. As the price of a call is known only
    afterwards, each call under way reserves the dearest one so far; while no price is known yet,
    calls go one by one.
    """

    limits: Limits = field(default_factory=Limits)
    calls: int = 0
    cost_usd: float = 0.0
    refused: int = 0
    _under_way: int = 0
    _measuring: int = 0
    _dearest: float | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def measurement(self) -> AsyncIterator[None]:
        """Hold this while several calls make one score.

        Near the end of the calls measurements run one after the other: many at once would each get some
        of the calls that are left, and none would come to a score.
        """
        async with self._changed:
            await self._changed.wait_for(self._has_room_to_measure)
            self._measuring += 1
        try:
            yield
        finally:
            async with self._changed:
                self._measuring -= 1
                self._changed.notify_all()

    def _has_room_to_measure(self) -> bool:
        if self.limits.max_calls is None or not self._measuring:
            return True
        return self.limits.max_calls - self.calls >= (self._measuring + 1) * _CALLS_OF_A_MEASUREMENT

    async def open(self) -> None:
        """Reserve one call.

        Raises:
            BudgetSpentError: there is nothing left for it.
        """
        async with self._changed:
            while self._must_wait():
                await self._changed.wait()
            problem = self._spent()
            if problem:
                self.refused += 1
                raise BudgetSpentError(problem)
            self.calls += 1
            self._under_way += 1

    async def settle(self, cost_usd: float | None) -> None:
        """End a call that ``open`` reserved, with its price if it is known."""
        async with self._changed:
            self._under_way -= 1
            if cost_usd is not None:
                self.cost_usd += cost_usd
                self._dearest = max(self._dearest or 0.0, cost_usd)
            self._changed.notify_all()

    def _must_wait(self) -> bool:
        """Whether a call under way decides if there is room for another one."""
        limit = self.limits.max_cost_usd
        if limit is None or not self._under_way or self._calls_spent():
            return False
        return self._dearest is None or self.cost_usd + (self._under_way + 1) * self._dearest > limit

    def _spent(self) -> str | None:
        if self._calls_spent():
            return f"max_llm_calls ({self.limits.max_calls}) is used up"
        limit = self.limits.max_cost_usd
        if limit is None:
            return None
        if self.cost_usd >= limit or self.cost_usd + (self._dearest or 0.0) > limit:
            return f"max_cost_usd ({limit:g}) is used up: {self.cost_usd:.4f} USD spent"
        return None

    def _calls_spent(self) -> bool:
        return self.limits.max_calls is not None and self.calls >= self.limits.max_calls
