"""The specification of a run: all settings, configuration and suites, resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import GatePolicy
from agenteval.compare.integrity.integrity import Integrity
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Burden
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.process.confinement import UserCodeRules
from agenteval.core.text.redact import Redactor
from agenteval.report.presentation import Presentation
from agenteval.results.coverage import Coverage
from agenteval.results.model import RunShard
from agenteval.results.shortening import MAX_ANSWER_BYTES
from agenteval.results.summary import RunUsage
from agenteval.run.baseline import FoundBaseline, MissingBaseline
from agenteval.run.control_commit import ControlHost
from agenteval.run.plan import PlannedCase, RunLimits
from agenteval.run.progress import Activity
from agenteval.run.provenance import Provenance
from agenteval.run.resolve.selection import Selection
from agenteval.run.resolve.written import Input
from agenteval.run.setup import Setup
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.core.llm.spec import ModelSpec
    from agenteval.results.history import EarlierRun
    from agenteval.run.config.model import Config
    from agenteval.run.resolve.sources import Sources


@dataclass(frozen=True, kw_only=True)
class GateSpec:
    """How results are compared, decided and presented; the results may be new or from a file.

    Attributes:
        gate: the policy of the gate.
        compare: the policy of the comparison with the baseline.
        presentation: templates and links of comment and summary.
        suites: the suites of the results that could be read.
        baseline: the run to compare with, with secrets masked.
        missing_baseline: set if the base commit's agent may make the baseline, because no run of it was found.
        earlier: runs for the trend, the oldest first.
        warnings: warnings for the reports.
        max_answer_bytes: bytes of one text of an answer that results keep.
        burden: what earlier attempts of the pull request were proven to have lost, and this run must refute.
        integrity: how suites and rules differ from those of the base commit.
        ignore: patterns of git for files that cannot change the verdict.
        inputs: of a merge or of saved results, what no report may replace; see ``written.replaced_inputs``.
    """

    gate: GatePolicy
    compare: ComparePolicy
    presentation: Presentation
    redact: Redactor = field(repr=False)
    suites: tuple[Suite, ...] = ()
    baseline: FoundBaseline | None = None
    missing_baseline: MissingBaseline | None = None
    earlier: tuple[EarlierRun, ...] = ()
    warnings: tuple[str, ...] = ()
    max_answer_bytes: int = MAX_ANSWER_BYTES
    burden: Burden = field(default_factory=Burden)
    integrity: Integrity = field(default_factory=Integrity)
    ignore: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()

    @property
    def known(self) -> frozenset[str]:
        """The ids of all cases of the suites, including those that are not selected."""
        return frozenset(case.id for suite in self.suites for case in suite.cases)


@dataclass(frozen=True)
class TraceFiles:
    """Recorded traces that are scored instead of calling agents.

    Attributes:
        paths: the file or folder that each suite scores, by the suite's path.
        selection: the traces to score.
        keep_going: an unreadable line is a warning instead of an error.
        may_be_streams: whether an option, no suite or configuration, names the files, so that they may be pipes.
    """

    paths: Mapping[str, Path]
    selection: Selection
    keep_going: bool = False
    may_be_streams: bool = False


@dataclass(frozen=True, kw_only=True)
class SuiteSpec:
    """What a configuration decides about the cases of its suites.

    Attributes:
        config: its name, for messages; empty for the defaults.
        judge: the judge model for suites that name none and can also run without a judge.
        embeddings: the embedding model for suites that name none.
        interpreters: the Python interpreter of graders, by directory.
        rules: variables and limits of agents, tools and graders.
        case_s: limit for the conversation of one iteration, in seconds; ``None`` is no limit.
    """

    config: str = ""
    judge: ModelSpec | None = None
    embeddings: ModelSpec | None = None
    interpreters: Mapping[str, str] = field(default_factory=dict)
    rules: UserCodeRules = field(default_factory=UserCodeRules)
    case_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunSpec(GateSpec):
    """Everything about a run, resolved.

    Attributes:
        cases: the cases to run, in order; empty if traces are scored.
        left_out: the cases that the selection leaves out.
        selection: the cases that the caller selects.
        limits: limits of concurrency and time.
        llm: how models are called, and the limits of their usage.
        settings: what the configuration of each suite decides, by the suite's path; suites with the same
            configuration share the object.
        configs: the configurations that were read.
        config_of: the configuration of each suite, by the suite's path.
        of_run: the configuration that decides the settings of the run as a whole.
        seed: the random seed; ``None`` for a random one.
        setup: the setup and limits of user code.
        sources: the locations of suites and agents.
        control_host: what is known about the control commit.
        controls: deployments of the base commit's agents, by case id; the other cases need the control's files.
        traces: the traces to score instead of calling agents.
        shard: the shard to run; ``None`` for the whole run.
        baseline_of_whole: of a shard, the baseline of the whole run; only their merge is compared with it.
        coverage: what the run is to cover: its selection and limits.
        resume: whether to finish the run in the journal.
        provenance: the evaluated commit.
        out: the directory of the reports; ``None`` writes none.
        published: the directory to which they are copied after the run; ``None`` for none.
        journal: the file that receives every finished case.
        activity: what the run does, for the progress display.
        conditions: what must be the same for the run to be resumed; ``None`` for its inputs.
        quiet: whether to hide the progress.
        proposed: the cases as the change has them, by id, where the base commit's version runs instead.
    """

    cases: tuple[PlannedCase, ...]
    left_out: tuple[PlannedCase, ...]
    selection: Selection
    limits: RunLimits
    llm: LlmSettings
    settings: Mapping[str, SuiteSpec]
    configs: Sequence[Config]
    config_of: Mapping[str, Config]
    of_run: Config
    seed: int | None
    setup: Setup
    sources: Sources
    control_host: ControlHost
    controls: Mapping[str, AgentSpec]
    traces: TraceFiles | None
    shard: RunShard | None
    coverage: Coverage
    resume: bool
    provenance: Provenance
    out: Path | None
    published: Path | None
    journal: Path
    activity: Activity
    quiet: bool
    conditions: Mapping[str, str] | None = None
    baseline_of_whole: FoundBaseline | None = None
    base_suites: tuple[Path, ...] = ()
    proposed: Mapping[str, Case] = field(default_factory=dict)

    def after(self, usage: RunUsage, seconds: float) -> RunSpec:
        """Return the specification with the remaining limits.

        Args:
            usage: calls and cost of models so far.
            seconds: time so far.
        """
        llm = replace(self.llm, limits=self.llm.limits.minus(usage.llm_calls, usage.cost_usd))
        return replace(self, limits=self.limits.minus(seconds), llm=llm)
