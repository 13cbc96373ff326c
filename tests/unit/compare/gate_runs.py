"""Builds runs with a history, as input of the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tests.unit.runs import SUITE, case, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Answer, Request, Scores, Side, Unavailable
from agenteval.compare.regression.settings import GateSettings
from agenteval.results.case import CaseResult
from agenteval.results.comparison import ComparedCase, Comparison
from agenteval.results.model import Results

TODAY = date(2026, 3, 1)
K = 3


def scored(name: str, *scores: float, metric: str = "numeric") -> CaseResult:
    """A case with one iteration for each score; its status is that of the majority."""
    passing = sum(score >= 0.5 for score in scores)
    return case(name, "passed" if 2 * passing > len(scores) else "failed", [{metric: score} for score in scores])


def steady(count: int = 20, **others: Sequence[float]) -> list[CaseResult]:
    """So many cases that always pass, but for those whose scores are given."""
    names = [f"c{number:02}" for number in range(count)]
    return [scored(name, *others.get(name, (1.0,) * K)) for name in names]


def dated(run: Results, day: int) -> Results:
    """A run of a day in January 2026."""
    moment = f"2026-01-{day:02}T00:00:00.000Z"
    pool = [entry.model_copy(update={"created_at": moment}) for entry in run.pool]
    own = run.run.model_copy(update={"started_at": moment})
    return run.model_copy(update={"run": own, "pool": pool})


def base_run(day: int, cases: Sequence[CaseResult], **keys: Any) -> Results:
    """A run of the base branch."""
    return dated(results(*cases, run_id=f"base-{day}", **keys), day)


def history(*runs: Results) -> Results:
    """The last run with all of them in its pool."""
    return runs[-1].model_copy(update={"pool": [entry for run in runs for entry in run.pool]})


def past(count: int, cases: Sequence[CaseResult] | None = None, **keys: Any) -> Results:
    """A history of so many runs that all went alike."""
    chosen = steady() if cases is None else cases
    return history(*(base_run(day, chosen, **keys) for day in range(1, count + 1)))


def policy(settings: Mapping[str, Any] | None = None, **fields: Any) -> ComparePolicy:
    """The default policy with some fields changed."""
    return ComparePolicy(settings=GateSettings(**(settings or {})), **fields)


def comparer(now: Results, then: Results, chosen: ComparePolicy | None = None) -> Comparer:
    """A comparison that can be asked what it needs."""
    known = {item.id for _, item in now.cases()}
    return Comparer(now, then, known, chosen or ComparePolicy(), TODAY)


def compared(now: Results, then: Results, chosen: ComparePolicy | None = None) -> Comparison:
    """A comparison without any confirmation run."""
    return comparer(now, then, chosen).decide()


def case_named(comparison: Comparison, name: str) -> ComparedCase:
    """One case of a comparison."""
    (found,) = (item for item in comparison.cases if item.name == name)
    return found


MANY = 40
BAD = (0.0, 0.0, 0.0)
# Too few failures for a suspicion about the case.
WEAK = (1.0, 0.0, 1.0)
# Scores that vary from run to run, so that the statistics decide.
WAVERING = {"c38": (1.0, 0.0, 1.0), "c39": (0.0, 1.0, 0.0)}


def worse_in(count: int, total: int = MANY) -> list[CaseResult]:
    """A suite in which the first so many cases always fail."""
    return steady(total, **WAVERING, **{f"c{number:02}": BAD for number in range(count)})


def weaker_in(count: int) -> list[CaseResult]:
    """A suite in which the first so many cases fail every third iteration."""
    return steady(MANY, **WAVERING, **{f"c{number:02}": WEAK for number in range(count)})


@dataclass
class Agents:
    """Makes requested runs: both agents pass every iteration but those of their broken and weak cases.

    Attributes:
        broken: names of the cases that each side fails.
        weak: names of the cases of which each side fails every third iteration.
        unavailable: the answer to requests of a side that cannot run.
        asked: the requests.
    """

    broken: Mapping[Side, str] = field(default_factory=dict)
    weak: Mapping[Side, str] = field(default_factory=dict)
    unavailable: Mapping[Side, Unavailable] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    made: dict[tuple[Side, str], int] = field(default_factory=dict)

    def answer(self, request: Request) -> Answer | Unavailable:
        """Answer a request."""
        self.asked.append(request)
        for side in request.sides:
            if side in self.unavailable:
                return self.unavailable[side]
        return {side: self._scores(side, request) for side in request.sides}

    def _scores(self, side: Side, request: Request) -> Scores:
        broken, weak = (
            {f"{SUITE}::{name}" for name in cases.get(side, "").split()} for cases in (self.broken, self.weak)
        )
        found = {}
        for case_id, count in request.iterations.items():
            before = self.made.get((side, case_id), 0)
            self.made[side, case_id] = before + count
            turns = range(before + int(case_id[-2:]), before + count + int(case_id[-2:]))
            failed = (case_id in broken or (case_id in weak and turn % 3 == 0) for turn in turns)
            found[case_id] = {"numeric": tuple(float(not item) for item in failed)}
        return found


def names(count: int) -> str:
    """The names of the first so many cases."""
    return " ".join(f"c{number:02}" for number in range(count))


def proven(now: Results, then: Results, agents: Agents, chosen: ComparePolicy | None = None) -> Comparison:
    """A comparison with the runs that it asks for."""
    deciding = comparer(now, then, chosen)
    assert deciding.needs_runs
    return deciding.concluded(deciding.prove(agents.answer))


PAST = past(3, steady(MANY, **WAVERING))
