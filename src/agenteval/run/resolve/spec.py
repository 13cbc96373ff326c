"""What is run: the data that the other parts of a run get, with the selection of cases."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.confine import UserCodeRules
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import below
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.core.text import choices
from agenteval.gate.integrity.integrity import Integrity
from agenteval.gate.policy import ComparePolicy
from agenteval.gate.verdict import GatePolicy, is_quarantined_by_name
from agenteval.metrics.resources import GraderPool, Resources, RunResources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.report import Presentation
from agenteval.report.view.view import count
from agenteval.results.masking import MAX_ANSWER_BYTES
from agenteval.results.model import Coverage, Proven, Results, RunShard, RunUsage
from agenteval.results.store import RESULTS_FILE, read_results
from agenteval.run.baseline import FoundBaseline, MissingBaseline
from agenteval.run.git import ControlHost, Provenance
from agenteval.run.plan import CaseSource, Plan, PlannedCase, RunLimits, SuitePlan
from agenteval.run.progress import CONFIRMING, Activity, Progress, make_progress
from agenteval.run.resolve.written import Input
from agenteval.run.setup import Setup
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.core.llm.models import ModelSpec
    from agenteval.results.history import EarlierRun
    from agenteval.run.config import Config
    from agenteval.run.resolve.configurations import Sources


@dataclass(frozen=True)
class FailedCases:
    """The cases of a run that broke, failed or could not be run."""

    file: str
    ids: tuple[str, ...]


def failed_cases(path: Path) -> FailedCases:
    """Return the cases of a run that did not pass.

    Args:
        path: the results, a directory with them, or a directory with the results of the run and of its baseline.

    Raises:
        ConfigError: there are no readable results, those of several runs, or of an interrupted one, or every case
            passed.
    """
    try:
        file, results = _run_in(path)
    except ConfigError as error:
        hint = "--failed and --failed-in take the cases of an earlier run"
        raise ConfigError(replace(item, message=f"{item.message}; {hint}") for item in error.problems) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(path), kind=Kind.RESULTS)) from None
    if results.unfinished:
        message = f"the run was interrupted before {results.unfinished} of its cases had finished; --resume runs them"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))
    ids = _failed(results)
    if not ids:
        raise ConfigError(
            Problem("no case failed in this run, so none is to be run again", file=str(file), kind=Kind.RESULTS)
        )
    return FailedCases(str(file), ids)


def _failed(results: Results) -> tuple[str, ...]:
    compared = results.comparison.cases if results.comparison else []
    broke = {case.id for case in compared if case.change == "broke"}
    return tuple(case.id for _, case in results.cases() if case.id in broke or case.is_open)


def _run_in(path: Path) -> tuple[Path, Results]:
    """Return the results that a path names: of several, those that are no baseline of the others."""
    if not path.is_dir() or (path / RESULTS_FILE).exists():
        file = path / RESULTS_FILE if path.is_dir() else path
        return file, read_results(file)
    files = [folder / RESULTS_FILE for folder, _, names in below(path) if RESULTS_FILE in names]
    found = [(file, read_results(file)) for file in files]
    if not found:
        raise ConfigError(Problem(f"no {RESULTS_FILE} in this directory", file=str(path), kind=Kind.RESULTS))
    baselines = {results.comparison.baseline.run_id for _, results in found if results.comparison}
    runs = [(file, results) for file, results in found if results.run.id not in baselines]
    if len(runs) != 1:
        names = ", ".join(str(file) for file, _ in found)
        raise ConfigError(
            Problem(f"contains the results of several runs; name one of {names}", file=str(path), kind=Kind.RESULTS)
        )
    return runs[0]


# Ids that a message lists.
_LISTED = 3


@dataclass(frozen=True)
class Selection:
    """The cases that match every option that selects cases; by default all cases.

    Attributes:
        text: part of the name or id; upper and lower case are equal.
        tags: a case needs one of these tags; empty selects every case.
        names: a case needs one of these names or ids; empty selects every case.
        failed: a case must be one of these; ``None`` selects every case.
    """

    text: str = ""
    tags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    failed: FailedCases | None = None

    def selects(self, case: Case) -> bool:
        """Return whether a case is selected."""
        return self.includes(case.id, case.name, case.tags)

    def includes(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether a case is selected."""
        return (
            self.text.casefold() in f"{case_id}\n{name}".casefold()
            and (not self.tags or not set(self.tags).isdisjoint(tags))
            and (not self.names or case_id in self.names or name in self.names)
            and (self.failed is None or case_id in self.failed.ids)
        )

    def problems(self, cases: Collection[Case]) -> list[Problem]:
        """Return the problems of a selection from these cases: each unknown name, else that no case is selected."""
        return list(self._unknown(cases)) or list(self._none_of(cases))

    def warnings(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """Return a warning if some of the failed cases are not among these."""
        if self.failed is None or not (absent := self._absent(cases)):
            return ()
        which = "case that failed there is" if len(absent) == 1 else "cases that failed there are"
        return (f"{self.failed.file}: {len(absent)} {which} not in the suites of this run: {_some(absent)}",)

    def _unknown(self, cases: Collection[Case]) -> Iterator[Problem]:
        names = dict.fromkeys(case.name for case in cases)
        known = names | dict.fromkeys(case.id for case in cases)
        for name in dict.fromkeys(self.names):
            if name not in known:
                yield Problem(
                    f"--case: no case is named {name!r}{choices(name, names, 'known')}", kind=Kind.CASE_SELECTION
                )

    def _none_of(self, cases: Collection[Case]) -> Iterator[Problem]:
        if any(map(self.selects, cases)):
            return
        if self.failed is not None and len(absent := self._absent(cases)) == len(self.failed.ids):
            message = "none of the cases that failed there is in the suites of this run"
            yield Problem(
                f"{message}: {_some(absent)}; name their suites", file=self.failed.file, kind=Kind.CASE_SELECTION
            )
            return
        asked = [f"--filter {self.text!r}"] if self.text else []
        asked += [f"--tag {tag}" for tag in self.tags]
        asked += [f"--case {name!r}" for name in self.names]
        asked += [f"failed in {self.failed.file}"] if self.failed else []
        number = "there is 1 case" if len(cases) == 1 else f"there are {len(cases):,} cases"
        told = self._nearest(cases) or f"; {number}"
        yield Problem(f"no case matches {' and '.join(asked)}{told}", kind=Kind.CASE_SELECTION)

    def _nearest(self, cases: Collection[Case]) -> str:
        """Return what could be selected instead."""
        tags = dict.fromkeys(tag for case in cases for tag in case.tags)
        if self.tags and not any(tag in tags for tag in self.tags):
            return choices(self.tags[0], tags, "known") if tags else "; no case has a tag"
        if not self.text or any(map(Selection(self.text).selects, cases)):
            return ""
        return choices(self.text, (case.name for case in cases), "known")

    def _absent(self, cases: Iterable[Case]) -> list[str]:
        here = {case.id for case in cases}
        return [case_id for case_id in self.failed.ids if case_id not in here] if self.failed else []


def _some(ids: Collection[str]) -> str:
    shown = ", ".join(islice(ids, _LISTED))
    return f"{shown} and {len(ids) - _LISTED} more" if len(ids) > _LISTED else shown


@dataclass(frozen=True, kw_only=True)
class GateSpec:
    """How results are compared, decided and presented; the results may be new or from a file.

    Attributes:
        presentation: templates and links of comment and summary.
        missing_baseline: set if the base commit's agent may make the baseline, because no run of it was found.
        max_answer_bytes: bytes of one text of an answer that results keep.
        proven: what earlier attempts of the pull request have proven, and this run must refute.
        integrity: how suites and rules differ from those of the base commit.
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
    proven: tuple[Proven, ...] = ()
    integrity: Integrity = field(default_factory=Integrity)
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
        llm: how models are called, and the limits of their usage.
        settings: what the configuration of each suite decides, by the suite's path; suites with the same
            configuration share the object.
        seed: the random seed; ``None`` for a random one.
        control_host: what is known about the control commit.
        controls: deployments of the base commit's agents, by case id; the other cases need the control's files.
        traces: the traces to score instead of calling agents.
        shard: the shard to run; ``None`` for the whole run.
        baseline_of_whole: of a shard, the baseline of the whole run; only their merge is compared with it.
        out: the directory of the reports; ``None`` writes none.
        published: the directory to which they are copied after the run; ``None`` for none.
        activity: what the run does, for the progress display.
        conditions: what must be the same for the run to be resumed; ``None`` for its inputs.
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
        """
        llm = replace(self.llm, limits=self.llm.limits.minus(usage.llm_calls, usage.cost_usd))
        return replace(self, limits=self.limits.minus(seconds), llm=llm)


def make_plan(spec: RunSpec) -> Plan:
    """Return the plan of a run that calls agents or scores recorded traces.

    Raises:
        ConfigError: the run is to be resumed, and cannot be resumed.
    """
    cases = spec.cases if spec.traces is None else _recorded_cases(spec, spec.traces)
    gateway = Gateway(spec.llm)
    by_config = {id(settings): _suite_plan(spec, settings, gateway) for settings in spec.settings.values()}
    suites = {path: by_config[id(settings)] for path, settings in spec.settings.items()}
    plan = Plan(
        run_id=uuid.uuid4().hex[:12],
        cases=cases,
        limits=spec.limits,
        suites=suites,
        resources=RunResources(gateway, [plan.catalog.resources for plan in by_config.values()]),
        seed=spec.seed,
        journal=spec.journal,
        redact=spec.redact,
        progress=_progress(spec),
        compared=spec.baseline is not None or spec.missing_baseline is not None,
        is_quarantined_by_name=partial(is_quarantined_by_name, spec.gate) if spec.gate.quarantine else None,
        max_answer_bytes=spec.max_answer_bytes,
        conditions=spec.conditions,
        measured=tuple(spec.compare.resources),
        replaced=tuple(_replaced(spec)),
    )
    if not spec.resume:
        return plan
    from agenteval.run.resume import resume_notice, resumed

    plan = resumed(plan)
    if not spec.quiet:
        sys.stderr.write(f"{resume_notice(plan)}\n")
    return plan


def _replaced(spec: RunSpec) -> Iterator[Path]:
    """Yield the directories with files of an earlier run, which this run replaces."""
    if spec.activity is CONFIRMING:
        # The reports of the run that is confirmed are written already.
        return
    if spec.out is not None and not spec.resume:
        yield spec.out
    if spec.published is not None:
        yield spec.published


def _recorded_cases(spec: RunSpec, traces: TraceFiles) -> CaseSource:
    from agenteval.run.resume import RecordedCases

    return RecordedCases(
        [(suite, traces.paths[suite.path]) for suite in spec.suites],
        lambda case: traces.selection.includes(case.id, case.name, case.tags),
        names=traces.selection.names,
        redact=spec.redact,
        keep_going=traces.keep_going,
        may_be_streams=traces.may_be_streams,
    )


def _progress(spec: RunSpec) -> Progress:
    counted = sum(item.iterations for item in spec.cases) if spec.activity is CONFIRMING else len(spec.cases)
    # The number of traces is unknown until they are read.
    total = None if spec.traces is not None else counted
    bar = sys.stderr.isatty()
    title = _title(spec) if bar else ""
    return make_progress(total, sys.stderr, spec.activity, bar=bar, quiet=spec.quiet, title=title)


def _title(spec: RunSpec) -> str:
    """Return what is run, as in ``support-bot · 118 cases × 3 · http https://agent.example/chat``."""
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


def _suite_plan(spec: RunSpec, settings: SuiteSpec, gateway: Gateway) -> SuitePlan:
    resources = Resources(
        gateway=gateway,
        graders=GraderPool(settings.interpreters, spec.limits.concurrency, settings.rules),
        judge=settings.judge,
        embedder=settings.embeddings,
        remembers=spec.llm.cache is not None,
        seed=spec.seed,
    )
    return SuitePlan(MetricCatalog(resources), settings.rules, settings.case_s, settings.config)
