"""Counts the calls, tokens and cost of models, and refuses calls beyond the limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agenteval.core.llm.models import BudgetSpentError, ModelSpec
from agenteval.core.records import dataclass, field, replace

if TYPE_CHECKING:
    from agenteval.core.llm.calls import Completion


_PROVIDERS = {"openai": "openai", "azure_openai": "azure", "anthropic": "anthropic"}


def cost_usd(model: ModelSpec, input_tokens: int | None, output_tokens: int | None) -> float | None:
    """Return the price of one call in US dollars; ``None`` if model or tokens are unknown, 0 for Ollama."""
    if model.provider == "ollama":
        return 0.0
    if input_tokens is None or output_tokens is None:
        return None
    from genai_prices import Usage, calc_price

    try:
        price = calc_price(
            Usage(input_tokens=input_tokens, output_tokens=output_tokens),
            model_ref=model.name,
            provider_id=_PROVIDERS[model.provider],
        )
    except LookupError:
        return None
    return float(price.total_price)


# More tokens than any model takes or gives.
_MOST_TOKENS = 10_000_000


def with_usage(completion: Completion) -> Completion:
    """Return an answer whose numbers of tokens can be so; others of a provider, of whatever type, are unknown."""
    return replace(
        completion,
        input_tokens=_tokens(completion.input_tokens),
        output_tokens=_tokens(completion.output_tokens),
    )


def _tokens(reported: object) -> int | None:
    is_number = isinstance(reported, int) and not isinstance(reported, bool)
    return reported if is_number and 0 <= reported <= _MOST_TOKENS else None  # type: ignore[return-value, operator]


class RateLimiter:
    """Limits calls; use it as an asynchronous context manager around each call."""

    def __init__(self, concurrency: int, per_minute: float | None = None) -> None:
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


# Upper estimate of the number of calls that one judge metric makes.
_CALLS_OF_A_MEASUREMENT = 6


@dataclass(frozen=True)
class Limits:
    """The limits of a run; ``None`` means no limit.

    Attributes:
        whole: the limits that a shard has a share of; messages name them.
    """

    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    whole: Limits | None = field(default=None, repr=False, compare=False)

    @property
    def are_exhausted(self) -> bool:
        """Whether no model can be called any more."""
        return self.max_calls == 0 or self.max_cost_usd == 0

    def minus(self, calls: int, cost_usd: float) -> Limits:
        """Return the remaining limits after some calls and their cost."""
        return replace(
            self,
            max_calls=None if self.max_calls is None else max(0, self.max_calls - calls),
            max_cost_usd=None if self.max_cost_usd is None else max(0.0, self.max_cost_usd - cost_usd),
        )


@dataclass
class _Prices:
    """The highest prices of calls to one model so far; 0 if prices are unknown."""

    per_byte: float = 0.0
    answer: float = 0.0

    def learn(self, size: int, prompt_usd: float, answer_usd: float) -> None:
        self.per_byte = max(self.per_byte, prompt_usd / max(size, 1))
        self.answer = max(self.answer, answer_usd)

    def expect(self, size: int) -> float:
        return self.per_byte * size + self.answer


@dataclass(eq=False)
class BudgetReservation:
    """A reservation for a running call.

    Attributes:
        size: length of the prompt in bytes.
        reserved_usd: reserved cost; ``None`` while the model's prices are unknown.
        cost_usd: price, known after the answer; ``None`` if it stays unknown.
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

    Every request counts as a call, retries included. The price of a call is known only after the reply, so each
    running call reserves its expected cost: its length at the model's highest rate so far, plus the price of the most
    expensive reply. The first calls to a model run one by one. The run exceeds ``max_cost_usd`` only by the amount
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

        If few calls are left, measurements run one after the other. Concurrent measurements would share the remaining
        calls, and none could finish.
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
        """Reserve one call with a prompt of ``size`` bytes."""
        async with self._changed:
            while self._must_wait(expected := self._expected(model, size)):
                await self._changed.wait()
            refusal = self._refusal(expected)
            if refusal:
                self.refused += 1
                raise refusal
            reservation = BudgetReservation(model, size, expected)
            self.calls += 1
            self._under_way.append(reservation)
            return reservation

    async def settle(self, reservation: BudgetReservation) -> None:
        """Close a reservation, and record the cost of the call."""
        async with self._changed:
            self._under_way.remove(reservation)
            if reservation.answered:
                prices = self._prices.setdefault(reservation.model, _Prices())
                if reservation.cost_usd is not None:
                    self.cost_usd += reservation.cost_usd
                    prompt_usd = reservation.prompt_usd or 0.0
                    prices.learn(reservation.size, prompt_usd, reservation.cost_usd - prompt_usd)
            self._changed.notify_all()

    def _expected(self, model: str, size: int) -> float | None:
        prices = self._prices.get(model)
        return None if prices is None else prices.expect(size)

    def _must_wait(self, expected: float | None) -> bool:
        """Return whether the decision on the call depends on a running call."""
        limit = self.limits.max_cost_usd
        if limit is None or not self._under_way or self._calls_spent():
            return False
        reserved = [reservation.reserved_usd for reservation in self._under_way]
        if expected is None:
            return None in reserved
        return self.cost_usd + sum(item or 0.0 for item in reserved) + expected > limit

    def _refusal(self, expected: float | None) -> BudgetSpentError | None:
        calls, usd = self.limits.max_calls, self.limits.max_cost_usd
        named = self.limits.whole or self.limits
        if self._calls_spent():
            calls = named.max_calls
            limit = "budget of 1 call" if calls == 1 else f"budget of {calls} calls"
            return BudgetSpentError(f"max_llm_calls ({calls}) is used up", limit)
        if usd is not None and (self.cost_usd >= usd or self.cost_usd + (expected or 0.0) > usd):
            spent = f"max_cost_usd ({named.max_cost_usd:g}) is used up: {self.cost_usd:.4f} USD spent"
            return BudgetSpentError(spent, f"budget of {named.max_cost_usd:g} USD")
        return None

    def _calls_spent(self) -> bool:
        return self.limits.max_calls is not None and self.calls >= self.limits.max_calls
