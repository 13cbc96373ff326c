"""What the gate will find once the base branch has runs, as a first run records it."""

from __future__ import annotations

from operator import not_

from pydantic import Field

from agenteval.results.case import ResultsModel, Text


class Outlook(ResultsModel):
    """What the gate finds with some runs of the base branch.

    Attributes:
        runs: number of runs of the base branch.
        metric: the metric whose drop must be largest to be found; ``None`` if no drop is known.
        drop: the drop of its mean, 0..1, that is found with a probability of 80 %; ``None`` if it is unknown.
        too_few: whether so few cases and runs never raise a suspicion about a mean.
        case_calls: calls, both sides, that prove a case that never failed and now always fails; ``None`` if it is not
            provable alone.
    """

    runs: int
    metric: Text | None = None
    drop: float | None = Field(default=None, ge=0, le=1)
    too_few: bool = Field(default=False, exclude_if=not_)
    case_calls: int | None = None
