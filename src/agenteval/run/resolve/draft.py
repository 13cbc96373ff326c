"""Reads settings, configuration, suites and baseline of a run, as the change has them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import add_secrets, redactor
from agenteval.core.text import working_directory
from agenteval.report.parts import Presentation
from agenteval.results.history import read_history
from agenteval.results.model import Coverage, Results, RunShard
from agenteval.run.config import DEFAULT_CONCURRENCY, Config, Settings
from agenteval.run.context import (
    RunContext,
    Search,
    baseline_of,
    is_merge_group,
    known_suites,
    masked,
    read_baseline,
    search_baseline,
)
from agenteval.run.git import Provenance, provenance
from agenteval.run.plan import PlannedCase, RunLimits, Shard, durations_of
from agenteval.run.resolve.agents import interpreters_of, traces_to_score
from agenteval.run.resolve.configurations import (
    Configurations,
    Sources,
    extended_inputs,
    presentation,
    read_configurations,
    templates_of,
    traces_of,
    unusable_directory,
)
from agenteval.run.resolve.control import named_controls, with_config_defaults, with_metrics, without_control
from agenteval.run.resolve.selection import Selection, failed_cases
from agenteval.run.resolve.spec import (
    ControlSpec,
    Destination,
    Earlier,
    RunSpec,
    SuiteSpec,
    TraceFiles,
    compare_policy,
    covered_by,
    gate_policy,
    llm_settings,
)
from agenteval.run.resolve.suites import (
    agent_beside_traces,
    bind_all,
    checked_suites,
    collected,
    gate_warnings,
    load_suites,
    metrics_without_cases,
    secret_metrics,
    undivided_traces,
    unusable_suites,
    unused_options,
    without_cases,
    without_metrics,
)
from agenteval.run.setup import Setup
from agenteval.run.store import JOURNAL_FILE
from agenteval.suite.agents import REPLAY
from agenteval.suite.cases import masked_suite
from agenteval.suite.forms import unreadable_texts
from agenteval.suite.model import AgentSpec, MetricConfig, Suite


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A run as the files of the change describe it, before a base commit decides about it.

    Attributes:
        of_run: the configuration that decides about the whole run.
        config_of: the configuration of each suite, by the suite's path.
        left_out: the planned cases that are not selected.
        baseline: the run whose commit gives the rules; a shard is not compared with it.
    """

    spec: RunSpec
    of_run: Config
    config_of: Mapping[str, Config]
    left_out: tuple[PlannedCase, ...]
    selection: Selection
    baseline: Results | None


