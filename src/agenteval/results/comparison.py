"""The comparison of a run with its baseline in results.json, and the baseline of earlier runs."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from agenteval.results.case import CaseStatus, ResultsModel, ScoreStatus, Shortened, Text, ToolCall
from agenteval.results.verdict import Unproven

#: The state of a comparison, and of a metric in it. ``suspicious``: it may be worse, and nothing ran to tell.
State = Literal["clear", "suspicious", "cleared", "proven", "unproven"]
#: What the state rests on. ``beside``: passes of the base beside those of the change; ``alone``: the base could not
#: run, or nothing could; ``memory``: passes side by side that look for what an earlier attempt proved.
Stage = Literal["first", "second", "beside", "alone", "memory"]
#: Why the start is the commit since which the base branch is the same.
StartCause = Literal["proven", "accepted", "declared"]
# accepted: somebody accepted the change of the case, so it does not count.
CaseNote = Literal["suspicious", "flaky", "quarantined", "accepted"]
#: ``broke`` and ``repaired`` are proven. ``changed``: the question or every metric differs.
CaseChange = Literal["broke", "repaired", "same", "changed", "new", "removed"]


# A larger number of lost iterations is not from a run.
_MOST_ITERATIONS = 10_000


class MadeWith(ResultsModel):
    """What a run was made with: with another judge, model or number of iterations a new baseline begins.

    Attributes:
        agents: models of the agents, as far as suites and configuration name them; empty if unknown.
        judges: models of the judges; empty if unknown.
        iterations: usual number of iterations of a case; ``None`` if unknown.
    """

    agents: list[Text] = Field(default=[])
    judges: list[Text] = Field(default=[])
    iterations: int | None = None


class BaselineCase(ResultsModel):
    """The scores of one case in one earlier run, by metric and iteration.

    Attributes:
        fingerprint: hash of the question; empty if unknown.
        metrics: metric id → hash of its configuration and expected values; empty if unknown.
        scores: metric id → score of each iteration; 0 where the agent failed. ``resource:latency`` and its like are
            amounts: seconds, US dollars, tokens.
        lost: metric id → number of iterations without a score, because the agent or a judge could not be reached.
    """

    fingerprint: str
    metrics: dict[str, str] = Field(default={}, exclude_if=not_)
    scores: dict[str, list[float]]
    # Omitted if nothing was lost.
    lost: dict[str, Annotated[int, Field(ge=0, le=_MOST_ITERATIONS)]] = Field(default={}, exclude_if=not_)


class BaselineRun(ResultsModel):
    """One run of the base branch, with the data that later comparisons need.

    Attributes:
        start: the commit since which the base branch is the same: the last proven, accepted or declared change.
        cause: what that change was, in its first run only.
        looked: whether a look back at the base branch was made after this run.
        made_with: the models and iterations of the run.
    """

    commit: str | None
    run_id: str
    created_at: str
    # Omitted if unknown.
    start: str | None = Field(default=None, exclude_if=lambda value: value is None)
    cause: StartCause | None = Field(default=None, exclude_if=lambda value: value is None)
    looked: bool = Field(default=False, exclude_if=not_)
    made_with: MadeWith | None = Field(default=None, exclude_if=lambda value: value is None)
    cases: dict[str, BaselineCase]


class BaselineInfo(ResultsModel):
    """The baseline of a comparison.

    Attributes:
        workflow_run_id: the workflow run with its results, in the artifact ``workflow_artifact``; omitted if unknown.
        distance: number of commits from its commit to the base commit, with which the change is compared.
        between: the newest of these commits, whose changes are compared too; empty if unknown.
    """

    commit: str | None = None
    ref: str | None = None
    run_id: str
    created_at: str
    file: Text = Field(default="", exclude_if=not_)
    workflow_run_id: str | None = Field(default=None, exclude_if=lambda value: value is None)
    workflow_artifact: str | None = Field(default=None, exclude_if=lambda value: value is None)
    distance: int | None = None
    between: list[str] = Field(default=[], exclude_if=not_)


class FailedOf(ResultsModel):
    """How many of some iterations failed."""

    failed: int
    of: int

    @property
    def passed(self) -> int:
        """How many passed."""
        return self.of - self.failed

    def __str__(self) -> str:
        return f"{self.passed:,}/{self.of:,}"


class CaseMove(ResultsModel):
    """A case that moved as a proven mean did: its means and failures in the passes that prove it.

    Attributes:
        baseline: its mean on the base.
        current: its mean in the passes of the change.
        baseline_failures: ``None`` if the metric has no pass or fail in this case.
    """

    id: str
    baseline: float
    current: float
    baseline_failures: FailedOf | None = None
    current_failures: FailedOf | None = None


class ComparedMetric(ResultsModel):
    """One metric over the cases with values in both runs.

    Amounts of resources are the usual amount of a case: seconds, US dollars or tokens.

    Attributes:
        gating: whether the metric can fail the gate; others are only reported.
        state: its state; ``clear`` for metrics that are only reported.
        baseline: mean of the base's passes beside the change, or else of the baseline.
        current: mean of the change's passes beside the base, or else of the first run.
        first: mean of the first run.
        earlier: mean of the baseline.
        low: lower end of the interval of the difference that belongs to ``limit``.
        high: its upper end.
        p: one-sided probability of such a drop without any change; ``None`` if nothing ran side by side.
        limit: the p up to which the drop is proven.
        passes: passes of each side; ``None`` if nothing ran side by side.
        runs: number of runs in the baseline.
        iterations: usual number of iterations per case in the first run.
        allowed: of a resource, the share by which it may rise.
        detectable_drop: drop that is found in about 8 of 10 pull requests.
        moved: the cases that moved as a proven mean did, those with the largest share of the change first.
    """

    id: str
    n: int
    baseline: float
    current: float
    difference: float
    state: State
    gating: bool = True
    first: float | None = None
    earlier: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    limit: float | None = None
    passes: int | None = None
    runs: int | None = None
    iterations: int | None = None
    allowed: float | None = Field(default=None, exclude_if=lambda value: value is None)
    detectable_drop: float | None = None
    # Omitted if empty.
    moved: list[CaseMove] = Field(default=[], exclude_if=not_)

    @property
    def fell(self) -> bool:
        """Whether the mean is proven to have fallen, or the resource to have risen."""
        return self.state == "proven" and (self.difference < 0 if self.allowed is None else self.difference > 0)

    @property
    def rose(self) -> bool:
        """Whether the mean is proven to be better."""
        return self.state == "proven" and not self.fell


class Suspicion(ResultsModel):
    """A mean, or a case in one metric, that may be worse than in the baseline.

    Attributes:
        case: ``None`` for the mean.
        p: of the comparison with the baseline.
        stage: the last one in which it was lower.
    """

    metric: str
    case: str | None = None
    p: float
    stage: Stage


class Proof(ResultsModel):
    """One test of the passes side by side. With ``pr`` and ``base`` anybody can make it again.

    Attributes:
        case: ``None`` for the mean.
        difference: mean of the change − mean of the base; for a case, of the shares that pass.
        low: lower end of the interval that belongs to ``limit``; ``None`` for a case.
        high: its upper end.
        p: of Student's t, or of Fisher's exact test for a case.
        limit: the p up to which it is proven.
        pr: one number for each pass of the change: its mean, or the value of the case.
        base: the same for the base.
        failed: failures of the case in ``pr``; ``None`` for a mean.
        base_failed: its failures in ``base``.
        better: whether the test looks for an improvement.
        proven: whether the difference is proven.
    """

    metric: str
    case: str | None = None
    difference: float
    low: float | None = None
    high: float | None = None
    p: float
    limit: float
    pr: list[float]
    base: list[float]
    failed: int | None = None
    base_failed: int | None = None
    better: bool = Field(default=False, exclude_if=not_)
    proven: bool

    @property
    def current(self) -> FailedOf:
        """Failures of the case in the change's passes."""
        return FailedOf(failed=self.failed or 0, of=len(self.pr))

    @property
    def control(self) -> FailedOf:
        """Failures of the case in the base's passes."""
        return FailedOf(failed=self.base_failed or 0, of=len(self.base))


