"""The comparison of a run with its baseline in results.json, and the pool of earlier runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from agenteval.results.case import CaseStatus, Shortened
from agenteval.results.values import ResultsModel, clean_json
from agenteval.results.verdict import Unproven

RunVerdict = Literal["regressed", "unproven", "improved", "unchanged"]
# suspect: the case passed before and fails now, and the change is not significant. accepted: somebody accepted the
# change of the case, so it does not count.
CaseNote = Literal["suspect", "flaky", "quarantined", "accepted"]
CaseChange = Literal["regressed", "improved", "unchanged", "changed", "new", "removed"]


class PoolCase(ResultsModel):
    """The scores of one case in one earlier run, by metric and iteration.

    Attributes:
        fingerprint: hash of the question; empty if unknown.
        metrics: metric id → hash of its configuration and expected values; empty if unknown.
    """

    fingerprint: str
    metrics: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    scores: dict[str, list[float]]


class PoolEntry(ResultsModel):
    """One run of the base branch, with the data that later comparisons need."""

    commit: str | None
    run_id: str
    created_at: str
    cases: dict[str, PoolCase]


class BaselineInfo(ResultsModel):
    """The baseline of a comparison. ``distance`` counts commits to the merge base."""

    commit: str | None = None
    ref: str | None = None
    run_id: str
    created_at: str
    distance: int | None = None


class ComparedMetric(ResultsModel):
    """One metric over the cases with scores in both runs: means, their difference, and its significance.

    Attributes:
        gating: whether the metric can fail the gate.
        interval: interval of the difference, at the policy's confidence level.
        p: one-sided probability of such a drop without any change, from the deciding comparison.
        units: number of independent units: clusters, and cases without a cluster.
        runs: number of baseline runs; ``iterations``: usual number of iterations per case in a current run.
        detectable_drop: smallest drop that is detected with a probability of 80 %.
        advice: the cheapest way to halve the detectable drop, if it is larger than the tolerance.
    """

    id: str
    n: int
    baseline: float
    current: float
    difference: float
    verdict: RunVerdict
    reason: str
    gating: bool = True
    interval: tuple[float, float] | None = None
    p: float | None = None
    units: int | None = None
    runs: int | None = None
    iterations: int | None = None
    detectable_drop: float | None = None
    advice: str | None = None


class ComparedResource(ResultsModel):
    """Time, tokens or cost per answer in both runs; ``change`` is relative to the baseline.

    ``allowed`` is the largest allowed increase; ``None`` if the policy only reports it.
    """

    name: Literal["latency_ms", "tokens", "cost_usd"]
    n: int
    baseline: float
    current: float
    change: float | None
    allowed: float | None = None
    exceeded: bool = False


class History(ResultsModel):
    """The results of a case in the baseline runs."""

    runs: int
    iterations: int
    pass_rate: float


class ScoreChange(ResultsModel):
    """One metric of one case; ``None`` for a run without a score."""

    id: str
    before: float | None
    after: float | None
    passed_before: bool | None = None
    passed_after: bool | None = None
    reason: str | None = None


class AnswerChange(ResultsModel):
    """The answers of both runs to one turn.

    Attributes:
        shortened_before: size and hash of the whole earlier answer, if ``before`` is only its beginning.
        shortened_after: the same for ``after``.
    """

    turn: int
    input: str
    before: str | None
    after: str | None
    shortened_before: Shortened | None = Field(default=None, exclude_if=lambda value: value is None)
    shortened_after: Shortened | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def same(self) -> bool:
        """Whether both whole answers are equal."""
        return self.before == self.after and self.shortened_before == self.shortened_after


class ComparedCase(ResultsModel):
    """One case in both runs. ``changed``: the question or every metric differs, so the case is not compared."""

    id: str
    name: str
    change: CaseChange
    status_before: CaseStatus | None
    status_after: CaseStatus | None
    score_before: float | None
    score_after: float | None
    line: int | None = None
    metrics: list[ScoreChange] = Field(default=[])
    answers: list[AnswerChange] = Field(default=[])
    notes: list[CaseNote] = Field(default=[])
    history: History | None = None


class Comparison(ResultsModel):
    """The comparison of this run with a baseline.

    Attributes:
        verdict: ``unchanged`` if no regression was found; the reason in ``policy`` states which drop is excluded.
        unproven: what could not be compared or confirmed; without a regression, ``verdict`` is then ``unproven``.
        policy: the rule with its settings and reasons, and also ``resources`` and ``notes``.
    """

    baseline: BaselineInfo
    verdict: RunVerdict
    # Omitted if empty.
    unproven: list[Unproven] = Field(default=[], exclude_if=lambda value: not value)
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    policy: Annotated[dict[str, Any], AfterValidator(clean_json)]

    @property
    def resources(self) -> list[ComparedResource]:
        """Time, tokens and cost per answer in both runs."""
        return [ComparedResource.model_validate(item) for item in self.policy.get("resources", [])]

    @property
    def notes(self) -> list[str]:
        """Messages about omitted data and other facts about the comparison."""
        return [str(note) for note in self.policy.get("notes", [])]

    def metric(self, name: str) -> ComparedMetric:
        """Return the comparison of one metric.

        Raises:
            KeyError: no case has a score of it in both runs.
        """
        for metric in self.metrics:
            if metric.id == name:
                return metric
        raise KeyError(name)
