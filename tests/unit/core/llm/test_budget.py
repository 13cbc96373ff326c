"""Counting of calls and cost, for any interleaving of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.llm.budget import Budget, BudgetReservation, Limits
from agenteval.core.llm.models import BudgetSpentError

ROUNDING = 1e-9


@dataclass(frozen=True)
class Planned:
    """A call with its result; ``steps`` is the number of steps of other calls while it is running."""

    size: int = 1000
    prompt_usd: float | None = 0.01
    answer_usd: float = 0.0
    steps: int = 1
    fails: bool = False
    model: str = "openai/gpt-4.1"

    @property
    def cost_usd(self) -> float | None:
        return None if self.prompt_usd is None else self.prompt_usd + self.answer_usd


@dataclass
class Made:
    """The results of some calls."""

    reserved: list[tuple[BudgetReservation, Planned]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0

    async def make(self, budget: Budget, planned: Planned) -> None:
        try:
            reservation = await budget.open(planned.model, planned.size)
        except BudgetSpentError as error:
            self.refusals.append(str(error))
            return
        self.reserved.append((reservation, planned))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        for _ in range(planned.steps):
            await asyncio.sleep(0)
        self._at_once -= 1
        if not planned.fails:
            reservation.answered = True
            reservation.cost_usd, reservation.prompt_usd = planned.cost_usd, planned.prompt_usd
        await budget.settle(reservation)


def spend(limits: Limits, calls: Sequence[Planned], at_once: int) -> tuple[Budget, Made]:
    """Make the calls in order, with a limited number at the same time."""
    budget, made, queue = Budget(limits), Made(), iter(calls)

    async def work() -> None:
        for planned in queue:
            await made.make(budget, planned)

    async def everything() -> None:
        await asyncio.gather(*(work() for _ in range(at_once)))

    asyncio.run(everything())
    return budget, made


_AMOUNT = st.floats(0, 0.05)
_PLANNED = st.builds(
    Planned,
    size=st.integers(0, 20_000),
    prompt_usd=st.none() | _AMOUNT,
    answer_usd=_AMOUNT,
    steps=st.integers(0, 5),
    fails=st.booleans(),
    model=st.sampled_from(["openai/gpt-4.1", "anthropic/claude", "openai/own"]),
)


class TestCalls:
    @given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(0, 3))
    def test_the_limit_is_used_up_exactly(self, limit: int, wanted: int, at_once: int, steps: int) -> None:
        budget, made = spend(Limits(max_calls=limit), [Planned(steps=steps)] * wanted, at_once)

        assert budget.calls == len(made.reserved) == min(limit, wanted)
        assert budget.refused == len(made.refusals) == max(0, wanted - limit)

    def test_without_limits_nothing_waits(self) -> None:
        budget, made = spend(Limits(), [Planned(steps=3)] * 50, 50)

        assert (budget.calls, made.most_at_once) == (50, 50)
        assert budget.cost_usd == pytest.approx(0.5)


class TestMoney:
    @given(st.floats(0, 1), st.lists(_PLANNED, max_size=60), st.integers(1, 20))
    def test_the_limit_is_exceeded_only_by_unexpected_cost(
        self, limit: float, calls: list[Planned], at_once: int
    ) -> None:
        budget, made = spend(Limits(max_cost_usd=limit), calls, at_once)

        paid = [(reservation, planned.cost_usd or 0.0) for reservation, planned in made.reserved if not planned.fails]
        surprise = sum(max(0.0, cost - (reservation.reserved_usd or 0.0)) for reservation, cost in paid)
        assert budget.cost_usd == pytest.approx(sum(cost for _, cost in paid))
        assert budget.cost_usd <= limit + surprise + ROUNDING
        assert len(made.reserved) + len(made.refusals) == len(calls)
        assert budget.refused == len(made.refusals)

    @given(st.integers(1, 20), st.integers(1, 40))
    def test_the_remaining_budget_is_used(self, at_once: int, affordable: int) -> None:
        budget, made = spend(Limits(max_cost_usd=affordable * 0.01 + 0.005), [Planned(steps=2)] * 60, at_once)

        assert len(made.reserved) == affordable
        assert budget.cost_usd == pytest.approx(affordable * 0.01)

    def test_the_first_calls_to_a_model_go_one_by_one(self) -> None:
        failing = [Planned(fails=True, steps=3)] * 4
        _, made = spend(Limits(max_cost_usd=1), failing, 4)

        assert made.most_at_once == 1

    def test_then_as_many_as_there_is_money_for(self) -> None:
        _, made = spend(Limits(max_cost_usd=0.055), [Planned(steps=3)] * 60, 60)

        assert made.most_at_once == 4


class TestMeasurement:
    """Several calls that produce one score."""

    @staticmethod
    def scores(limit: int, wanted: int, calls_each: int) -> tuple[Budget, int]:
        budget, complete = Budget(Limits(max_calls=limit)), 0

        async def measure() -> None:
            nonlocal complete
            made = Made()
            async with budget.measurement():
                for _ in range(calls_each):
                    await made.make(budget, Planned(steps=2))
            complete += not made.refusals

        async def everything() -> None:
            await asyncio.gather(*(measure() for _ in range(wanted)))

        asyncio.run(everything())
        return budget, complete

    @given(st.integers(0, 100), st.integers(1, 40), st.integers(1, 6))
    def test_as_many_scores_as_the_calls_allow(self, limit: int, wanted: int, calls_each: int) -> None:
        budget, complete = self.scores(limit, wanted, calls_each)

        assert complete == min(wanted, limit // calls_each)
        assert budget.calls == min(limit, wanted * calls_each)

    def test_an_error_inside_lets_the_next_one_in(self) -> None:
        budget = Budget(Limits(max_calls=1))

        async def broken() -> None:
            async with budget.measurement():
                raise ZeroDivisionError

        async def everything() -> None:
            results = await asyncio.gather(*(broken() for _ in range(5)), return_exceptions=True)
            assert [type(result) for result in results] == [ZeroDivisionError] * 5

        asyncio.run(everything())


def test_a_cancelled_wait_leaves_the_account_as_it_was() -> None:
    async def everything() -> None:
        budget = Budget(Limits(max_cost_usd=1))
        first = await budget.open("m", 10)
        waiting = asyncio.create_task(budget.open("m", 10))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await budget.settle(first)

        assert budget.calls == 1
        assert (await budget.open("m", 10)).reserved_usd is None

    asyncio.run(everything())


def test_limits_are_exhausted_when_nothing_is_left_of_one() -> None:
    limits = Limits(max_calls=3, max_cost_usd=1.0)
    assert not limits.minus(2, 0.5).are_exhausted
    assert limits.minus(3, 0.5).are_exhausted
    assert limits.minus(2, 1.5).are_exhausted
    assert not Limits().minus(1000, 1000.0).are_exhausted
