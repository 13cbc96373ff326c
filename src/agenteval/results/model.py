"""The model of results.json. Its JSON Schema is generated from these classes and published with each version.

Times are seconds unless a name ends in ``_ms``. Scores, rates and thresholds are 0..1. Timestamps are ISO 8601 in
UTC.
"""

from __future__ import annotations

import re
from operator import not_
from typing import Final, Literal

from pydantic import Field

from agenteval.results.case import CaseResult, NotAsked, ResultsModel, SuiteResult, Text
from agenteval.results.comparison import BaselineRun, Comparison, Stage
from agenteval.results.verdict import Gate, MendedBy

# Names that a note lists.
_LISTED = 3
EndedBy = Literal["signal", "time", "budget"]


class Coverage(ResultsModel):
    """What a run covered; ``null`` and empty values were not given.

    Attributes:
        cases: number of cases of the suites; ``null`` for recorded traces, which are not counted.
        selected: number of cases that are selected by filter, tags, names and an earlier run.
        finished: number of cases that finished in this file; a shard has a part of the selected ones.
        iterations: number of iterations of each case that the caller asked for; ``null``: as suites and configuration
            ask.
        filter: text that names and ids of the selected cases contain.
        tags: the selected cases have one of these.
        names: names or ids of the selected cases.
        failed_in: results of an earlier run in which the selected cases did not pass.
        max_llm_calls: budget of calls to models.
        max_cost_usd: budget of the cost of models, in US dollars.
        time_limit_s: time limit of the run, in seconds.
        ended_by: what ended the run, or its judging, before everything was evaluated; ``null``: nothing.
    """

    cases: int | None
    selected: int
    finished: int
    iterations: int | None = None
    filter: Text | None = None
    tags: list[Text] = Field(default=[])
    # Both are omitted if they were not given.
    names: list[Text] = Field(default=[], exclude_if=not_)
    failed_in: Text | None = Field(default=None, exclude_if=lambda value: value is None)
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    time_limit_s: float | None = None
    ended_by: EndedBy | None = None

    @property
    def counts_note(self) -> str:
        """``2 of 10 cases``; empty if every case was selected and finished."""
        total = self.selected if self.cases is None else self.cases
        noun = "case" if total == 1 else "cases"
        return f"{self.finished:,} of {total:,} {noun}" if self.finished < total else ""

    @property
    def selection_note(self) -> str:
        """``2 of 10 cases selected (filter 'x')``; empty if every case was selected."""
        asked = [f"filter '{self.filter}'"] if self.filter else []
        if self.tags:
            asked.append(f"{'tag' if len(self.tags) == 1 else 'tags'} {', '.join(self.tags)}")
        if self.names:
            more = f" and {len(self.names) - _LISTED} more" if len(self.names) > _LISTED else ""
            asked.append(f"{'case' if len(self.names) == 1 else 'cases'} {', '.join(self.names[:_LISTED])}{more}")
        if self.failed_in:
            asked.append(f"failed in {self.failed_in}")
        by = f" ({' and '.join(asked)})" if asked else ""
        if self.cases is None:
            return f"only selected traces{by}" if asked else ""
        return f"{self.selected:,} of {self.cases:,} cases selected{by}" if self.selected < self.cases else ""


DifferenceKind = Literal[
    "removed", "renamed", "edited", "new", "case", "metric", "agent", "setting", "workflow", "rules"
]
#: What a difference means for this run.
#: unproven: it takes something away from the comparison. base: the version of the base commit decides.
#: paired: the case is compared under its new name. absolute: nothing to compare with, so the case itself decides.
#: listed: it cannot be checked here.
Effect = Literal["unproven", "base", "paired", "absolute", "listed"]


class Acceptance(ResultsModel):
    """Who accepted a difference, and why.

    Attributes:
        author: author of the line in git, or login of the person on the CI host; empty if it is unknown.
    """

    author: Text = ""
    reason: Text


class Difference(ResultsModel):
    """One difference between the suites and rules of the base commit and those of the change.

    Attributes:
        kind: ``case`` is a property of a case, such as its number of iterations. ``agent`` is a property of an
            agent or of a tool under test. ``rules``: the base commit's suites and rules did not judge the run;
            ``after`` is why.
        case: id of the case; ``None`` if the difference concerns several cases, or none.
        cases: number of cases that it concerns.
        metric: id of the metric.
        setting: name of the setting, or of the property of the case or metric; the path of a workflow
            or of an action that it uses.
        before: the value in the base commit; ``None`` if it has none.
        after: the value in the change.
        effect: what decides in this run.
        loosens: whether the merge makes it easier to pass.
        fingerprint: of the case that can be accepted.
        accepted_by: who accepted it.
    """

    kind: DifferenceKind
    case: Text | None = None
    cases: int = Field(default=0, exclude_if=not_)
    metric: Text | None = None
    setting: Text | None = None
    before: Text | None = None
    after: Text | None = None
    effect: Effect
    loosens: bool = Field(default=False, exclude_if=not_)
    fingerprint: str = Field(default="", exclude_if=not_)
    accepted_by: Acceptance | None = None


