"""What a confirmation is asked for, and what it has made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agenteval.compare.regression.model import Request, Scores, Side, Unavailable
from agenteval.compare.run_scores import ScoredTurns
from agenteval.compare.sides import run_scores
from agenteval.core.secrets import shortened
from agenteval.results.case import CaseResult, SuiteResult

_LONGEST_ERROR = 300


@dataclass(frozen=True)
class FinishedRuns:
    """The runs of a request.

    Attributes:
        unavailable: why runs are missing or incomplete; ``None`` if all were made.
    """

    cases: Mapping[Side, tuple[tuple[str, CaseResult], ...]] = field(default_factory=dict)
    unavailable: Unavailable | None = None

    def side(self, side: Side) -> tuple[tuple[str, CaseResult], ...]:
        """Return the finished cases of a side; empty if it did not run."""
        return self.cases.get(side, ())

    def scores(
        self,
        side: Side,
        suites: Mapping[str, SuiteResult],
        asked: Mapping[str, Iterable[str]],
        turns: Mapping[str, ScoredTurns] | None = None,
    ) -> Scores:
        """Return the scores of a side.

        Args:
            asked: case id → ids of its metrics; they are needed where the agent failed in every iteration.
            turns: case id → how many turns of every earlier iteration each metric scored.
        """
        return run_scores(((suites[path], case) for path, case in self.side(side)), asked, turns)


def needs_control(request: Request) -> bool:
    """Return whether a request is of no use without the control: longer runs are for a head-to-head only."""
    return "control" in request.sides or request.stage == "head-to-head"


def request_key(request: Request) -> list[object]:
    """Return a JSON value that is equal for equal requests."""
    return [request.stage, list(request.sides), request.is_whole, dict(sorted(request.iterations.items()))]


def why_broken(cases: Iterable[tuple[str, CaseResult]]) -> str:
    """Return why the runs of the control say nothing about the base commit; empty if they do.

    An agent that fails has the score 0. A control that lacks what earlier steps installed always fails, and
    a change that is as bad would look harmless beside it. The baseline shows that the base commit can answer.

    Args:
        cases: the finished cases of the control, each with the path of its suite.
    """
    iterations = [iteration for _, case in cases for iteration in case.iterations]
    errors = [turn.error for iteration in iterations for turn in iteration.turns[-1:] if turn.error]
    if len(errors) * 2 <= len(iterations):
        return ""
    lacks = "what earlier steps install in the workspace is not in its checkout: install it with setup, or elsewhere"
    first = shortened(errors[0], _LONGEST_ERROR)
    return f"its agent failed in {len(errors)} of {len(iterations)} iterations ({lacks}): {first}"
