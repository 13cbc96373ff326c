"""What results.json is. Its JSON Schema is generated from these models and published with each version.

Times are seconds unless a name ends in ``_ms``; scores, rates and thresholds are 0..1; timestamps
are ISO 8601 in UTC.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = 2
OWN_NAME: Final = "agenteval"

_SURROGATE = re.compile("[\ud800-\udfff]")
# Readers of JSON give up at some depth; 200 is a common one, and values stand inside other levels.
_MAX_DEPTH = 100


def _clean_text(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _clean_json(value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, float | int):
        return value
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, dict | list | tuple) and depth == _MAX_DEPTH:
        return "… (nested too deeply)"
    if isinstance(value, dict):
        return {_clean_text(str(key)): _clean_json(item, depth + 1) for key, item in value.items()}
    return [_clean_json(item, depth + 1) for item in value] if isinstance(value, list | tuple) else value


# Agents send what they like; these keep what any reader of JSON takes: no lone surrogates, no endless nesting.
Text = Annotated[str, AfterValidator(_clean_text)]
Json = Annotated[Any, AfterValidator(_clean_json)]

CaseStatus = Literal["passed", "failed", "error", "skipped"]
ScoreStatus = Literal["scored", "skipped", "error"]
ScoreKind = Literal[
    "standard",
    "geval",
    "rag",
    "code",
    "tools",
    "match",
    "schema",
    "rule",
    "judge",
    "performance",
    "safety",
    "consistency",
    "custom",
]
RunVerdict = Literal["regressed", "inconclusive", "improved", "unchanged"]
# suspect: it fails where it passed, and nothing proves that this is no chance.
CaseNote = Literal["suspect", "flaky", "quarantined"]
CaseChange = Literal["regressed", "improved", "unchanged", "changed", "new", "removed"]


class _Model(BaseModel):
    # Readers of a later version's file ignore what they do not know.
    model_config = ConfigDict(extra="ignore", frozen=True)


class UsedPlugin(_Model):
    """A distribution whose extension took part in the run."""

    name: str
    version: str


class Tool(_Model):
    """The program that wrote the file, and the extensions that it used."""

    name: str = OWN_NAME
    version: str
    plugins: list[UsedPlugin] = []


class RunShard(_Model):
    """Which part of a run this is.

    Attributes:
        index: from 1 to ``count``.
        cases: ids of the cases of all parts, in the order of their suites.
        divided_by: id of the run whose durations divided them, if any.
    """

    index: int = Field(ge=1)
    count: int = Field(ge=1)
    cases: list[str]
    divided_by: str | None = None


class Run(_Model):
    """When and on what the suites ran. ``complete`` is false when the run was interrupted."""

    id: str
    started_at: str
    finished_at: str
    duration_s: float
    complete: bool
    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    workflow_run_id: str | None = None
    # Only where the run is one of several parts, or was made of several by merging; then their ids.
    shard: RunShard | None = Field(default=None, exclude_if=lambda value: value is None)
    # Of what is left to chance; left out where none was given.
    seed: int | None = Field(default=None, exclude_if=lambda value: value is None)
    merged: list[str] = Field(default=[], exclude_if=lambda value: not value)


class Usage(_Model):
    """Tokens and money one reply or one run took; ``None`` where nobody reported it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class RunUsage(_Model):
    """Sums over a run, judges included."""

    input_tokens: int = 0
    output_tokens: int = 0
    llm_calls: int = 0
    cost_usd: float = 0.0


class MetricSummary(_Model):
    """One metric over all cases: how many scores, their mean, and the share that passed."""

    n: int
    mean: float | None
    pass_rate: float | None


class Summary(_Model):
    """The whole run in numbers. ``pass_rate`` is passed over passed, failed and error."""

    cases: int
    passed: int
    failed: int
    errors: int
    skipped: int
    pass_rate: float | None
    score: float | None
    metrics: dict[str, MetricSummary]
    usage: RunUsage


class ToolCall(_Model):
    """One call of a tool that the agent made."""

    name: Text
    args: Json = None
    result: Json = None
    error: Text | None = None
    duration_ms: float | None = None


class Score(_Model):
    """What one metric said about one reply."""

    id: str
    kind: ScoreKind
    score: float | None
    threshold: float | None = None
    passed: bool | None
    status: ScoreStatus
    reason: Text | None = None
    error: Text | None = None
    model: str | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None
    details: Annotated[dict[str, Any] | None, AfterValidator(_clean_json)] = None


class TurnResult(_Model):
    """One exchange: what was asked, what came back, how it scored."""

    index: int
    input: Text
    ground_truth: Text | None
    response: Text | None
    tool_calls: list[ToolCall] = []
    retrieval_context: list[Text] = []
    latency_ms: float | None = None
    usage: Usage | None = None
    error: Text | None = None
    # Further attempts that it took; left out where there were none.
    retries: int = Field(default=0, exclude_if=lambda value: not value)
    scores: list[Score] = []


class IterationResult(_Model):
    """One pass through all turns of a case, in a session of its own."""

    index: int
    status: CaseStatus
    score: float | None
    turns: list[TurnResult]