def read_draft(settings: Settings, context: RunContext) -> Draft:
    """Read all inputs of a run, and resolve every option."""
    files = tuple(suite for suite in settings.suites if isinstance(suite, Path))
    sources = Sources(working_directory(), files, settings.config, settings.agent, settings.metrics)
    problems: list[Problem] = []
    found = _read(settings, sources, problems)
    secrets = found.configs.secrets.union(*(suite.secrets for suite in found.suites))
    add_secrets(secrets)
    redact = redactor(secrets)
    problems += secret_metrics(found.suites, secrets)
    found = found.masked(redact)
    suites, configs, config = found.suites, found.configs, found.configs.of_run
    selection = _selection(settings, redact, problems)
    problems += undivided_traces(settings, found.traces)
    problems += agent_beside_traces(settings)
    every = () if problems else _planned(found, settings)
    cases = tuple(item for item in every if selection.selects(item.case))
    if suites and not problems and not found.traces:
        problems += selection.problems([item.case for item in every])
    problems += unusable_suites(suites)
    # Where user code runs as the same user, reports are written to the published directory itself.
    published = None if context.published == settings.out else context.published
    inputs = list(_inputs(found, cases))
    for out in filter(None, (settings.out, published)):
        problems += unusable_directory(out, inputs)
    problems += extended_inputs(_metrics(found), inputs)
    if problems:
        raise _error(problems, found)
    # The cases of recorded traces are unknown until the traces are read.
    known = () if found.traces else suites
    # The search uses the network, so it starts only after the files are valid.
    search = found.baseline or _search(found, context)
    run_provenance = context.provenance or provenance(os.environ, sources.here)
    alone: Collection[str] = ()
    if found.traces or not _is_proposed(context, run_provenance):
        search = search.accepted()
        # Said where baselines are made; a suspicion of a change names its own reason.
        alone = without_control(cases, found.controls) if context.baseline is not None else ()
    selected, part = len(cases), None
    limits = _limits(settings, config, suites)
    compared = masked(search.found, redact, limits.max_answer_bytes) if search.found is not None else None
    baseline = compared.results if compared is not None else None
    if settings.shard is not None:
        cases, part = _one_shard(cases, settings.shard, baseline)
        # Only the merged run is compared.
        compared = None
    past = read_history(settings.history)
    traces = TraceFiles(found.traces, selection, settings.keep_going) if found.traces else None
    llm = llm_settings(settings, config.llm)
    spec = RunSpec(
        cases=cases,
        traces=traces,
        settings=_suite_specs(found),
        configs=tuple(item for item in configs.all if item.name),
        limits=limits,
        llm=llm,
        setup=Setup(context.setup, config.user_code),
        suites=tuple(suites),
        gate=gate_policy(settings, config),
        compare=compare_policy(config.compare, cases, traces),
        earlier=Earlier(baseline=compared, missing=search.missing, runs=past.runs),
        control=ControlSpec(sources=sources, agents=found.controls),
        presentation=found.presentation,
        provenance=run_provenance,
        coverage=_coverage(found, settings, selected, limits, redact).model_copy(update=covered_by(llm)),
        shard=part,
        output=Destination(
            directory=settings.out,
            published=published,
            journal=(settings.out or context.scratch) / JOURNAL_FILE,
            resume=settings.resume,
            quiet=settings.quiet,
        ),
        redact=redact,
        warnings=(
            *context.warnings,
            *found.warnings,
            *configs.warnings,
            *(text for suite in suites for text in (*suite.warnings, *unreadable_texts(suite))),
            *gate_warnings(settings, context, known, config.compare, config.gate.required),
            *_metrics_without_cases(found),
            *unused_options(settings, found.traces),
            *(() if found.traces else selection.warnings(item.case for item in every)),
            *search.warnings,
            *past.warnings,
            *alone,
        ),
    )
    return Draft(
        spec=spec,
        of_run=config,
        config_of=found.config_of,
        left_out=tuple(item for item in every if not selection.selects(item.case)),
        selection=selection,
        baseline=baseline,
    )


def _is_proposed(context: RunContext, of: Provenance) -> bool:
    """Return whether the base commit's agent can make the baseline of a run that proposes a change."""
    kind = context.control.rule.kind
    return kind == "pull-request" or is_merge_group(kind, of.ref)


def _selection(settings: Settings, redact: Redactor, problems: list[Problem]) -> Selection:
    # Names and ids are compared as reports show them: with masked secrets.
    selection = Selection(settings.filter or "", settings.tags, tuple(map(redact, settings.cases)))
    with collected(problems):
        if settings.failed_in is not None:
            file, ids = failed_cases(settings.failed_in)
            selection = replace(selection, failed=ids, failed_in=file)
    return selection


@dataclass(frozen=True)
class _Found:
    """The content of the files that the settings name; incomplete if a file has problems."""

    suites: Sequence[Suite]
    some_are_broken: bool
    configs: Configurations
    config_of: Mapping[str, Config]
    agents: Mapping[str, AgentSpec]
    traces: Mapping[str, Path]
    controls: Mapping[str, AgentSpec]
    presentation: Presentation
    baseline: Search | None
    definitions: Sequence[Path]
    warnings: tuple[str, ...]

    def masked(self, redact: Redactor) -> _Found:
        return replace(
            self,
            suites=[masked_suite(suite, redact) for suite in self.suites],
            config_of={redact(path): config for path, config in self.config_of.items()},
            agents={redact(case_id): agent for case_id, agent in self.agents.items()},
            controls={redact(case_id): agent for case_id, agent in self.controls.items()},
            traces={redact(path): traces for path, traces in self.traces.items()},
        )

    def suites_of(self, config: Config) -> list[Suite]:
        return [suite for suite in self.suites if self.config_of[suite.path] is config]


