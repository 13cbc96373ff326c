"""The specification of a run: every choice of settings, configuration and suites, made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import GatePolicy
from agenteval.compare.policy import ComparePolicy
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.text.redact import Redactor
from agenteval.report.presentation import Presentation
from agenteval.results.model import RunShard
from agenteval.run.baseline import FoundBaseline
from agenteval.run.journal.journal import CONFIRMATION_FILE
from agenteval.run.plan import PlannedCase, RunLimits
from agenteval.run.provenance import Provenance
from agenteval.run.setup import Setup
from agenteval.suite.model import AgentSpec, Suite

if TYPE_CHECKING:
    from agenteval.core.llm.spec import ModelSpec
    from agenteval.results.history import EarlierRun
    from agenteval.run.resolve.sources import Sources


@dataclass(frozen=True, kw_only=True)
class GateSpec:
    """How results are compared, decided on and shown, whether a run has just made them or a file holds them.

    Attributes:
        gate: what fails the gate.
        compare: how results are compared with the baseline.
        presentation: how comment and summary look.
        suites: the suites of the results, as far as they can be read here.
        baseline: the run to compare with, without secrets.
        earlier: runs for the trend, the oldest first.
        warnings: for the reports.
    """

    gate: GatePolicy
    compare: ComparePolicy
    presentation: Presentation
    redact: Redactor = field(repr=False)
    suites: tuple[Suite, ...] = ()
    baseline: FoundBaseline | None = None
    earlier: tuple[EarlierRun, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def known(self) -> frozenset[str]:
        """The ids of all cases of the suites, also of those that are not selected."""
        return frozenset(case.id for suite in self.suites for case in suite.cases)


@dataclass(frozen=True)
class Selection:
    """The cases that ``--filter`` and ``--tag`` select; all of them by default.

    Attributes:
        text: part of the name or id, upper and lower case being the same.
        tags: a case needs one of them; empty selects every case.
    """

    text: str = ""
    tags: tuple[str, ...] = ()

    def includes(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether a case is selected."""
        return self.text.casefold() in f"{case_id}\n{name}".casefold() and (
            not self.tags or not set(self.tags).isdisjoint(tags)
        )


@dataclass(frozen=True)
class TraceFiles:
    """Recorded traces that are scored instead of asking agents.

    Attributes:
        path: the file or folder.
        selection: which of them are scored.
        keep_going: an unreadable line is a warning, not an error.
    """

    path: Path
    selection: Selection
    keep_going: bool = False


@dataclass(frozen=True, kw_only=True)
class RunSpec(GateSpec):
    """Everything about a run, resolved.

    Attributes:
        cases: what runs, in order; none where traces are scored.
        limits: of concurrency, time, and what models may cost.
        llm: how models are called; `limits` has what they may cost.
        judge: judges where a suite names no model and can do without.
        embeddings: compares meanings where a suite names no model.
        seed: of everything random; ``None`` for any.
        interpreters: by directory, the Python that runs the graders there.
        setup: what user code needs, and what it may use.
        sources: where suites and agents were read.
        base_agent: the agent that runs for the base commit's; ``None`` reads it from that commit.
        traces: what is scored instead of asking agents.
        shard: which part of a run this is; ``None`` for all of it.
        resume: finish the run that left the journal.
        provenance: the commit under evaluation.
        out: the directory of the reports; ``None`` writes none.
        journal: the file that every finished case is written to.
        activity: what the run does, for the progress display.
        quiet: show no progress.
    """

    cases: tuple[PlannedCase, ...]
    limits: RunLimits
    llm: LlmSettings
    judge: ModelSpec | None
    embeddings: ModelSpec | None
    seed: int | None
    interpreters: Mapping[str, str]
    setup: Setup
    sources: Sources
    base_agent: AgentSpec | None
    traces: TraceFiles | None
    shard: RunShard | None
    resume: bool
    provenance: Provenance
    out: Path | None
    journal: Path
    activity: str
    quiet: bool

    def confirming(self, cases: Iterable[PlannedCase], limits: RunLimits) -> RunSpec:
        """Return the specification of the confirmation run of this one.

        Args:
            cases: what runs again.
            limits: what this run has left.
        """
        journal = self.journal.with_name(CONFIRMATION_FILE)
        return replace(
            self, cases=tuple(cases), limits=limits, resume=False, journal=journal, activity="confirming with"
        )
