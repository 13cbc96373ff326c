"""A program that uses the public API as users do; type-checked against the installed package, and run."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from agenteval import (
    API_VERSION,
    Agent,
    AgentSpec,
    Case,
    Comparison,
    ConfigError,
    GatePolicy,
    Limits,
    Metric,
    MetricConfig,
    Observation,
    Outcome,
    Reply,
    Request,
    RunOutcome,
    Session,
    Suite,
    Turn,
    compare,
    evaluate,
    evaluate_async,
    load_suites,
    read_results,
)
from agenteval.testing import check_agent, check_metric


@dataclass(frozen=True)
class Brevity(Metric):
    """A score that falls with the length of the reply."""

    words: int = 40

    def measure(self, observation: Observation, /) -> Outcome:
        """Score one reply."""
        count = len(observation.response.split())
        return Outcome(min(1.0, self.words / max(1, count)), passed=count <= self.words, reason=f"{count} words")


@dataclass(frozen=True)
class Known:
    """A metric without a base class, which needs a ground truth."""

    @property
    def requires(self) -> frozenset[str]:
        """The fields that it needs."""
        return frozenset({"ground_truth"})

    async def measure(self, observation: Observation, /) -> bool:
        """Score one reply."""
        return observation.response == observation.ground_truth


class Echo:
    """An agent that answers with the question."""

    async def start(self) -> None:
        """Do nothing."""

    def session(self) -> Session:
        """Open a conversation."""
        return self

    async def send(self, request: Request) -> Reply:
        """Answer."""
        return Reply(response=request.input)

    async def end(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def shout(question: str) -> str:
    """Answer with the question in upper case."""
    return question.upper()


async def echo(request: Request) -> Reply:
    """Answer with the question."""
    return Reply(response=request.input)


def main(directory: Path) -> None:
    """Use every function once."""
    agent: Agent = Echo()
    assert [reply.response for reply in check_agent(agent)] == ["hello"]
    assert check_metric(Brevity(), Observation("q", "one two")).score == 1.0
    assert check_metric(Known(), Observation("q", "a", ground_truth="a")).passed

    (suite,) = load_suites(directory / "agent.yaml")
    equality = MetricConfig(id="equality", type="equality", kind="standard")
    mine = Suite(
        "mine", "mine", "python", (Case("mine::a", "a", (Turn("x", ground_truth="x", metrics=(equality,)),)),)
    )

    added: list[Metric] = [Brevity(), Known()]
    # Nothing can run beside the change, so earlier runs decide: one iteration would be too little.
    twice = evaluate_async(suite, mine, agent=echo, metrics=added, iterations=2)
    base: RunOutcome = asyncio.run(twice)
    limits, out = Limits(max_calls=0), directory / "head"
    head = evaluate(suite, mine, agent=shout, metrics=added, baseline=base.results, limits=limits, out=out)
    assert base.gate.passed
    assert not head.gate.passed
    assert [case.name for case in head.results.failed()] == ["hello", "a"]
    assert head.results.failed()[0].reason

    comparison: Comparison = compare(read_results(directory / "head"), base.results, gate=GatePolicy())
    assert comparison.metric("equality of mine").difference == -1.0

    assert problems(directory / "missing.yaml") == ["no such suite file"]
    assert API_VERSION == 1


def problems(suite: Path) -> list[str]:
    """List what is wrong with a suite."""
    try:
        evaluate(suite, agent=AgentSpec("command", ("true",), str(suite.parent)))
    except ConfigError as error:
        return [problem.message for problem in error.problems]
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