def _read(settings: Settings, sources: Sources, problems: list[Problem]) -> _Found:
    broken: list[Problem] = []
    skipped: list[Problem] = []
    given = [suite for suite in settings.suites if isinstance(suite, Suite)]
    loaded, places, files_of = load_suites(sources, broken, given, skipped)
    problems += broken
    configs = read_configurations(places, problems)
    definitions = [*places.of_suites, *places.files]
    valid = {path: configs.by_file[file] for path, file in files_of.items() if file in configs.by_file}
    every = (_with_defaults(suite, valid.get(suite.path), settings) for suite in loaded)
    suites = checked_suites(every, skipped, with_traces=settings.traces is not None)
    # Without its configuration, the names in a suite would be reported as unknown.
    known = [(suite, valid[suite.path]) for suite in suites if suite.path in valid]
    look, baseline = Presentation(), None
    agents: Mapping[str, AgentSpec] = {}
    traces = traces_to_score(known, settings)
    if settings.traces is not None:
        unusable = without_metrics(suites)
    elif len(known) < len(suites):
        # With a valid configuration, a suite with metrics may score the recording of an agent.
        unusable = without_cases([suite for suite in suites if suite.path in valid or not suite.metrics])
    else:
        unusable = without_metrics(suites) if traces else without_cases(suites)
    if not traces:
        # A suite without cases needs traces, not an agent; but a name may be that of a recording, misspelled.
        asking = [suite for suite in suites if suite.cases or not suite.metrics or suite.agent or settings.agent]
        suites, agents = bind_all([(suite, valid.get(suite.path)) for suite in asking], settings.agent, problems)
    with_config = [(suite, valid[suite.path]) for suite in suites if suite.path in valid]
    controls = named_controls(settings.control, with_config, agents, problems)
    with collected(problems):
        look = presentation(configs.of_run, os.environ)
    problems += unusable
    with collected(problems):
        if isinstance(settings.baseline, Results):
            baseline = Search(baseline_of(settings.baseline))
        elif settings.baseline is not None:
            # Recorded traces replace the cases of the suites.
            asked = [replace(suite, cases=()) for suite in suites] if traces else suites
            baseline = Search(read_baseline(settings.baseline, known_suites(asked)))
    if problems and not places.files:
        problems += places.unread
    warnings = (*map(str, skipped), *map(str, places.unread))
    return _Found(
        suites, bool(broken), configs, valid, agents, traces, controls, look, baseline, definitions, warnings
    )


def _inputs(found: _Found, cases: Iterable[PlannedCase]) -> Iterator[Path]:
    yield from found.definitions
    yield from traces_of(dict.fromkeys(found.traces.values()))
    agents = {id(item.agent): item.agent for item in cases}.values()
    yield from (Path(str(agent.target)) for agent in agents if agent.kind == REPLAY)
    turns = (turn for suite in found.suites for case in suite.cases for turn in case.turns if turn.files)
    yield from (Path(file.path) for turn in turns for file in turn.files if file.path is not None)
    yield from templates_of(found.presentation)
    reports = (suite.evaluation.report for suite in found.suites if suite.evaluation is not None)
    yield from (Path(report.template) for report in reports if report and report.template is not None)


def _metrics(found: _Found) -> Collection[MetricConfig]:
    used = (metric for suite in found.suites for case in suite.cases for metric in case.all_metrics)
    of_traces = (metric for suite in found.suites for metric in suite.metrics)
    return {id(metric): metric for metric in (*of_traces, *used)}.values()


