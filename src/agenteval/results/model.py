"""The model of results.json. Its JSON Schema is generated from these classes and published with each version.

Times are seconds unless a name ends in ``_ms``. Scores, rates and thresholds are 0..1. Timestamps are ISO 8601 in
UTC.
"""

from __future__ import annotations

from operator import not_
from typing import Final, Literal

from pydantic import Field

from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import Comparison, PoolEntry
from agenteval.results.coverage import Coverage
from agenteval.results.epoch import Epoch
from agenteval.results.integrity import Difference
from agenteval.results.memory import Memory
from agenteval.results.outlook import Outlook
from agenteval.results.summary import Summary
from agenteval.results.values import ResultsModel
from agenteval.results.verdict import Gate

SCHEMA_VERSION: Final = 2
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


class RunShard(ResultsModel):
    """The part of a run that this file contains.

    Attributes:
        index: from 1 to ``count``.
        cases: ids of the cases of all shards, in the order of their suites.
        divided_by: id of the run whose durations divided the cases, if any.
    """

    index: int = Field(ge=1)
    count: int = Field(ge=1)
    cases: list[str]
    divided_by: str | None = None


class Run(ResultsModel):
    """Time, commit and environment of the run. ``complete`` is false if the run was interrupted."""

    id: str
    started_at: str
    finished_at: str
    duration_s: float
    complete: bool
    commit: str | None = None
    ref: str | None = None
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

    schema_version: Literal[1, 2] = SCHEMA_VERSION
    tool: Tool
    run: Run
    gate: Gate | None = None
    summary: Summary
    suites: list[SuiteResult]
    pool: list[PoolEntry] = Field(default=[])
    # The runs of the base branch in the long run; omitted in its first run.
    epoch: Epoch | None = Field(default=None, exclude_if=lambda value: value is None)
    comparison: Comparison | None = Field(default=None)
    # What the gate will find with runs of the base branch; only first runs have it.
    outlook: list[Outlook] = Field(default=[], exclude_if=not_)
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

    def failed(self) -> list[CaseResult]:
        """Yield every case that failed or could not be run, in suite order."""
        return [case for _, case in self.cases() if case.status in {"failed", "error"}]