# Far more than a gate can prove.
_MOST_FINDINGS = 10_000
_LONGEST_NAME = 10_000
_MOST_ATTEMPTS = 1_000_000
COMMIT = re.compile(r"[0-9a-f]{7,64}")


class Proven(ResultsModel):
    """What an attempt proved: a mean, or the pass rate of a case, fell by ``fall``."""

    metric: Text = Field(max_length=_LONGEST_NAME)
    case: Text | None = Field(default=None, max_length=_LONGEST_NAME)
    fall: float = Field(gt=0, allow_inf_nan=False)


class Memory(ResultsModel):
    """One attempt of a pull request, and what its next attempt must refute.

    Attributes:
        attempt: its number, from 1. Runs that repeat or resume an attempt have its number.
        key: hash of the files that count, the control and the conditions; see ``run.attempt``.
        control: commit that it was compared with; ``None`` if unknown.
        proven: what this attempt or an earlier one has proven, and none has refuted.
        repeats: whether this run repeats the verdict of the attempt and called nothing.
        forgotten_by: who made this attempt the first one, by the label ``agenteval: forget``.
    """

    attempt: int = Field(ge=1, le=_MOST_ATTEMPTS)
    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    control: str | None = Field(default=None, pattern=f"^{COMMIT.pattern}$")
    proven: list[Proven] = Field(default=[], max_length=_MOST_FINDINGS)
    repeats: bool = False
    forgotten_by: Text | None = Field(default=None, max_length=_LONGEST_NAME)


