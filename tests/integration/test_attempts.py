"""Turns of an agent: time limits, and retries after transient failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.virtual_time import in_virtual_time
from tests.support import agent_spec, request, suite_plan

from agenteval.agents.base import Reply, Request
from agenteval.core.errors import AgentError, TransientAgentError
from agenteval.results.case import CaseResult, IterationResult
from agenteval.run.plan import AgentSlot, Job, RunLimits
from agenteval.run.runner.attempts import Answer, CaseDeadline, Retrying
from agenteval.run.runner.scheduler import run_jobs
from agenteval.suite.model import Case, MetricConfig, Suite, Turn


@dataclass
class Scripted:
    """An agent that does one thing after the other: raises, takes so many seconds, or answers."""

    script: list[Any]
    asked_at: list[float] = field(default_factory=list)

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def session(self) -> Scripted:
        return self

    async def end(self) -> None: ...

    async def send(self, request: Request) -> Reply:
        self.asked_at.append(asyncio.get_running_loop().time())
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float | int):
            await asyncio.sleep(step)
            return Reply(request.input)
        return Reply(step)


def asked(agent: Scripted, times: int = 1, concurrency: int = 1, seed: int = 0, **fields: Any) -> list[Answer]:
    """The answers to so many turns, one after the other."""
    attempts = Retrying(agent_spec("http", "unused", Path(), **fields), concurrency, seed)
    found: list[Answer] = []

    async def ask() -> None:
        for turn in range(times):
            answer = await attempts.ask(agent, request(turn=turn), CaseDeadline(), exception_is_answer=False)
            found.append(answer)

    in_virtual_time(ask())
    return found


BUSY = TransientAgentError("answered 503")


def test_transient_failures_are_retried_and_counted() -> None:
    agent = Scripted([BUSY, BUSY, "hello"])
    (answer,) = asked(agent)
    assert answer.reply == Reply("hello")
    assert answer.retries == 2
    # Half a second, then a second, each spread by up to a half.
    waits = [after - before for before, after in zip(agent.asked_at, agent.asked_at[1:], strict=False)]
    assert 0.5 <= waits[0] <= 0.75
    assert 1 <= waits[1] <= 1.5


def test_it_is_given_up_after_the_last_attempt() -> None:
    (answer,) = asked(Scripted([BUSY]), retries=3)
    assert (answer.error, answer.retries) == ("answered 503 (after 4 attempts)", 3)


def test_what_does_not_pass_is_not_tried_again() -> None:
    agent = Scripted([AgentError("answered 400"), "hello"])
    (answer,) = asked(agent)
    assert (answer.error, answer.retries, len(agent.asked_at)) == ("answered 400", 0, 1)


@pytest.mark.parametrize(("kind", "attempts"), [("http", 3), ("http_tool", 3), ("command", 1), ("python", 1)])
def test_only_what_is_reached_over_a_network_is_asked_again_unless_told(kind: str, attempts: int) -> None:
    spec = agent_spec(kind, "unused", Path())
    assert spec.retry_limit + 1 == attempts


@pytest.mark.parametrize(("asks_for", "waits"), [(0.0, 0.0), (7.0, 7.0), (3600.0, 60.0)])
def test_an_agent_says_how_long_to_wait(asks_for: float, waits: float) -> None:
    agent = Scripted([TransientAgentError("answered 429", asks_for), "hello"])
    (answer,) = asked(agent)
    assert answer.retries == 1
    assert agent.asked_at[1] - agent.asked_at[0] == pytest.approx(waits)


@given(st.integers(), st.integers(0, 5), st.integers(0, 5))
def test_waits_follow_from_the_seed(seed: int, failures: int, others: int) -> None:
    def times(turns: int) -> list[float]:
        agent = Scripted([*[BUSY] * failures, "hello"])
        asked(agent, turns, seed=seed, retries=5)
        return agent.asked_at[: failures + 1]

    # Whatever else is asked.
    assert times(1) == times(1 + others)


def test_an_agent_that_is_gone_is_not_waited_for_with_every_turn() -> None:
    agent = Scripted([BUSY])
    answers = asked(agent, times=100, retries=2)
    assert len(agent.asked_at) < 130
    assert [answer.retries for answer in answers[-50:]] == [0] * 50


def test_an_agent_that_comes_back_is_trusted_again() -> None:
    agent = Scripted([*[BUSY] * 40, "back", BUSY, "hello"])
    answers = asked(agent, times=60, retries=1)
    assert [answer.retries for answer in answers if answer.error is None][:2] == [0, 1]


# Time limits of a case


def iteration(agent: Scripted, turns: int, case_s: float | None, **fields: Any) -> IterationResult:
    """The one iteration of a case with so many turns."""
    (found,) = cases(agent, 1, RunLimits(1), turns=turns, case_s=case_s, **fields)
    return found.iterations[0]


def cases(
    agent: Scripted,
    count: int,
    limits: RunLimits,
    *,
    turns: int = 1,
    iterations: int = 1,
    case_s: float | None = None,
    then: Callable[[CaseResult], None] = lambda _: None,
    **fields: Any,
) -> list[CaseResult]:
    """Finished cases, and behind them those that did not finish."""
    equality = MetricConfig(id="equality", type="equality", kind="standard")
    turn = Turn(input="hello", ground_truth="hello", metrics=(equality,))
    suite = Suite(path="suite", name="suite", format="holodeck", cases=())
    plan = suite_plan(case_s)
    bound = AgentSlot(agent, agent_spec("http", "unused", Path(), **fields))
    jobs = [
        Job(suite, plan, Case(id=f"suite::{number}", name=str(number), turns=(turn,) * turns), bound, iterations)
        for number in range(count)
    ]
    found: list[CaseResult] = []

    def finished(_job: Job, result: CaseResult) -> None:
        found.append(result)
        then(result)

    async def run() -> None:
        found.extend(result for _, result in await run_jobs(jobs, limits, finished))

    in_virtual_time(run())
    return found


def errors(result: IterationResult) -> list[str | None]:
    return [turn.error for turn in result.turns]


def test_a_turn_is_limited_by_what_it_may_take() -> None:
    assert errors(iteration(Scripted([100]), 1, None, timeout_s=30)) == ["no answer within 30 s"]


def test_a_case_is_limited_by_what_it_may_take_as_a_whole() -> None:
    assert errors(iteration(Scripted([10, 10, 100]), 4, 25.0, timeout_s=50)) == [
        None,
        None,
        "no answer within the 25 s of the case",
        "not asked: the 25 s of the case are used up",
    ]


def test_a_case_does_not_wait_for_an_attempt_beyond_its_time() -> None:
    agent = Scripted([TransientAgentError("answered 429", 30), "hello"])
    result = iteration(agent, 1, 10.0)
    assert (errors(result), len(agent.asked_at)) == (["answered 429"], 1)


# Time limit of the run


def test_what_has_not_run_at_the_time_limit_is_an_error() -> None:
    found = cases(Scripted([10]), 6, RunLimits(2, run_s=25.0))
    assert [case.status for case in found] == ["passed"] * 4 + ["error"] * 2
    assert [errors(case.iterations[0]) for case in found[4:]] == [["not run: the time limit was reached"]] * 2
    assert [case.name for case in found] == [str(number) for number in range(6)]


def test_iterations_that_had_finished_by_then_count() -> None:
    (found,) = cases(Scripted([10]), 1, RunLimits(1, run_s=25.0), iterations=4)
    assert [each.index for each in found.iterations] == [0, 1, 2, 3]
    assert [errors(each)[0] for each in found.iterations] == [
        None,
        None,
        *["not run: the time limit was reached"] * 2,
    ]


def test_without_time_nothing_is_asked() -> None:
    agent = Scripted(["hello"])
    found = cases(agent, 3, RunLimits(2, run_s=0.0))
    assert (agent.asked_at, [case.status for case in found]) == ([], ["error"] * 3)


# Limits per agent, and what is held


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 30))
def test_an_agent_is_asked_no_more_at_once_than_it_takes(run_wide: int, own: int, count: int) -> None:
    under_way = most = 0

    class Counting(Scripted):
        async def send(self, request: Request) -> Reply:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                return await super().send(request)
            finally:
                under_way -= 1

    found = cases(Counting([1]), count, RunLimits(run_wide), concurrency=own)
    assert len(found) == count
    assert most == min(run_wide, own, count)


def test_a_slow_agent_does_not_keep_others_from_being_asked() -> None:
    equality = MetricConfig(id="equality", type="equality", kind="standard")
    turn = Turn(input="hello", ground_truth="hello", metrics=(equality,))
    suite = Suite(path="suite", name="suite", format="holodeck", cases=())
    plan = suite_plan()
    slow, fast = Scripted([100]), Scripted([1])
    bound = [
        AgentSlot(slow, agent_spec("http", "slow", Path(), concurrency=1, timeout_s=200)),
        AgentSlot(fast, agent_spec("http", "fast", Path())),
    ]
    jobs = [
        Job(suite, plan, Case(id=f"{number}", name=str(number), turns=(turn,)), bound[number >= 10], 1)
        for number in range(20)
    ]
    ended: dict[str, float] = {}

    async def run() -> None:
        loop = asyncio.get_running_loop()
        await run_jobs(jobs, RunLimits(2), lambda job, _: ended.update({job.case.id: loop.time()}))

    in_virtual_time(run())
    assert max(time for case_id, time in ended.items() if int(case_id) >= 10) == pytest.approx(10)


@given(st.integers(1, 10), st.integers(1, 4))
def test_no_more_cases_are_under_way_than_may_be_at_once(concurrency: int, iterations: int) -> None:
    begun: set[str] = set()
    ended: set[str] = set()
    most = 0

    class Watched(Scripted):
        async def send(self, request: Request) -> Reply:
            nonlocal most
            begun.add(request.case_id)
            most = max(most, len(begun - ended))
            return await super().send(request)

    cases(Watched([1]), 40, RunLimits(concurrency), iterations=iterations, then=lambda case: ended.add(case.id))
    assert len(ended) == 40
    assert most <= concurrency