class CaseResult(_Model):
    """A case over all its iterations. ``strict``: one failed iteration fails it; else the majority decides."""

    id: str
    name: str
    tags: list[str] = []
    cluster: str | None = None
    line: int | None = None
    # Left out where it is false.
    strict: bool = Field(default=False, exclude_if=lambda value: not value)
    status: CaseStatus
    score: float | None
    iterations: list[IterationResult]

    @property
    def reason(self) -> str:
        """Why the case did not pass: errors of the agent, then the scores that failed; empty for a passed case."""
        if self.status == "passed":
            return ""
        turns = [turn for iteration in self.iterations for turn in iteration.turns]
        errors = [turn.error for turn in turns if turn.error]
        scores = [score for turn in turns for score in turn.scores if score.passed is not True]
        decisive = [score for score in scores if score.status == "error" or score.passed is False] or scores
        return "; ".join(dict.fromkeys((*errors, *map(_reason, decisive))))


def _reason(score: Score) -> str:
    """One score in words."""
    found = score.error or score.reason or (score.status if score.score is None else f"scored {score.score:.2f}")
    return f"{score.id}: {found}"


class Criterion(_Model):
    """A condition on the suite as a whole."""

    name: str
    met: bool | None
    value: float | None = None
    threshold: float | None = None


class SuiteResult(_Model):
    """One suite file; ``threshold`` is the score that a case needs where all its scores become one."""

    path: str
    name: str
    format: str
    fingerprint: str
    criteria: list[Criterion] = []
    # Left out where it says nothing.
    threshold: float | None = Field(default=None, exclude_if=lambda value: value is None)
    cases: list[CaseResult]


class PoolCase(_Model):
    """The scores of one case in one earlier run, per metric and iteration.

    Attributes:
        fingerprint: hash of the question; empty where it is unknown.
        metrics: metric id → hash of its configuration and of what it compares with; empty where they are unknown.
    """

    fingerprint: str
    metrics: dict[str, str] = Field(default={}, exclude_if=lambda value: not value)
    scores: dict[str, list[float]]


class PoolEntry(_Model):
    """One run of the base branch as later comparisons need it."""

    commit: str | None
    run_id: str
    created_at: str
    cases: dict[str, PoolCase]


class BaselineInfo(_Model):
    """Which run was compared with. ``distance`` counts commits to the merge base."""

    commit: str | None = None
    ref: str | None = None
    run_id: str
    created_at: str
    distance: int | None = None


class ComparedMetric(_Model):
    """One metric over the cases that both sides scored: means, their difference, and how sure it is.

    Attributes:
        gating: whether it can fail the gate.
        interval: of the difference, at the policy's confidence.
        p: chance of such a fall without any change (one-sided), of the comparison that decided.
        units: independent cases: clusters, and cases without one.
        runs: runs of the baseline; ``iterations``: usual number per case in a run of the current side.
        detectable_drop: smallest drop that would have been caught with 80 % probability.
        advice: the cheapest way to halve it, where it is larger than the tolerance.
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


class ComparedResource(_Model):
    """Time, tokens or money per answer on both sides; ``change`` is relative to the baseline.

    ``allowed`` is the largest increase that the policy lets pass; ``None`` where it only reports.
    """

    name: Literal["latency_ms", "tokens", "cost_usd"]
    n: int
    baseline: float
    current: float
    change: float | None
    allowed: float | None = None
    exceeded: bool = False


class History(_Model):
    """How a case did in the baseline runs."""

    runs: int
    iterations: int
    pass_rate: float


class ScoreChange(_Model):
    """One metric of one case; ``None`` where a side has no score."""

    id: str
    before: float | None
    after: float | None
    passed_before: bool | None = None
    passed_after: bool | None = None
    reason: str | None = None


class AnswerChange(_Model):
    """The answers of both runs to one turn."""

    turn: int
    input: str
    before: str | None
    after: str | None


class ComparedCase(_Model):
    """One case in both runs. ``changed``: the question or every metric is another one, so nothing is compared."""

    id: str
    name: str
    change: CaseChange
    status_before: CaseStatus | None
    status_after: CaseStatus | None
    score_before: float | None
    score_after: float | None
    line: int | None = None
    metrics: list[ScoreChange] = []
    answers: list[AnswerChange] = []
    notes: list[CaseNote] = []
    history: History | None = None


class Comparison(_Model):
    """This run against a baseline.

    ``policy`` says by which rule, with its settings and reasons; among them ``resources`` and ``notes``.
    """

    baseline: BaselineInfo
    verdict: RunVerdict
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    policy: Annotated[dict[str, Any], AfterValidator(_clean_json)]

    @property
    def resources(self) -> list[ComparedResource]:
        """What answers took on both sides: time, tokens, money."""
        return [ComparedResource.model_validate(item) for item in self.policy.get("resources", [])]

    @property
    def notes(self) -> list[str]:
        """What was left out, and what to know besides."""
        return [str(note) for note in self.policy.get("notes", [])]

    def metric(self, name: str) -> ComparedMetric:
        """Return the comparison of one metric.

        Raises:
            KeyError: no case of both runs has a score of it.
        """
        for metric in self.metrics:
            if metric.id == name:
                return metric
        raise KeyError(name)


class Results(_Model):
    """The whole of results.json."""

    schema_version: Literal[1, 2] = SCHEMA_VERSION
    tool: Tool
    run: Run
    summary: Summary
    suites: list[SuiteResult]
    pool: list[PoolEntry] = []
    comparison: Comparison | None = Field(default=None)

    def cases(self) -> list[tuple[SuiteResult, CaseResult]]:
        """Every case with its suite, in suite order."""
        return [(suite, case) for suite in self.suites for case in suite.cases]

    def failed(self) -> list[CaseResult]:
        """Every case that failed or could not be evaluated, in suite order."""
        return [case for _, case in self.cases() if case.status in {"failed", "error"}]