class RunUsage(ResultsModel):
    """Sums over a run, including judges.

    ``cached_calls`` were answered from a cache; the other sums omit them. ``saved_usd`` is what they would have cost,
    as far as the prices are known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    llm_calls: int = 0
    cost_usd: float = 0.0
    # Omitted if there were none.
    cached_calls: int = Field(default=0, exclude_if=not_)
    saved_usd: float = Field(default=0.0, exclude_if=not_)

    def plus(self, other: RunUsage) -> RunUsage:
        """Return the sums of two parts of a run."""
        return RunUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            llm_calls=self.llm_calls + other.llm_calls,
            cost_usd=self.cost_usd + other.cost_usd,
            cached_calls=self.cached_calls + other.cached_calls,
            saved_usd=self.saved_usd + other.saved_usd,
        )


class MetricSummary(ResultsModel):
    """One metric over all cases: number of scores, their mean, and the share that passed.

    Attributes:
        errors: number of answers for which the metric ended in an error.
        gating: whether the metric can decide about a case; otherwise it is only reported.
    """

    n: int
    mean: float | None
    pass_rate: float | None
    errors: int = Field(default=0, exclude_if=not_)
    gating: bool = Field(default=True, exclude_if=bool)


class NotJudged(NotAsked):
    """The number of cases whose judge was not called for one reason."""

    cases: int


class Judging(ResultsModel):
    """How many cases judges should score, and how many they scored.

    Attributes:
        cases: number of cases with a judge.
        judged: number of these whose judges were all called.
        not_judged: the other cases, by reason; a case has one reason.
    """

    cases: int
    judged: int
    not_judged: list[NotJudged]


class Summary(ResultsModel):
    """The figures of the whole run. ``pass_rate`` is the share of passed cases without skipped ones.

    Attributes:
        not_fully_evaluated: number of passed and failed cases in which a metric that can decide ended in an error.
        judging: omitted if every judge was called.
    """

    cases: int
    passed: int
    failed: int
    errors: int
    skipped: int
    pass_rate: float | None
    score: float | None
    metrics: dict[str, MetricSummary]
    usage: RunUsage
    not_fully_evaluated: int = Field(default=0, exclude_if=not_)
    judging: Judging | None = Field(default=None, exclude_if=lambda value: value is None)


SCHEMA_VERSION: Final = 3
OWN_NAME: Final = "agenteval"
#: The artifact of a workflow run that contains results.json, unless the workflow names another one.
DEFAULT_ARTIFACT: Final = "agenteval"


class UsedPlugin(ResultsModel):
    """A distribution whose extension took part in the run."""

    name: str
    version: str


class Tool(ResultsModel):
    """The program that wrote the file, and the extensions that it used."""

    name: str = OWN_NAME
    version: str
    plugins: list[UsedPlugin] = Field(default=[])


class ShardPass(ResultsModel):
    """A pass of one side: one iteration of the shard's cases.

    Attributes:
        for_means: whether it is one of the passes that prove means.
        values: metric → case → score, or the negative logarithm of an amount; ``None`` if it was lost.
    """

    side: Literal["pr", "base"]
    stage: Stage
    for_means: bool = Field(default=False, exclude_if=not_)
    values: dict[str, dict[str, float | None]]


class ShardProof(ResultsModel):
    """A shard's part of a proof: passes of the change and of the base, which only the merge decides on.

    Attributes:
        commit: that of the base.
        calls: iterations that ran, both sides.
        why: what ended the passes early; empty if nothing did.
    """

    commit: str | None
    passes: list[ShardPass]
    calls: int
    usage: RunUsage
    why: Text = Field(default="", exclude_if=not_)
    mended_by: MendedBy = Field(default="outside", exclude_if=lambda value: value == "outside")
    warnings: list[Text] = Field(default=[], exclude_if=not_)


class RunShard(ResultsModel):
    """The part of a run, or of the proof of a whole run, that this file contains.

    Attributes:
        index: from 1 to ``count``.
        cases: ids of the cases of all shards, in the order of their suites.
        divided_by: id of the run whose durations divided the cases, if any.
        proof: passes of the shard's cases; the rest of the file is the whole run. Omitted for a part of a run.
    """

    index: int = Field(ge=1)
    count: int = Field(ge=1)
    cases: list[str]
    divided_by: str | None = None
    proof: ShardProof | None = Field(default=None, exclude_if=lambda value: value is None)


class Run(ResultsModel):
    """Time, commit and environment of the run. ``complete`` is false if the run was interrupted."""

    id: str
    started_at: str
    finished_at: str
    duration_s: float
    complete: bool
    commit: str | None = None
    ref: str | None = None
    # The branch that a pull request is to be merged into, which judges it; omitted for other runs.
    base_ref: str | None = Field(default=None, exclude_if=lambda value: value is None)
    # Tracked files differed from the commit; omitted if they did not. Workflows do not record it.
    uncommitted: bool = Field(default=False, exclude_if=not_)
    repository: str | None = None
    workflow_run_id: str | None = None
    # The artifact of the workflow run with these results; omitted if it is unknown or called agenteval.
    workflow_artifact: str | None = Field(default=None, exclude_if=lambda value: value is None)
    # Files of version 1 have none.
    coverage: Coverage | None = Field(default=None, exclude_if=lambda value: value is None)
    # ``shard`` is set for shards only, ``merged`` (the ids of the parts) for merged runs only.
    shard: RunShard | None = Field(default=None, exclude_if=lambda value: value is None)
    # The random seed; omitted if none was given.
    seed: int | None = Field(default=None, exclude_if=lambda value: value is None)
    merged: list[str] = Field(default=[], exclude_if=not_)
    # How suites and rules differ from those of the base commit; omitted if they do not.
    integrity: list[Difference] = Field(default=[], exclude_if=not_)
    # Keys of the entries of .agenteval/accepted.yaml, by which later runs know that they are merged.
    accepted: list[str] = Field(default=[], exclude_if=not_)


class Results(ResultsModel):
    """The content of results.json; ``gate`` is ``null`` until the gate has decided."""

    schema_version: Literal[3] = SCHEMA_VERSION
    tool: Tool
    run: Run
    gate: Gate | None = None
    summary: Summary
    suites: list[SuiteResult]
    baseline_runs: list[BaselineRun] = Field(default=[])
    comparison: Comparison | None = Field(default=None)
    # Only runs for pull requests have it.
    memory: Memory | None = Field(default=None, exclude_if=lambda value: value is None)

    def cases(self) -> list[tuple[SuiteResult, CaseResult]]:
        """Yield every case with its suite, in suite order."""
        return [(suite, case) for suite in self.suites for case in suite.cases]

    @property
    def unfinished(self) -> int:
        """Number of selected cases that an interrupted run had not finished; 0 for a shard."""
        covered = self.run.coverage
        if self.run.complete or covered is None or self.run.shard is not None:
            return 0
        return max(0, covered.selected - self.summary.cases)

    @property
    def can_be_proven(self) -> bool:
        """Whether passes side by side can tell more: something may be worse, and nothing ran again."""
        found = self.comparison
        if found is None or found.cost is not None or self.run.shard is not None:
            return False
        return bool(found.suspicions) and found.state in {"suspicious", "unproven"}

    def failed(self) -> list[CaseResult]:
        """Yield every case that failed or could not be run, in suite order."""
        return [case for _, case in self.cases() if case.status in {"failed", "error"}]
