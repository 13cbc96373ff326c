"""The comparison of a run with its baseline in results.json, and the pool of earlier runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from agenteval.results.case import CaseStatus, Shortened
from agenteval.results.values import ResultsModel, clean_json
from agenteval.results.verdict import Unproven

RunVerdict = Literal["regressed", "unproven", "improved", "unchanged"]
#: What a verdict rests on. ``earlier-runs``: the base commit's agent could not run; ``files``: nothing could run.
Stage = Literal["screen", "second", "head-to-head", "cases", "repeats", "memory", "earlier-runs", "files"]
# suspect: the case failed more often than before, and that is not proven. accepted: somebody accepted the change of
# the case, so it does not count.
CaseNote = Literal["suspect", "flaky", "quarantined", "accepted"]
CaseChange = Literal["regressed", "improved", "unchanged", "changed", "new", "removed"]


# A larger number of lost iterations is not from a run.
_MOST_ITERATIONS = 10_000


class PoolCase(ResultsModel):
    """The scores of one case in one earlier run, by metric and iteration.

    Attributes:
        fingerprint: hash of the question; empty if unknown.
        metrics: metric id → hash of its configuration and expected values; empty if unknown.
        scores: metric id → score of each iteration; 0 where the agent failed.
        lost: metric id → number of iterations without a score, because the agent or a judge could not be reached.
    """

    fingerprint: str
    metrics: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    scores: dict[str, list[float]]
    # Omitted if nothing was lost.
    lost: dict[str, Annotated[int, Field(ge=0, le=_MOST_ITERATIONS)]] = Field(
        default={}, exclude_if=lambda value: not value
    )


class PoolEntry(ResultsModel):
    """One run of the base branch, with the data that later comparisons need.

    Attributes:
        epoch: the commit where the pool began: the last one with a proven change.
    """

    commit: str | None
    run_id: str
    created_at: str
    # Omitted if unknown.
    epoch: str | None = Field(default=None, exclude_if=lambda value: value is None)
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

    Means, interval, p and limit are those of the test that decided.

    Attributes:
        gating: whether the metric can fail the gate; others are only reported.
        baseline: mean of the base commit's runs beside the change, or else of the earlier runs.
        interval: interval of the difference; its upper end is below 0 exactly if ``p`` is at most ``limit``.
        p: one-sided probability of such a drop without any change.
        limit: the p at or below which the drop is proven.
        bound: the largest drop that the first run does not exclude, with a confidence of 95 %.
        first: mean of the first run.
        earlier: mean of the earlier runs.
        runs_a_side: runs of each side in the head-to-head; ``None`` if it was not made.
        units: number of independent units: clusters, and cases without a cluster.
        runs: number of baseline runs; ``iterations``: usual number of iterations per case in a current run.
        detectable_drop: smallest drop that is detected with a probability of 80 %.
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
    limit: float | None = None
    bound: float | None = None
    first: float | None = None
    earlier: float | None = None
    runs_a_side: int | None = None
    units: int | None = None
    runs: int | None = None
    iterations: int | None = None
    detectable_drop: float | None = None


class ComparedLook(ResultsModel):
    """One test of the head-to-head, after ``runs`` runs of each side.

    Attributes:
        metric: the metric with the smallest p.
        p: its p, adjusted for the number of metrics.
        limit: the p at or below which the drop is proven.
        difference: mean of the change's runs − mean of the base commit's.
        calm: whether the base commit's runs do not look lower than the pool.
    """

    runs: int
    metric: str
    p: float
    limit: float
    difference: float
    calm: bool


class FailedOf(ResultsModel):
    """How many of some iterations failed."""

    failed: int
    of: int


class CaseProof(ResultsModel):
    """A case that looked changed in one metric, and what its re-runs proved.

    Attributes:
        id: the case.
        metric: the metric.
        pool: failures in the earlier runs that it was compared with.
        first: failures in the first run.
        current: failures in the re-runs of the change.
        control: failures in the re-runs of the base commit beside it.
        q: probability of such a difference without a change; ``None`` if no test was made.
        limit: the q at or below which the change is proven.
        proven: whether the case is proven to have changed.
    """

    id: str
    metric: str
    pool: FailedOf
    first: FailedOf
    current: FailedOf
    control: FailedOf
    q: float | None = None
    limit: float | None = None
    proven: bool = False


class ConfirmationCost(ResultsModel):
    """What was run again: runs of the whole suite, and iterations of cases in all, both sides together."""

    runs: float = 0.0
    calls: int = 0


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
        control: the commit whose agent ran beside the change; ``None`` if it did not run.
        stage: what the verdict rests on; ``None`` for a simple rule.
        looks: the tests of the head-to-head, in order.
        proofs: the cases that looked changed; the proven ones first.
        cost: what was run again; ``None`` if nothing was.
        policy: the rule with its settings and reasons, and also ``resources`` and ``notes``.
    """

    baseline: BaselineInfo
    verdict: RunVerdict
    # Omitted if empty.
    unproven: list[Unproven] = Field(default=[], exclude_if=lambda value: not value)
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    # Omitted if empty.
    control: str | None = Field(default=None, exclude_if=lambda value: value is None)
    stage: Stage | None = Field(default=None, exclude_if=lambda value: value is None)
    looks: list[ComparedLook] = Field(default=[], exclude_if=lambda value: not value)
    proofs: list[CaseProof] = Field(default=[], exclude_if=lambda value: not value)
    cost: ConfirmationCost | None = Field(default=None, exclude_if=lambda value: value is None)
    policy: Annotated[dict[str, Any], AfterValidator(clean_json)]

    @property
    def resources(self) -> list[ComparedResource]:
        """Time, tokens and cost per answer in both runs."""
        return [ComparedResource.model_validate(item) for item in self.policy.get("resources", [])]

    @property
    def notes(self) -> list[str]:
        """Messages about omitted data and other facts about the comparison."""
        return [str(note) for note in self.policy.get("notes", [])]

    @property
    def begins_epoch(self) -> bool:
        """Whether the agent is proven to have changed, so that earlier runs say nothing about it any more."""
        if self.stage is None:
            return self.verdict in {"regressed", "improved"}
        changed = any(metric.gating and metric.verdict in {"regressed", "improved"} for metric in self.metrics)
        return changed and self.stage not in {"screen", "files"}

    def metric(self, name: str) -> ComparedMetric:
        """Return the comparison of one metric.

        Raises:
            KeyError: no case has a score of it in both runs.
        """
        for metric in self.metrics:
            if metric.id == name:
                return metric
        raise KeyError(name)
