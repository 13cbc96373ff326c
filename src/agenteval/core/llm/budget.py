"""Counts calls and cost, and refuses calls beyond their limits, also with many concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agenteval.core.llm.errors import BudgetSpentError

# Upper estimate of the calls of one judge metric.
_CALLS_OF_A_MEASUREMENT = 6


@dataclass(frozen=True)
class Limits:
    """The limits of a run; ``None`` means no limit."""

    max_calls: int | None = None
    max_cost_usd: float | None = None


@dataclass
class _Prices:
    """The highest prices of calls to one model so far; 0 if prices are unknown."""

    per_character: float = 0.0
    answer: float = 0.0

    def learn(self, size: int, prompt_usd: float, answer_usd: float) -> None:
        self.per_character = max(self.per_character, prompt_usd / max(size, 1))
        self.answer = max(self.answer, answer_usd)

    def expect(self, size: int) -> float:
        return self.per_character * size + self.answer


@dataclass(eq=False)
class BudgetReservation:
    """A call under way.

    Attributes:
        model: label of the model.
        size: length of the prompt in characters.
        reserved_usd: reserved cost; ``None`` while the model's prices are unknown.
        answered: whether the call succeeded.
        cost_usd: price, known after the answer; ``None`` if it stays unknown.
        prompt_usd: the prompt's part of the price.
    """

    model: str
    size: int
    reserved_usd: float | None
    answered: bool = False
    cost_usd: float | None = None
    prompt_usd: float | None = None


@dataclass
class Budget:
    """The budget of a run, shared by all its calls.

    Every request counts as a call, retries included. The price of a call is known only afterwards, so each call
    under way reserves its expected cost: its length at the model's highest rate so far, plus the price of the most
    expensive answer. The first calls to a model run one by one. The run exceeds ``max_cost_usd`` only by the amount
    by which calls cost more than expected.
    """

    limits: Limits = field(default_factory=Limits)
    calls: int = 0
    cost_usd: float = 0.0
    refused: int = 0
    _under_way: list[BudgetReservation] = field(default_factory=list)
    _measuring: int = 0
    _prices: dict[str, _Prices] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def measurement(self) -> AsyncIterator[None]:
        """Enclose the calls that produce one score.

        When few calls are left, measurements run one after the other. Otherwise concurrent measurements would share
        the remaining calls, and none would finish.
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

    async def open(self, model: str, size: int) -> BudgetReservation:
        """Reserve one call with a prompt of ``size`` characters.

        Raises:
            BudgetSpentError: the budget does not allow the call.
        """
        async with self._changed:
            while self._must_wait(expected := self._expected(model, size)):
                await self._changed.wait()
            problem = self._spent(expected)
            if problem:
                self.refused += 1
                raise BudgetSpentError(problem)
            booking = BudgetReservation(model, size, expected)
            self.calls += 1
            self._under_way.append(booking)
            return booking

    async def settle(self, booking: BudgetReservation) -> None:
        """Close a reservation, and record the call's cost."""
        async with self._changed:
            self._under_way.remove(booking)
            if booking.answered:
                prices = self._prices.setdefault(booking.model, _Prices())
                if booking.cost_usd is not None:
                    self.cost_usd += booking.cost_usd
                    prompt_usd = booking.prompt_usd or 0.0
                    prices.learn(booking.size, prompt_usd, booking.cost_usd - prompt_usd)
            self._changed.notify_all()

    def _expected(self, model: str, size: int) -> float | None:
        prices = self._prices.get(model)
        return None if prices is None else prices.expect(size)

    def _must_wait(self, expected: float | None) -> bool:
        """Return whether the call can be decided only after a call under way has ended."""
        limit = self.limits.max_cost_usd
        if limit is None or not self._under_way or self._calls_spent():
            return False
        reserved = [booking.reserved_usd for booking in self._under_way]
        if expected is None:
            return None in reserved
        return self.cost_usd + sum(item or 0.0 for item in reserved) + expected > limit

    def _spent(self, expected: float | None) -> str | None:
        if self._calls_spent():
            return f"max_llm_calls ({self.limits.max_calls}) is used up"
        limit = self.limits.max_cost_usd
        if limit is None:
            return None
        if self.cost_usd >= limit or self.cost_usd + (expected or 0.0) > limit:
            return f"max_cost_usd ({limit:g}) is used up: {self.cost_usd:.4f} USD spent"
        return None

    def _calls_spent(self) -> bool:
        return self.limits.max_calls is not None and self.calls >= self.limits.max_calls
