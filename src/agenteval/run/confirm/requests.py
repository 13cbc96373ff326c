"""What a confirmation asks for, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agenteval.compare.pairing import is_whole
from agenteval.results.case import CaseResult
from agenteval.results.rollup import turn_means
from agenteval.run.plan import PlannedCase
from agenteval.suite.model import OVERALL

#: The agent under test, or the agent of the control.
Side = Literal["current", "control"]


@dataclass(frozen=True)
class WholeRun:
    """Runs of the whole suite, one for each side; with two sides their cases alternate.

    Attributes:
        sides: whose agents run.
        iterations: iterations of each case; ``None`` for as many as in the first run.
    """

    sides: tuple[Side, ...]
    iterations: int | None = None

    @property
    def runs(self) -> int:
        """The number of whole runs."""
        return len(self.sides)

    def iterations_of(self, item: PlannedCase) -> int:
        """Return the number of iterations of a case of the first run."""
        return item.iterations if self.iterations is None else self.iterations

    def key(self) -> list[object]:
        """Return a JSON value that is equal for equal requests."""
        return ["whole run", list(self.sides), self.iterations]


@dataclass(frozen=True)
class CaseRuns:
    """Re-runs of single cases.

    Attributes:
        sides: whose agents run.
        repeats: number of iterations by case id.
    """

    sides: tuple[Side, ...]
    repeats: Mapping[str, int]

    @property
    def runs(self) -> int:
        """The number of whole runs."""
        return 0

    def iterations_of(self, item: PlannedCase) -> int:
        """Return the number of iterations of a case of the first run; 0 if it is not run."""
        return self.repeats.get(item.case.id, 0)

    def key(self) -> list[object]:
        """Return a JSON value that is equal for equal requests."""
        return ["cases", list(self.sides), dict(sorted(self.repeats.items()))]


Request = WholeRun | CaseRuns


@dataclass(frozen=True)
class Answer:
    """The runs of a request.

    Attributes:
        cases: the finished cases by side, each with the path of its suite and the id of the first run.
        unavailable: why runs are missing or incomplete; empty if all were made.
    """

    cases: Mapping[Side, tuple[tuple[str, CaseResult], ...]] = field(default_factory=dict)
    unavailable: str = ""

    def side(self, side: Side) -> tuple[tuple[str, CaseResult], ...]:
        """Return the finished cases of a side; empty if it did not run."""
        return self.cases.get(side, ())

    def scores(self, side: Side, thresholds: Mapping[str, float | None]) -> Scores:
        """Return the score of each iteration by metric and case id; ``None`` for an iteration without a score.

        The score of an iteration is the mean over its turns. An iteration with a turn without an answer has none.

        Args:
            side: the side.
            thresholds: threshold of the aggregated score by the path of each suite; ``None`` without aggregation.
        """
        found: dict[tuple[str, str], list[float | None]] = {}
        for path, case in self.side(side):
            for place, iteration in enumerate(case.iterations):
                means = turn_means(iteration.turns) if is_whole(iteration) else {}
                if is_whole(iteration) and iteration.score is not None and thresholds.get(path) is not None:
                    means[OVERALL] = iteration.score
                for metric, score in means.items():
                    found.setdefault((metric, case.id), [None] * len(case.iterations))[place] = score
        return {key: tuple(scores) for key, scores in found.items()}


Scores = Mapping[tuple[str, str], tuple[float | None, ...]]
