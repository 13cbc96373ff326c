"""Everything about a run, resolved once; and its plan."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.confine import UserCodeRules
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import redactor
from agenteval.core.text import working_directory
from agenteval.gate.integrity import Integrity
from agenteval.gate.values import ComparePolicy
from agenteval.gate.verdict import GatePolicy, is_quarantined_by_name
from agenteval.metrics.resources import GraderPool, Resources, RunResources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.parts import Presentation
from agenteval.report.words import count
from agenteval.results.model import Coverage, Proven, RunShard
from agenteval.run.config import Config, Settings
from agenteval.run.context import Attempt, FoundBaseline
from agenteval.run.git import Provenance
from agenteval.run.plan import CaseSource, Plan, PlannedCase, RunLimits, Shard, SuitePlan
from agenteval.run.progress import REPEATING, RUNNING, SCORING, Progress, make_progress
from agenteval.run.resolve.configurations import Sources
from agenteval.run.resolve.selection import Selection
from agenteval.run.setup import Setup
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Suite

if TYPE_CHECKING:
    from agenteval.core.errors import AgentEvalError
    from agenteval.core.llm.models import ModelSpec
    from agenteval.results.history import EarlierRun
    from agenteval.run.base_commit import BaseCommit
    from agenteval.run.config import Config


#: The limits of finished results, of which nothing runs.
ONE_AT_A_TIME = RunLimits(concurrency=1)
#: The coverage of finished results, which have their own.
NOTHING_COVERED = Coverage(cases=None, selected=0, finished=0)


@dataclass(frozen=True)
class TraceFiles:
    """Recorded traces that are scored instead of calling agents.

    Attributes:
        paths: the file or folder that each suite scores, by the suite's path.
        keep_going: an unreadable line is a warning instead of an error.
    """

    paths: Mapping[str, Path]
    selection: Selection
    keep_going: bool = False


@dataclass(frozen=True, kw_only=True)
class SuiteSpec:
    """What a configuration decides about the cases of its suites.

    Attributes:
        config: its name, for messages; empty for the defaults.
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
class ControlSpec:
    """What is known about the base commit before its agent runs.

    Attributes:
        base: its files, or why they cannot be used; ``None`` if the run needs none.
        start: the same of the commit of the base branch that a look back runs beside; ``None`` if none is due.
        unrelated: commits of earlier runs that are not in its history, for instance after a forced push.
        branch: the target branch; ``None`` if it is unknown.
        sources: where suites and configuration are in the change.
        suites: where they are in the base commit, with the directory of the change.
        agents: deployments of its agents, by case id; the other cases need its files.
    """

    base: BaseCommit | AgentEvalError | None = None
    start: BaseCommit | AgentEvalError | None = None
    unrelated: frozenset[str] = frozenset()
    branch: str | None = None
    sources: Sources
    suites: tuple[Path, ...] = ()
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """What is known from before a run.

    Attributes:
        baseline: the run to compare with; ``None`` without one, and for a shard, of which only the merge is compared.
        missing: set if the base commit's agent may make the baseline, because no run of it was found.
        attempt: the attempt of a pull request that begins; ``None`` if the run is for none.
    """

    baseline: FoundBaseline | None = None
    missing: tuple[str, ...] | None = None
    runs: tuple[EarlierRun, ...] = ()
    attempt: Attempt | None = None

    @property
    def proven(self) -> tuple[Proven, ...]:
        """What earlier attempts have proven, and this run must refute."""
        return () if self.attempt is None else tuple(self.attempt.memory.proven)


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a run writes.

    Attributes:
        directory: that of the reports; ``None`` writes none.
        published: the directory to which they are copied after the run; ``None`` for none.
        inputs: of finished results, what the command has read.
    """

    directory: Path | None = None
    published: Path | None = None
    journal: Path = Path()
    resume: bool = False
    quiet: bool = False
    inputs: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything about a run, resolved once: nothing replaces a part of it afterwards.

    Finished results have no cases to run: the fields up to ``setup`` are empty.

    Attributes:
        cases: the cases to run, in order; empty if traces are scored.
        traces: the traces to score instead of calling agents.
        settings: what the configuration of each suite decides, by the suite's path; suites with the same
            configuration share the object.
        integrity: how suites and rules differ from those of the base commit, and what was accepted.
    """

    cases: tuple[PlannedCase, ...] = ()
    traces: TraceFiles | None = None
    settings: Mapping[str, SuiteSpec] = field(default_factory=dict)
    configs: tuple[Config, ...] = ()
    limits: RunLimits = ONE_AT_A_TIME
    llm: LlmSettings = field(default_factory=LlmSettings)
    setup: Setup = field(default_factory=Setup)
    suites: tuple[Suite, ...] = ()
    gate: GatePolicy = field(default_factory=GatePolicy)
    compare: ComparePolicy = field(default_factory=ComparePolicy)
    integrity: Integrity = field(default_factory=Integrity)
    earlier: Earlier = field(default_factory=Earlier)
    control: ControlSpec = field(default_factory=lambda: ControlSpec(sources=Sources(working_directory())))
    presentation: Presentation = field(default_factory=Presentation)
    provenance: Provenance = field(default_factory=Provenance)
    coverage: Coverage = NOTHING_COVERED
    shard: RunShard | None = None
    output: Destination = field(default_factory=Destination)
    redact: Redactor = field(default_factory=redactor, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def baseline(self) -> FoundBaseline | None:
        """The run to compare with."""
        return self.earlier.baseline

    @property
    def known(self) -> frozenset[str]:
        """The ids of all cases of the suites, including those that are not selected."""
        return frozenset(case.id for suite in self.suites for case in suite.cases)


@dataclass(frozen=True, kw_only=True)
class PassPlan:
    """How a pass side by side differs from the run: in its cases, its interpreters, and the remaining limits.

    Attributes:
        interpreters: further Python interpreters of graders, by directory.
        conditions: what must be the same for the pass to be read from an earlier run.
    """

    cases: tuple[PlannedCase, ...]
    limits: RunLimits
    llm: LlmSettings
    interpreters: Mapping[str, str]
    journal: Path
    progress: Progress
    conditions: Mapping[str, str]


def make_plan(spec: RunSpec, again: PassPlan | None = None, *, resume: bool = False) -> Plan:
    """Return the plan of a run that calls agents or scores recorded traces, or of one of its passes."""
    cases: Sequence[PlannedCase] | CaseSource
    limits, llm, journal = spec.limits, spec.llm, spec.output.journal
    settings = spec.settings
    if again is not None:
        # A cached answer is no second sample.
        cases, limits, llm, journal = again.cases, again.limits, replace(again.llm, cache=None), again.journal
        changed = {
            id(item): replace(item, interpreters={**item.interpreters, **again.interpreters})
            for item in settings.values()
        }
        settings = {path: changed[id(item)] for path, item in settings.items()}
    else:
        cases = spec.cases if spec.traces is None else _recorded_cases(spec, spec.traces)
    gateway = Gateway(llm)
    by_config = {id(item): _suite_plan(item, llm, limits, gateway) for item in settings.values()}
    suites = {path: by_config[id(item)] for path, item in settings.items()}
    plan = Plan(
        run_id=uuid.uuid4().hex[:12],
        cases=cases,
        limits=limits,
        suites=suites,
        resources=RunResources(gateway, [plan.catalog.resources for plan in by_config.values()]),
        seed=llm.seed,
        journal=journal,
        redact=spec.redact,
        progress=_progress(spec) if again is None else again.progress,
        compared=again is not None or spec.baseline is not None or spec.earlier.missing is not None,
        is_quarantined_by_name=partial(is_quarantined_by_name, spec.gate) if spec.gate.quarantine else None,
        conditions=again.conditions if again is not None else None,
        baseline=spec.baseline.file if spec.baseline is not None else "",
        measured=tuple(spec.compare.resources),
        # The reports of the run are written already when a pass begins.
        replaced=tuple(_replaced(spec.output, resume=resume)) if again is None else (),
    )
    if not resume:
        return plan
    from agenteval.run.resume import resume_notice, resumed

    plan = resumed(plan)
    if again is None and not spec.output.quiet:
        sys.stderr.write(f"{resume_notice(plan)}\n")
    return plan


def _replaced(output: Destination, *, resume: bool) -> Iterator[Path]:
    if output.directory is not None and not resume:
        yield output.directory
    if output.published is not None:
        yield output.published


def _recorded_cases(spec: RunSpec, traces: TraceFiles) -> CaseSource:
    from agenteval.run.resume import RecordedCases

    return RecordedCases(
        [(suite, traces.paths[suite.path]) for suite in spec.suites],
        lambda case: traces.selection.includes(case.id, case.name, case.tags),
        names=traces.selection.names,
        redact=spec.redact,
        keep_going=traces.keep_going,
    )


def _progress(spec: RunSpec) -> Progress:
    bar = sys.stderr.isatty()
    # The number of traces is unknown until they are read.
    total = None if spec.traces is not None else sum(item.iterations for item in spec.cases)
    activity = SCORING if total is None else RUNNING if total == len(spec.cases) else REPEATING
    return make_progress(
        total, sys.stderr, activity, bar=bar, quiet=spec.output.quiet, title=_title(spec) if bar else ""
    )


def _title(spec: RunSpec) -> str:
    names = {item.suite.name for item in spec.cases}
    amounts = {item.iterations for item in spec.cases}
    agents = {(item.agent.kind, item.agent.target) for item in spec.cases}
    if len(names) != 1:
        return ""
    times = f" × {min(amounts)}" if amounts != {1} and len(amounts) == 1 else ""
    parts = [f"{count(len(spec.cases), 'case')}{times}"]
    if len(agents) == 1:
        kind, target = agents.pop()
        parts.append(f"{kind} {target if isinstance(target, str) else ' '.join(target)}".strip())
    return " · ".join((names.pop(), *parts))


def _suite_plan(settings: SuiteSpec, llm: LlmSettings, limits: RunLimits, gateway: Gateway) -> SuitePlan:
    resources = Resources(
        gateway=gateway,
        graders=GraderPool(settings.interpreters, limits.concurrency, settings.rules),
        judge=settings.judge,
        embedder=settings.embeddings,
        remembers=llm.cache is not None,
        seed=llm.seed,
    )
    return SuitePlan(MetricCatalog(resources), settings.rules, settings.case_s)


def compare_policy(
    configured: ComparePolicy, cases: Sequence[PlannedCase], traces: TraceFiles | None
) -> ComparePolicy:
    """Return a comparison policy, without confirmation for recorded answers, which are the same in every run."""
    recorded = frozenset(item.case.id for item in cases if item.agent.kind == REPLAY)
    policy = replace(configured, recorded=recorded)
    all_recorded = bool(recorded) and len(recorded) == len(cases)
    return policy.without_runs() if traces is not None or all_recorded else policy


def gate_policy(settings: Settings, config: Config) -> GatePolicy:
    """Return the policy of the gate: the configuration, with the caller's overrides."""
    fail_on = config.gate.fail_on if settings.fail_on is None else settings.fail_on
    return replace(
        config.gate, fail_on=fail_on, needs_baseline=config.gate.needs_baseline and settings.wants_baseline
    )


def llm_settings(settings: Settings, configured: LlmSettings) -> LlmSettings:
    """Return how models are called: the configuration, with the caller's overrides; of a shard its share."""
    models = configured.limits
    limits = Limits(
        max_calls=models.max_calls if settings.max_llm_calls is None else settings.max_llm_calls,
        max_cost_usd=models.max_cost_usd if settings.max_cost_usd is None else settings.max_cost_usd,
    )
    cache = configured.cache if settings.use_cache else None
    return llm_share(replace(configured, limits=limits, cache=cache, seed=settings.seed), settings.shard)


# A cost is shared in billionths of a dollar.
_UNITS = 1_000_000_000


def llm_share(llm: LlmSettings, shard: Shard | None) -> LlmSettings:
    """Return how a shard calls models: the budgets and rates of all shards add up to those of the run."""
    if shard is None:
        return llm
    calls, usd, rate = llm.limits.max_calls, llm.limits.max_cost_usd, llm.requests_per_minute
    limits = Limits(
        max_calls=None if calls is None else shard.share(calls),
        max_cost_usd=None if usd is None else shard.share(round(usd * _UNITS)) / _UNITS,
        whole=llm.limits,
    )
    return replace(llm, limits=limits, requests_per_minute=None if rate is None else rate / shard.count)


def covered_by(llm: LlmSettings) -> dict[str, float | None]:
    """Return the budget of the whole run, for its coverage."""
    limits = llm.limits.whole or llm.limits
    return {"max_llm_calls": limits.max_calls, "max_cost_usd": limits.max_cost_usd}
