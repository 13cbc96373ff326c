"""The gate over a chain of merges, with an agent that answers from a table of pass rates."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.unit.runs import SUITE, case, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.pool import extended_pool
from agenteval.compare.regression.model import Answer, Request
from agenteval.results.case import CaseStatus
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

CASES, K = 50, 3
MERGES, GAIN, LOSS = 30, 10, 20
MAIN = "refs/heads/main"

# Pass rates of the cases: few always pass or always fail, as with real agents.
_RATES = [(number % 10) / 10 for number in range(CASES)]
_DROP = 0.2
WEAK: Mapping[int, float] = {number: max(0.0, rate - _DROP) for number, rate in enumerate(_RATES)}
STRONG: Mapping[int, float] = {number: min(1.0, WEAK[number] + _DROP) for number in range(CASES)}


@dataclass
class Chain:
    """A base branch, and the runs of its jobs.

    Attributes:
        draw: the noise.
        agent: the pass rates of the base branch's agent.
        baseline: the newest run of the base branch, with its pool.
        days: number of runs so far.
    """

    draw: random.Random
    agent: Mapping[int, float]
    baseline: Results | None = None
    days: int = 0
    epochs: list[str | None] = field(default_factory=list)

    def propose(self, agent: Mapping[int, float]) -> Comparison:
        """Return the comparison of a pull request with this agent."""
        return self._compared(self._run(agent, "refs/pull/7/merge"), agent)

    def merge(self, agent: Mapping[int, float]) -> Comparison | None:
        """Merge an agent; return the comparison of the base branch's run with the run before."""
        now = self._run(agent, MAIN)
        comparison = None
        if self.baseline is not None:
            comparison = self._compared(now, agent)
            pool = extended_pool(now.pool[0], self.baseline, comparison, 10)
            now = now.model_copy(update={"comparison": comparison, "pool": pool})
        self.baseline, self.agent = now, agent
        self.epochs.append(now.pool[-1].epoch)
        return comparison

    def _compared(self, now: Results, agent: Mapping[int, float]) -> Comparison:
        assert self.baseline is not None
        sides = {"current": agent, "control": self.agent}

        def answer(request: Request) -> Answer:
            return {
                side: {
                    name: {"numeric": self._scores(sides[side], name, k)} for name, k in request.iterations.items()
                }
                for side in request.sides
            }

        comparer = Comparer(now, self.baseline, {found.id for _, found in now.cases()})
        return comparer.concluded(comparer.prove(answer))

    def _run(self, agent: Mapping[int, float], ref: str) -> Results:
        self.days += 1
        found = []
        for number in range(CASES):
            scores = self._scores(agent, f"{SUITE}::c{number}", K)
            status: CaseStatus = "passed" if sum(scores) > K / 2 else "failed"
            found.append(case(f"c{number}", status, [{"numeric": score} for score in scores]))
        made = results(*found, run_id=f"run-{self.days}")
        of = {"commit": f"{self.days:040x}", "ref": ref, "workflow_run_id": str(self.days)}
        of["started_at"] = f"2026-01-01T00:{self.days // 60:02}:{self.days % 60:02}.000Z"
        run = made.run.model_copy(update=of)
        entry = made.pool[0].model_copy(
            update={"commit": run.commit, "epoch": run.commit, "created_at": run.started_at}
        )
        return made.model_copy(update={"run": run, "pool": [entry]})

    def _scores(self, agent: Mapping[int, float], case_id: str, count: int) -> tuple[float, ...]:
        rate = agent[int(case_id.rpartition("c")[2])]
        return tuple(float(self.draw.random() < rate) for _ in range(count))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_chain_of_merges_with_a_gain_and_a_stopped_loss(seed: int) -> None:
    chain = Chain(random.Random(seed), WEAK)
    chain.merge(WEAK)
    alarms, epochs = [], []
    for number in range(1, MERGES + 1):
        agent = STRONG if number >= GAIN else WEAK
        if number == LOSS:
            stopped = chain.propose(WEAK)
            assert (stopped.verdict, stopped.stage) == ("regressed", "head-to-head")
        if chain.propose(agent).verdict != "unchanged":
            alarms.append(number)
        merged = chain.merge(agent)
        assert merged is not None
        if merged.begins_epoch:
            epochs.append((number, merged.verdict))
    assert len(alarms) <= 1
    assert epochs == [(GAIN, "improved")]
    # The epochs of the pool are those of the proofs.
    assert len(set(chain.epochs)) == 2
    assert chain.epochs[GAIN - 1] != chain.epochs[GAIN] == chain.epochs[-1]
