"""The base branch in the long run: its epoch, what began it, and the long look at it, in results.json."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from agenteval.results.case import ResultsModel, Text

#: What begins an epoch. ``proven``: a change of a mean; ``declared``: other models, iterations or engine;
#: ``accepted``: somebody accepted a lower mean.
EpochCause = Literal["proven", "declared", "accepted"]
#: ``unproven``: the long look could not be finished.
LongLookVerdict = Literal["regressed", "unchanged", "unproven"]

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class MadeWith(ResultsModel):
    """What a run was made with; runs made with something else belong to different epochs.

    Attributes:
        agents: models of the agents, as far as suites and configuration name them; empty if unknown.
        judges: models of the judges; empty if unknown.
        iterations: usual number of iterations of a case; ``None`` if unknown.
        engine: major version of agenteval.
    """

    agents: list[Text] = Field(default=[])
    judges: list[Text] = Field(default=[])
    iterations: int | None = None
    engine: Text = ""


class EpochBegin(ResultsModel):
    """Why an epoch begins with a run although no test proved a change."""

    cause: Literal["declared", "accepted"]
    text: Text


class EpochRun(ResultsModel):
    """One run of the base branch.

    Attributes:
        levels: metric id → mean of the epoch's first run, and the sum of all later differences between successive
            runs. Only cases of both runs count, so added and removed cases do not move it.
    """

    commit: str | None
    run_id: str
    created_at: str
    levels: dict[str, _Finite]


class Epoch(ResultsModel):
    """The runs of the base branch since its last proven, declared or accepted change.

    Attributes:
        cause: what began it; ``None`` for the first one.
        runs: its runs, oldest first. Of many, the first and the newest ones are kept.
        sums: metric id → how far the base branch looks lower, in standard deviations (CUSUM).
        merges: runs of another commit than the run before since the last long look.
        changed: ids of cases that were proven or accepted to have changed since; a long look leaves them out.
        anchor: the oldest commit that a long look compares with; ``None`` for that of the first run.
    """

    cause: EpochCause | None = None
    runs: list[EpochRun]
    sums: dict[str, _Finite] = Field(default={})
    merges: int = Field(default=0, ge=0)
    # Omitted if empty.
    changed: list[str] = Field(default=[], exclude_if=not_)
    anchor: str | None = Field(default=None, exclude_if=lambda value: value is None)


class LookedMetric(ResultsModel):
    """One metric in a long look.

    Attributes:
        current: mean of the runs of the newest commit.
        then: mean of the runs of the early commit beside them.
        interval: of ``current`` − ``then``; its upper end is below 0 exactly if ``p`` is at most ``limit``.
        p: one-sided probability of such a drop without any change.
        limit: the p at or below which the drop is proven.
        runs_a_side: runs of each side.
        proven: whether the drop is proven.
    """

    id: str
    current: float
    then: float
    interval: tuple[float, float] | None = None
    p: float | None = None
    limit: float | None = None
    runs_a_side: int = 0
    proven: bool = False


class LongLook(ResultsModel):
    """The newest commit of the base branch beside an early commit of its epoch.

    Attributes:
        commit: the early commit; ``None`` if none could run.
        merges: merges since this commit.
        verdict: ``regressed`` if a mean is proven to have fallen.
        reason: what was found, as text.
        is_issue: whether an issue reports it, and the run does not fail.
        runs: the runs of the base branch from the early commit to this run, oldest first.
    """

    commit: str | None = None
    merges: int
    verdict: LongLookVerdict
    reason: Text
    is_issue: bool = Field(default=False, exclude_if=not_)
    metrics: list[LookedMetric] = Field(default=[])
    runs: list[EpochRun] = Field(default=[])
