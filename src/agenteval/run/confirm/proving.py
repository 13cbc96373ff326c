"""Answers the requests of the gate with runs of the change and of the control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.compare.pairing import own_cases
from agenteval.compare.regression.model import Answer, Evidence, Request, Scores, Unavailable
from agenteval.compare.run_scores import entry_without_cases, pool_case
from agenteval.compare.sides import Sides, restricted
from agenteval.results.comparison import PoolEntry
from agenteval.run.confirm.requests import needs_control
from agenteval.run.confirm.runs import ConfirmingRuns
from agenteval.suite.model import Fingerprints

_EARLIER_RUNS = Unavailable("control", "`confirm: rerun` compares with earlier runs")


@dataclass
class Proving:
    """Makes the runs that prove or clear a suspicion.

    Attributes:
        evidence: the part of it that the gate decides on.
    """

    runs: ConfirmingRuns
    sides: Sides
    evidence: Evidence
    _whole: list[tuple[Request, Scores]] = field(default_factory=list)

    def answer(self, request: Request) -> Answer | Unavailable:
        """Make the runs of a request, and return their scores."""
        if needs_control(request) and not self.sides.policy.confirms_beside_base:
            return _EARLIER_RUNS
        finished = self.runs.answer(request)
        if finished.unavailable is not None:
            return finished.unavailable
        asked = {case_id: frozenset(metrics) for case_id, metrics in self.evidence.first.items()}
        suites = {suite.path: suite for suite in self.sides.current.suites}
        made: Answer = {
            side: restricted(finished.scores(side, suites, asked, self.sides.turns), asked) for side in request.sides
        }
        if request.is_whole and "current" in request.sides:
            self._whole.append((request, made["current"]))
        return made

    def entries(self, *, after: int = 0) -> Sequence[PoolEntry]:
        """Return the whole runs of the change as entries of a pool, with as many iterations as the first run."""
        questions = own_cases(self.sides.current)
        found = []
        for number, scores in enumerate(self._runs(), start=after + 1):
            own = entry_without_cases(self.sides.current)
            cases = {
                case_id: pool_case(
                    Fingerprints(questions[case_id].fingerprint, questions[case_id].metrics),
                    {name: values[: self.evidence.iterations[case_id]] for name, values in metrics.items()},
                )
                for case_id, metrics in scores.items()
                if case_id in questions
            }
            found.append(own.model_copy(update={"run_id": f"{own.run_id}.{number}", "cases": cases}))
        return found

    def _runs(self) -> Iterator[Scores]:
        """Yield the scores of each whole run: the second run is made of several requests, the others of one."""
        second = [scores for request, scores in self._whole if "control" not in request.sides]
        if second:
            yield _joined(second)
        yield from (scores for request, scores in self._whole if "control" in request.sides)


def _joined(parts: Sequence[Scores]) -> Scores:
    """Return the scores of several parts of a run as one run."""
    found: dict[str, dict[str, tuple[float | None, ...]]] = {}
    for part in parts:
        for case_id, metrics in part.items():
            known = found.setdefault(case_id, {})
            for name, values in metrics.items():
                known[name] = (*known.get(name, ()), *values)
    return found
