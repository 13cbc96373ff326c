"""The comparison of a run with its baseline in results.json, and the pool of earlier runs."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from agenteval.results.case import CaseStatus, ResultsModel, ScoreStatus, Shortened, Text, ToolCall, clean_json
from agenteval.results.epoch import EpochBegin, EpochCause, LongLook, MadeWith
from agenteval.results.verdict import Unproven

RunVerdict = Literal["regressed", "unproven", "improved", "unchanged"]
#: What a verdict rests on. ``earlier-runs``: the base commit's agent could not run; ``files``: nothing could run;
#: ``long-look``: the base branch beside an early commit of its epoch.
Stage = Literal[
    "screen", "second", "head-to-head", "cases", "repeats", "memory", "earlier-runs", "files", "long-look"
]
# What proves that a mean changed. Runs of earlier days do not.
_PROVING_STAGES = frozenset({"head-to-head", "repeats"})
# suspect: the case passed less often than before, and that is not proven. accepted: somebody accepted the change of
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
    metrics: dict[str, str] = Field(default={}, exclude_if=not_)
    scores: dict[str, list[float]]
    # Omitted if nothing was lost.
    lost: dict[str, Annotated[int, Field(ge=0, le=_MOST_ITERATIONS)]] = Field(default={}, exclude_if=not_)


class PoolEntry(ResultsModel):
    """One run of the base branch, with the data that later comparisons need.

    Attributes:
        epoch: the commit where the pool began: the last one with a proven, declared or accepted change.
        begun_by: what began the epoch, in its first run only.
        made_with: the models, iterations and engine of the run.
    """

    commit: str | None
    run_id: str
    created_at: str
    # Omitted if unknown.
    epoch: str | None = Field(default=None, exclude_if=lambda value: value is None)
    begun_by: EpochCause | None = Field(default=None, exclude_if=lambda value: value is None)
    made_with: MadeWith | None = Field(default=None, exclude_if=lambda value: value is None)
    cases: dict[str, PoolCase]


class BaselineInfo(ResultsModel):
    """The baseline of a comparison.

    Attributes:
        distance: number of commits from its commit to the base commit, with which the change is compared.
        between: the newest of these commits: the comparison includes their changes. They are omitted if they are
            unknown.
    """

    commit: str | None = None
    ref: str | None = None
    run_id: str
    created_at: str
    distance: int | None = None
    between: list[str] = Field(default=[], exclude_if=not_)


class FailedOf(ResultsModel):
    """How many of some iterations failed."""

    failed: int
    of: int


class CaseMove(ResultsModel):
    """A case that moved as a proven mean did: its means and failed iterations in the runs that proved it.

    Attributes:
        baseline: its mean on the base, or in the earlier runs.
        current: its mean in the runs of the change.
        baseline_failures: ``None`` if the metric has no pass or fail in this case.
        current_failures: the same for the change.
    """

    id: str
    baseline: float
    current: float
    baseline_failures: FailedOf | None = None
    current_failures: FailedOf | None = None


class Finer(ResultsModel):
    """What more iterations would exclude: from ``iterations`` per case on, drops of more than ``bound``."""

    iterations: int
    bound: float


class ComparedMetric(ResultsModel):
    """One metric over the cases with scores in both runs: means, their difference, and its significance.

    Means, interval, p and limit are those of the test that decided.

    Attributes:
        gating: whether the metric can fail the gate; others are only reported.
        baseline: mean of the base commit's runs beside the change, or else of the earlier runs.
        interval: interval of the difference; its upper end is below 0 exactly if ``p`` is at most ``limit``.
        p: one-sided probability of such a drop without any change; ``None`` if no test of it decided.
        limit: the p at or below which the drop is proven.
        bound: the largest drop that the first run does not exclude, with a confidence of 95 %; ``None`` if further
            runs decided.
        finer: what more iterations would exclude, if the bound is large.
        suspicious: whether the first run raised a suspicion.
        first: mean of the first run.
        earlier: mean of the earlier runs.
        runs_a_side: runs of each side in the head-to-head; ``None`` if it was not made.
        units: number of independent units: clusters, and cases without a cluster.
        runs: number of baseline runs; ``iterations``: usual number of iterations per case in a current run.
        detectable_drop: smallest drop that is detected with a probability of 80 %.
        moved: the cases that moved as a proven mean did, those with the largest share of the change first.
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
    # Omitted if empty.
    finer: Finer | None = Field(default=None, exclude_if=lambda value: value is None)
    suspicious: bool = False
    first: float | None = None
    earlier: float | None = None
    runs_a_side: int | None = None
    units: int | None = None
    runs: int | None = None
    iterations: int | None = None
    detectable_drop: float | None = None
    # Omitted if empty.
    moved: list[CaseMove] = Field(default=[], exclude_if=not_)


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
    """What was run again, both sides together.

    Attributes:
        runs: ``calls`` as a multiple of one run of the suite, which has the iterations of the first run.
        calls: iterations of cases.
    """

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


class EarlierScore(ResultsModel):
    """A score of a turn in the baseline's run."""

    id: str
    score: float | None
    threshold: float | None = None
    passed: bool | None
    status: ScoreStatus


