"""The scheduler with agents that do as the tests tell them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


def test_one_at_once_keeps_the_order_of_the_suite() -> None:
    agent = Scripted(echo)
    run(agent, [one_turn(str(number)) for number in range(5)], concurrency=1, iterations=2)
    assert [request.input for request in agent.requests] == [str(number) for number in range(5) for _ in range(2)]


def test_iterations_of_one_case_run_at_once_too() -> None:
    under_way = asyncio.Barrier(3)

    async def together(request: Request) -> str:
        await under_way.wait()
        return request.input

    results = run(Scripted(together), [one_turn("a")], iterations=3)
    assert results["a"].status == "passed"


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


def test_each_iteration_is_a_session_of_its_own() -> None:
    agent = Scripted(echo)
    results = run(agent, [conversation("chat", "one", "two")], iterations=3)
    assert agent.sessions == 3
    asked = {(request.turn, request.iteration) for request in agent.requests}
    assert asked == {(turn, index) for index in range(3) for turn in range(2)}
    assert len({request.session for request in agent.requests}) == 3
    assert [iteration.index for iteration in results["chat"].iterations] == [0, 1, 2]


def test_iterations_are_in_order_however_they_end() -> None:
    ended: list[int] = []
    turns = [asyncio.Event(), asyncio.Event(), asyncio.Event()]

    async def backwards(request: Request) -> str:
        if request.iteration < 2:
            await turns[request.iteration + 1].wait()
        ended.append(request.iteration)
        turns[request.iteration].set()
        return str(request.iteration)

    results = run(Scripted(backwards), [one_turn("a")], iterations=3)
    assert ended == [2, 1, 0]
    assert [item.turns[0].response for item in results["a"].iterations] == ["0", "1", "2"]


def test_each_turn_brings_what_was_said_before() -> None:
    async def answering(request: Request) -> str:
        return request.input.upper()

    agent = Scripted(answering)
    run(agent, [conversation("chat", "one", "two", "three")], config={"k": 1})
    assert [list(request.history) for request in agent.requests] == [
        [],
        [{"role": "user", "content": "one"}, {"role": "assistant", "content": "ONE"}],
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "ONE"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": "TWO"},
        ],
    ]
    assert {request.case for request in agent.requests} == {"chat"}
    assert all(request.config == {"k": 1} for request in agent.requests)


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


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (AgentError("exit status 3"), "exit status 3"),
        (RuntimeError("a defect"), "RuntimeError: a defect"),
        (TimeoutError("of its own"), "no answer within"),
        (AgentError("half \ud800"), "half \ufffd"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
)
def test_an_error_of_one_case_stops_no_other(failure: Exception, said: str) -> None:
    async def answering(request: Request) -> str:
        if request.input == "bad":
            raise failure
        return request.input

    results = run(Scripted(answering), [one_turn("a"), one_turn("bad"), one_turn("b")], concurrency=1)
    assert [(name, result.status) for name, result in results.items()] == [
        ("a", "passed"),
        ("bad", "error"),
        ("b", "passed"),
    ]
    assert said in (results["bad"].iterations[0].turns[0].error or "")


def test_a_metric_that_breaks_is_an_error_of_that_metric() -> None:
    # No text can be looked for in None.
    broken = MetricConfig(id="broken", type="tools", kind="tools", options={"expected": [{"name": None}]})

    async def answering(request: Request) -> Reply:
        return Reply(request.input, tool_calls=(ToolCall(name="search"),))

    lenient = replace(broken, fail_on_error=False)
    cases = [one_turn("a", metrics=[lenient, EQUALITY]), one_turn("alone", metrics=[lenient]), one_turn("b")]
    fatal = one_turn("fatal", metrics=[broken, EQUALITY])
    results = run(Scripted(answering), [*cases, fatal])
    scores = results["a"].iterations[0].turns[0].scores
    assert [(score.id, score.status) for score in scores] == [("broken", "error"), ("equality", "scored")]
    assert (scores[0].error or "").startswith("TypeError: ")
    assert {name: result.status for name, result in results.items()} == {
        "a": "passed",
        "alone": "error",
        "b": "passed",
        "fatal": "error",
    }


def test_what_cannot_be_scored_at_all_costs_one_turn() -> None:
    unknown = MetricConfig(id="unknown", type="no such metric", kind="standard")
    results = run(Scripted(echo), [one_turn("a", metrics=[unknown]), one_turn("b")])
    assert {name: result.status for name, result in results.items()} == {"a": "error", "b": "passed"}
    assert "could not be scored: ConfigError: no metric" in (results["a"].iterations[0].turns[0].error or "")


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


# Statuses over several iterations


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ("ppf", "passed"),
        ("pff", "failed"),
        ("pf", "failed"),
        ("ppe", "passed"),
        ("pee", "error"),
        ("pe", "error"),
        ("fe", "failed"),
        ("eee", "error"),
    ],
)
def test_the_majority_of_the_iterations_decides(answers: str, status: str) -> None:
    async def answering(request: Request) -> str:
        kind = answers[request.iteration]
        if kind == "e":
            raise AgentError("broken")
        return request.input if kind == "p" else "wrong"

    result = run(Scripted(answering), [one_turn("a")], iterations=len(answers))["a"]
    assert result.status == status
    expected = {"p": "passed", "f": "failed", "e": "error"}
    assert [iteration.status for iteration in result.iterations] == [expected[kind] for kind in answers]