def _with_defaults(suite: Suite, config: Config | None, settings: Settings) -> Suite:
    return with_metrics(with_config_defaults(suite, config) if config else suite, settings.metrics)


def _suite_specs(found: _Found) -> Mapping[str, SuiteSpec]:
    specs: dict[str, SuiteSpec] = {}
    for config in found.configs.all:
        suites = found.suites_of(config)
        agents = [found.agents[case.id] for suite in suites for case in suite.cases if case.id in found.agents]
        spec = SuiteSpec(
            config=config.name,
            judge=config.judge,
            embeddings=config.embeddings,
            interpreters=interpreters_of(agents),
            rules=config.user_code,
            case_s=config.case_timeout_s,
        )
        specs |= {suite.path: spec for suite in suites}
    return specs


def _metrics_without_cases(found: _Found) -> tuple[str, ...]:
    with_suites = ((config, found.suites_of(config)) for config in found.configs.all)
    return tuple(
        warning
        for config, suites in with_suites
        if suites
        for warning in metrics_without_cases(suites, config.metrics, found.traces)
    )


def _search(found: _Found, context: RunContext) -> Search:
    if context.baseline is None:
        return Search()
    ids = [] if found.traces else [case.id for suite in found.suites for case in suite.cases]
    return search_baseline(context.baseline, ids)


def _error(problems: Iterable[Problem], found: _Found) -> ConfigError:
    problems = list(dict.fromkeys(problems))
    wrong = {problem.file for problem in problems}
    fine = [suite.path for suite in found.suites if suite.path not in wrong]
    return ConfigError(problems, fine if found.some_are_broken or len(fine) < len(found.suites) else ())


def _planned(found: _Found, settings: Settings) -> tuple[PlannedCase, ...]:
    if found.traces:
        return ()
    asked = (
        (suite, case, settings.iterations or case.iterations or suite.iterations)
        for suite in found.suites
        for case in suite.cases
    )
    return tuple(
        PlannedCase(
            suite=suite,
            case=case,
            agent=found.agents[case.id],
            iterations=iterations or found.config_of[suite.path].iterations or 1,
            follow_recording=iterations is None,
        )
        for suite, case, iterations in asked
    )


def _one_shard(
    cases: Sequence[PlannedCase], shard: Shard, baseline: Results | None
) -> tuple[tuple[PlannedCase, ...], RunShard]:
    ids = [item.case.id for item in cases]
    durations = durations_of(baseline) if baseline else {}
    part = shard.cases(ids, durations)
    divided_by = baseline.run.id if baseline and not durations.keys().isdisjoint(ids) else None
    record = RunShard(index=shard.index, count=shard.count, cases=ids, divided_by=divided_by)
    return tuple(item for item in cases if item.case.id in part), record


def _limits(settings: Settings, config: Config, suites: Sequence[Suite]) -> RunLimits:
    by_suite = max((suite.concurrency or 0 for suite in suites), default=0)
    return RunLimits(
        concurrency=settings.concurrency or config.concurrency or by_suite or DEFAULT_CONCURRENCY,
        run_s=config.time_limit_s if settings.time_limit_s is None else settings.time_limit_s,
        max_answer_bytes=config.max_answer_bytes,
    )


def _coverage(found: _Found, settings: Settings, selected: int, limits: RunLimits, redact: Redactor) -> Coverage:
    return Coverage(
        cases=None if found.traces else sum(len(suite.cases) for suite in found.suites),
        selected=selected,
        finished=0,
        iterations=settings.iterations,
        filter=redact(settings.filter) if settings.filter else None,
        tags=[redact(tag) for tag in settings.tags],
        names=[redact(name) for name in settings.cases],
        failed_in=redact(str(settings.failed_in)) if settings.failed_in else None,
        time_limit_s=limits.run_s,
    )