class AnswerChange(ResultsModel):
    """The answers of both runs to one turn.

    Attributes:
        calls_before: the tool calls of the earlier answer, without their results.
        scores_before: its scores.
        latency_before: the agent's time for it, in ms.
        shortened_before: size and hash of the whole earlier answer, if ``before`` is only its beginning.
        shortened_after: the same for ``after``.
    """

    turn: int
    input: str
    before: str | None
    after: str | None
    # Omitted if empty or unknown.
    calls_before: list[ToolCall] = Field(default=[], exclude_if=not_)
    scores_before: list[EarlierScore] = Field(default=[], exclude_if=not_)
    latency_before: float | None = Field(default=None, exclude_if=lambda value: value is None)
    shortened_before: Shortened | None = Field(default=None, exclude_if=lambda value: value is None)
    shortened_after: Shortened | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def same(self) -> bool:
        """Whether both whole answers are equal."""
        return self.before == self.after and self.shortened_before == self.shortened_after


class ComparedCase(ResultsModel):
    """One case in both runs. ``changed``: the question or every metric differs, so the case is not compared.

    Attributes:
        answers: of cases that regressed, improved or may have regressed.
        tries_before: how many iterations of the baseline's run failed, for a case that did not simply pass in both.
    """

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
    tries_before: FailedOf | None = Field(default=None, exclude_if=lambda value: value is None)


class RescoredMetric(ResultsModel):
    """A metric that scored stored answers of the baseline again, because its configuration changed.

    Attributes:
        id: the metric; ``score`` is the aggregated score of a suite.
        cases: ids of the cases.
    """

    id: str
    cases: list[str]


class LowControl(ResultsModel):
    """The control scored lower than the pool, so a model or a provider may have become worse.

    Attributes:
        p: one-sided probability of this without any change.
        epoch_began_at: time of the first run of the base branch's epoch.
        dispatches: whether a new run of the base branch is to be started if another pull request finds the same.
    """

    p: float = Field(ge=0, le=1)
    epoch_began_at: str
    dispatches: bool = Field(default=False, exclude_if=not_)


class ProofRequest(ResultsModel):
    """Somebody asked for the proof of an improvement of a change; on the base branch it is always made.

    Attributes:
        by: who asked: a login, or the option ``--prove``.
        verdict: ``unproven`` if the proof could not be finished.
        reason: what was found, as text.
    """

    by: Text
    verdict: Literal["improved", "unchanged", "unproven"]
    reason: Text


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
        begins: why an epoch begins without a proof; ``None`` if none does.
        long_look: the long look of a run of the base branch; ``None`` if none was due.
        low_control: that the control scored lower than the pool; ``None`` if it did not, or did not run.
        requested: who asked for the proof of an improvement, and the result; ``None`` without a request.
        rescored: the metrics whose baseline scores are new scores of the baseline's stored answers.
        policy: the rule with its settings and reasons, and also ``resources`` and ``notes``.
    """

    baseline: BaselineInfo
    verdict: RunVerdict
    # Omitted if empty.
    unproven: list[Unproven] = Field(default=[], exclude_if=not_)
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    # Omitted if empty.
    control: str | None = Field(default=None, exclude_if=lambda value: value is None)
    stage: Stage | None = Field(default=None, exclude_if=lambda value: value is None)
    looks: list[ComparedLook] = Field(default=[], exclude_if=not_)
    proofs: list[CaseProof] = Field(default=[], exclude_if=not_)
    cost: ConfirmationCost | None = Field(default=None, exclude_if=lambda value: value is None)
    begins: EpochBegin | None = Field(default=None, exclude_if=lambda value: value is None)
    long_look: LongLook | None = Field(default=None, exclude_if=lambda value: value is None)
    low_control: LowControl | None = Field(default=None, exclude_if=lambda value: value is None)
    requested: ProofRequest | None = Field(default=None, exclude_if=lambda value: value is None)
    rescored: list[RescoredMetric] = Field(default=[], exclude_if=not_)
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
    def headline(self) -> str:
        """The verdict as one short sentence."""
        return str(self.policy.get("headline", self.policy.get("reason")))

    @property
    def findings(self) -> list[str]:
        """What was found, one sentence each; empty for a simple rule."""
        return [str(text) for text in self.policy.get("findings", [])]

    @property
    def epoch_cause(self) -> EpochCause | None:
        """What makes a new epoch begin with this run, after which earlier runs do not count; ``None``: nothing."""
        changed = any(metric.gating and metric.verdict in {"regressed", "improved"} for metric in self.metrics)
        is_slow = self.long_look is not None and self.long_look.verdict == "regressed"
        if is_slow or (changed and self.stage in _PROVING_STAGES):
            return "proven"
        return self.begins.cause if self.begins is not None else None

    @property
    def begins_epoch(self) -> bool:
        """Whether a new epoch begins with this run."""
        return self.epoch_cause is not None

    @property
    def changed_cases(self) -> frozenset[str]:
        """The ids of the cases that are proven or accepted to have changed."""
        proven = {proof.id for proof in self.proofs if proof.proven}
        return frozenset(proven | {case.id for case in self.cases if "accepted" in case.notes})

    def metric(self, name: str) -> ComparedMetric:
        """Return the comparison of one metric.

        Raises:
            KeyError: no case has a score of it in both runs.
        """
        for metric in self.metrics:
            if metric.id == name:
                return metric
        raise KeyError(name)
