"""The scheduler with agents that do as the tests tell them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, agent_spec, suite_plan

from agenteval.agents.base import Reply, Request
from agenteval.core.errors import AgentError, InfrastructureError
from agenteval.results.case import CaseResult, ToolCall
from agenteval.run.plan import Job, PlannedCase, RunLimits
from agenteval.run.scheduler import run_jobs
from agenteval.suite.model import Case, MetricConfig, Suite, Turn

EQUALITY = MetricConfig(id="equality", type="equality", kind="standard")

Answering = Callable[[Request], Awaitable[Reply | str]]


@dataclass
class Scripted:
    """An agent that answers with a coroutine of the test, and remembers what it was asked."""

    answering: Answering
    requests: list[Request] = field(default_factory=list)
    sessions: int = 0
    at_once: int = 0
    most_at_once: int = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def session(self) -> Scripted:
        self.sessions += 1
        return self

    async def end(self) -> None: ...

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            reply = await self.answering(request)
        finally:
            self.at_once -= 1
        return Reply(reply) if isinstance(reply, str) else reply


async def echo(request: Request) -> str:
    await asyncio.sleep(0)
    return request.input


def one_turn(name: str, ground_truth: str | None = None, metrics: Sequence[MetricConfig] = (EQUALITY,)) -> Case:
    """A case that an echo passes."""
    turn = Turn(input=name, ground_truth=ground_truth or name, metrics=tuple(metrics))
    return Case(id=f"suite::{name}", name=name, turns=(turn,))


def conversation(name: str, *questions: str) -> Case:
    turns = tuple(Turn(input=text, ground_truth=text, metrics=(EQUALITY,)) for text in questions)
    return Case(id=f"suite::{name}", name=name, turns=turns)


def run(
    agent: Scripted,
    cases: Sequence[Case],
    *,
    concurrency: int = 8,
    iterations: int = 1,
    timeout_s: float = PATIENCE_S,
    config: Mapping[str, Any] | None = None,
    finished: Callable[[CaseResult], None] = lambda _: None,
) -> dict[str, CaseResult]:
    """The results by case name, in the order in which the cases ended."""
    spec = agent_spec("python", "unused", Path(), timeout_s=timeout_s, config=config or {})
    suite = Suite(path="suite", name="suite", format="holodeck", cases=tuple(cases))
    plan = suite_plan()
    jobs = [Job(PlannedCase(suite, case, spec, iterations), plan, agent) for case in cases]
    results: dict[str, CaseResult] = {}

    def keep(_job: Job, result: CaseResult) -> None:
        results[result.name] = result
        finished(result)

    async def run_them() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await run_jobs(jobs, RunLimits(concurrency), keep)

    asyncio.run(run_them())
    return results


# How much at once


def test_runs_as_many_at_once_as_allowed_and_no_more() -> None:
    under_way = asyncio.Barrier(4)

    async def together(request: Request) -> str:
        # Passed only if four are under way at the same time.
        await under_way.wait()
        return request.input

    agent = Scripted(together)
    results = run(agent, [one_turn(str(number)) for number in range(12)], concurrency=4)
    assert agent.most_at_once == 4
    assert [result.status for result in results.values()] == ["passed"] * 12


def test_tells_of_each_case_as_soon_as_it_ends() -> None:
    first_may_end = asyncio.Event()

    async def answering(request: Request) -> str:
        if request.input == "first":
            await first_may_end.wait()
        return request.input

    def finished(result: CaseResult) -> None:
        if result.name == "second":
            first_may_end.set()

    results = run(Scripted(answering), [one_turn("first"), one_turn("second")], finished=finished)
    assert list(results) == ["second", "first"]


# Sessions and turns


def test_two_turns_without_an_answer_end_the_session() -> None:
    async def answering(request: Request) -> str:
        if request.input.startswith("bad"):
            raise AgentError("broken")
        return request.input

    agent = Scripted(answering)
    questions = ("bad 1", "good", "bad 2", "bad 3", "never asked", "nor this")
    results = run(agent, [conversation("chat", *questions)])
    assert [request.input for request in agent.requests] == ["bad 1", "good", "bad 2", "bad 3"]
    turns = results["chat"].iterations[0].turns
    assert [turn.error for turn in turns] == [
        *("broken", None, "broken", "broken"),
        *(["not asked: 2 turns in a row had no answer"] * 2),
    ]
    assert results["chat"].status == "error"
    # A question without an answer stays in the history.
    assert list(agent.requests[1].history) == [{"role": "user", "content": "bad 1"}]


# What goes wrong


def test_a_turn_has_its_own_time_limit() -> None:
    async def answering(request: Request) -> str:
        if request.input == "hang":
            await asyncio.Event().wait()
        return request.input

    results = run(Scripted(answering), [conversation("chat", "hang", "after"), one_turn("other")], timeout_s=0.2)
    first, second = results["chat"].iterations[0].turns
    assert (first.error, first.response) == ("no answer within 0.2 s", None)
    assert second.response == "after"
    assert {name: result.status for name, result in results.items()} == {"other": "passed", "chat": "error"}


def test_a_reply_that_no_file_can_hold_is_made_to_fit() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]

    async def answering(request: Request) -> Reply:
        call = ToolCall(name="half \ud800", args={"\udfff": deep})
        return Reply(request.input, tool_calls=(call,), retrieval_context=("\ud800",))

    result = run(Scripted(answering), [one_turn("a")])["a"]
    assert result.status == "passed"
    assert CaseResult.model_validate_json(result.model_dump_json()) == result


def test_what_stops_the_run_keeps_its_type() -> None:
    def finished(_result: CaseResult) -> None:
        raise InfrastructureError("disk full")

    with pytest.raises(InfrastructureError, match="disk full"):
        run(Scripted(echo), [one_turn(str(number)) for number in range(5)], finished=finished)