class Cost(ResultsModel):
    """What ran again, both sides together.

    Attributes:
        runs: ``calls`` as a multiple of one run of the suite.
        calls: iterations of cases.
    """

    runs: float = 0.0
    calls: int = 0


class ComparedResource(ResultsModel):
    """Time, tokens or cost per answer in both runs; ``change`` is relative to the baseline."""

    name: Literal["latency_ms", "tokens", "cost_usd"]
    n: int
    baseline: float
    current: float
    change: float | None


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
        calls_before: the tool calls of the earlier answer.
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
        answers: of cases that broke, were repaired, or may be worse.
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


class Comparison(ResultsModel):
    """The comparison of this run with a baseline.

    Attributes:
        state: the state of the comparison.
        stage: what the state rests on.
        why: what is missing for a proof; empty unless the state is ``unproven``.
        headline: the finding in one phrase.
        sentences: how certain it is, one sentence each.
        unproven: everything that counts and could not be compared or proven; a missing proof is among them.
        base_sha: the commit that ran beside the change; ``None`` if none did.
        start_sha: the commit since which the base branch is the same.
        cause: why a new baseline begins with this run; ``None`` if none does.
        baseline_runs: ids of the runs that the first run was compared with.
        suspicions: what was suspicious.
        pairs: pairs of passes side by side.
        family: number of suspicious means and cases, by which the limits are divided.
        proofs: the tests side by side.
        memory: whether an earlier attempt of the pull request had proven it already.
        cost: what ran again; ``None`` if nothing did.
        resources: time, tokens and cost per answer in both runs.
        improvement: whether somebody asked to prove an improvement, and what it found.
        decline: whether the base branch has declined slowly; empty if this run did not look.
        rescored: the metrics whose baseline scores are new scores of the baseline's stored answers.
        notes: about omitted data and other facts.
    """

    baseline: BaselineInfo
    state: State
    stage: Stage = "first"
    why: Text = Field(default="", exclude_if=not_)
    headline: Text
    sentences: list[Text] = Field(default=[])
    unproven: list[Unproven] = Field(default=[], exclude_if=not_)
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    base_sha: str | None = Field(default=None, exclude_if=lambda value: value is None)
    start_sha: str | None = Field(default=None, exclude_if=lambda value: value is None)
    cause: StartCause | None = Field(default=None, exclude_if=lambda value: value is None)
    baseline_runs: list[str] = Field(default=[])
    suspicions: list[Suspicion] = Field(default=[], exclude_if=not_)
    pairs: int = Field(default=0, exclude_if=not_)
    family: int = Field(default=0, exclude_if=not_)
    proofs: list[Proof] = Field(default=[], exclude_if=not_)
    memory: bool = Field(default=False, exclude_if=not_)
    cost: Cost | None = Field(default=None, exclude_if=lambda value: value is None)
    resources: list[ComparedResource] = Field(default=[], exclude_if=not_)
    improvement: Text = Field(default="", exclude_if=not_)
    decline: Text = Field(default="", exclude_if=not_)
    rescored: list[RescoredMetric] = Field(default=[], exclude_if=not_)
    notes: list[Text] = Field(default=[], exclude_if=not_)

    @property
    def worse(self) -> list[Proof]:
        """The means and cases that are proven to be worse."""
        return [proof for proof in self.proofs if proof.proven and not proof.better]

    @property
    def improvements(self) -> int:
        """Number of means and cases that are proven to be better."""
        return sum(proof.proven and proof.better for proof in self.proofs)

    @property
    def changed_cases(self) -> frozenset[str]:
        """The ids of the cases that are proven or accepted to have changed."""
        proven = {proof.case for proof in self.proofs if proof.proven and proof.case is not None}
        return frozenset(proven | {case.id for case in self.cases if "accepted" in case.notes})

    @property
    def open_means(self) -> list[ComparedMetric]:
        """The means that are proven to have fallen, or that may be worse: somebody can accept them."""
        return [metric for metric in self.metrics if metric.gating and (metric.fell or metric.state == "unproven")]

    def metric(self, name: str) -> ComparedMetric:
        """Return the comparison of one metric."""
        for metric in self.metrics:
            if metric.id == name:
                return metric
        raise KeyError(name)
