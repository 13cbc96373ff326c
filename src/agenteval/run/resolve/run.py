"""Resolves settings, configuration, suites and baseline into the specification of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import boundary, noting_reads
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import add_secrets, redactor
from agenteval.core.text import working_directory
from agenteval.gate.policy import ComparePolicy
from agenteval.gate.verdict import GatePolicy
from agenteval.report.report import Presentation
from agenteval.results.history import read_history
from agenteval.results.model import Coverage, Results, RunShard
from agenteval.results.store import RESULTS_FILE
from agenteval.run.baseline import Search, known_suites, masked, read_baseline, search_baseline
from agenteval.run.config import DEFAULT_CONCURRENCY, Config, Settings
from agenteval.run.context import RunContext, is_merge_group
from agenteval.run.git import Provenance, of_baseline, provenance
from agenteval.run.journal import JOURNAL_FILE
from agenteval.run.plan import PlannedCase, RunLimits, Shard, durations_of
from agenteval.run.progress import RUNNING, SCORING
from agenteval.run.resolve.agents import interpreters_of, traces_to_score
from agenteval.run.resolve.configurations import Configurations, Sources, read_configurations
from agenteval.run.resolve.control import named_controls, with_config_defaults, with_metrics
from agenteval.run.resolve.spec import RunSpec, Selection, SuiteSpec, TraceFiles, failed_cases
from agenteval.run.resolve.suites import (
    agent_beside_traces,
    bind_all,
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
from agenteval.run.resolve.written import (
    Input,
    definitions_of,
    extended_inputs,
    files_of_run,
    judgement_files,
    presentation,
    programs_of,
    recordings_of,
    replaced_inputs,
    reports_with_judgements,
    templates_of,
    traces_of,
)
from agenteval.run.setup import Setup
from agenteval.suite.agents import REPLAY
from agenteval.suite.cases import masked_suite
from agenteval.suite.model import AgentSpec, MetricConfig, Suite


def resolve_run(settings: Settings, context: RunContext | None = None) -> RunSpec:
    """Read all inputs of a run, and resolve every option.

    Raises:
        ConfigError: an option, a suite, a configuration or the baseline is invalid; it contains every problem.
    """
    context = context or RunContext()
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
    judgements = list(judgement_files(_metrics(found)))
    for out in filter(None, (settings.out, published)):
        problems += replaced_inputs(files_of_run(out / RESULTS_FILE), _inputs(found, cases))
        problems += reports_with_judgements(judgements, files_of_run(out / RESULTS_FILE))
    problems += extended_inputs(judgements, _inputs(found, cases))
    if problems:
        raise _error(problems, found)
    # The cases of recorded traces are unknown until the traces are read.
    known = () if found.traces else suites
    # The search uses the network, so it starts only after the files are valid.
    search = found.baseline or _search(found, context)
    run_provenance = context.provenance or provenance(os.environ, sources.here)
    if settings.shard is not None or found.traces or not _is_proposed(context, run_provenance):
        search = search.accepted()
    baseline, part, of_whole = search.found, None, None
    selected = len(cases)
    if settings.shard is not None:
        cases, part = _one_shard(cases, settings.shard, baseline.results if baseline else None)
        # Only the merged run is compared.
        baseline, of_whole = None, baseline
    past = read_history(settings.history)
    return RunSpec(
        gate=gate_policy(settings, config),
        compare=_compare_policy(found, cases),
        presentation=found.presentation,
        redact=redact,
        suites=tuple(suites),
        baseline=masked(baseline, redact, config.max_answer_bytes) if baseline else None,
        baseline_of_whole=masked(of_whole, redact, config.max_answer_bytes) if of_whole else None,
        missing_baseline=search.missing,
        earlier=past.runs,
        warnings=(
            *context.warnings,
            *configs.warnings,
            *(text for suite in suites for text in suite.warnings),
            *gate_warnings(settings, context, known, config.compare, config.gate.required),
            *_metrics_without_cases(found),
            *unused_options(settings, found.traces),
            *(() if found.traces else selection.warnings(item.case for item in every)),
            *search.warnings,
            *past.warnings,
        ),
        max_answer_bytes=config.max_answer_bytes,
        cases=cases,
        left_out=tuple(item for item in every if not selection.selects(item.case)),
        selection=selection,
        limits=_limits(settings, config, suites),
        llm=llm_settings(settings, config.llm),
        settings=_suite_specs(found),
        configs=[item for item in configs.all if item.name],
        config_of=found.config_of,
        of_run=config,
        seed=settings.seed,
        setup=Setup(context.setup, config.user_code),
        sources=sources,
        control_host=of_baseline(context.control, baseline.results.run.ref if baseline else None),
        controls=found.controls,
        traces=_trace_files(found.traces, selection, settings) if found.traces else None,
        shard=part,
        coverage=_coverage(found, settings, selected, config, redact),
        resume=settings.resume,
        provenance=run_provenance,
        out=settings.out,
        published=published,
        journal=(settings.out or context.scratch) / JOURNAL_FILE,
        activity=RUNNING if not found.traces else SCORING,
        quiet=settings.quiet,
    )


def _is_proposed(context: RunContext, of: Provenance) -> bool:
    """Return whether the base commit's agent can make the baseline of a run that proposes a change."""
    kind = context.control.rule.kind
    return kind == "pull-request" or is_merge_group(kind, of.ref)


def _selection(settings: Settings, redact: Redactor, problems: list[Problem]) -> Selection:
    failed = None
    with collected(problems):
        failed = failed_cases(settings.failed_in) if settings.failed_in is not None else None
    # Names and ids are compared as reports show them: with masked secrets.
    return Selection(settings.filter or "", settings.tags, tuple(map(redact, settings.cases)), failed)


def _trace_files(traces: Mapping[str, Path], selection: Selection, settings: Settings) -> TraceFiles:
    named = settings.traces is not None or settings.agent is not None
    return TraceFiles(traces, selection, settings.keep_going, may_be_streams=named and not boundary().roots)


@dataclass(frozen=True)
class _Found:
    """The content of the files that the settings name; incomplete if a file has problems.

    Attributes:
        config_of: the configuration of each suite, by the suite's path; without those that could not be read.
        agents: the agent of each case, by case id.
        traces: the recorded traces that each suite scores, by its path; empty if agents are asked.
        controls: deployments of the base commit's agents, by case id.
        baseline: the baseline file; ``None`` if the settings name none.
    """

    suites: Sequence[Suite]
    some_are_broken: bool
    configs: Configurations
    config_of: Mapping[str, Config]
    agents: Mapping[str, AgentSpec]
    traces: Mapping[str, Path]
    controls: Mapping[str, AgentSpec]
    presentation: Presentation
    baseline: Search | None
    opened: Collection[Path]

    def masked(self, redact: Redactor) -> _Found:
        """Return the same with masked secrets in the paths, ids and names of suites and cases."""
        return replace(
            self,
            suites=[masked_suite(suite, redact) for suite in self.suites],
            config_of={redact(path): config for path, config in self.config_of.items()},
            agents={redact(case_id): agent for case_id, agent in self.agents.items()},
            controls={redact(case_id): agent for case_id, agent in self.controls.items()},
            traces={redact(path): traces for path, traces in self.traces.items()},
        )

    def suites_of(self, config: Config) -> list[Suite]:
        """Return the suites with a configuration."""
        return [suite for suite in self.suites if self.config_of[suite.path] is config]


def _read(settings: Settings, sources: Sources, problems: list[Problem]) -> _Found:
    """Read suites, configurations, templates and the baseline file.

    Args:
        sources: locations of suites and configurations.

    Raises:
        ConfigError: no suite was found.
    """
    broken: list[Problem] = []
    with noting_reads() as opened:
        loaded = load_suites(sources, broken, [suite for suite in settings.suites if isinstance(suite, Suite)])
        problems += broken
        configs = read_configurations(loaded.places, problems)
    valid = {path: configs.by_file[file] for path, file in loaded.config_of.items() if file in configs.by_file}
    suites = [_with_defaults(suite, valid.get(suite.path), settings) for suite in loaded.suites]
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
        bound = bind_all([(suite, valid.get(suite.path)) for suite in asking], settings.agent, problems)
        suites, agents = list(bound.suites), bound.agents
    with_config = [(suite, valid[suite.path]) for suite in suites if suite.path in valid]
    controls = named_controls(settings.control, with_config, agents, problems)
    with collected(problems):
        look = presentation(configs.of_run, os.environ)
    problems += unusable
    with collected(problems):
        if settings.baseline is not None:
            # Recorded traces replace the cases of the suites.
            asked = [replace(suite, cases=()) for suite in suites] if traces else suites
            baseline = Search(read_baseline(settings.baseline, known_suites(asked)))
    return _Found(suites, bool(broken), configs, valid, agents, traces, controls, look, baseline, opened)


def _inputs(found: _Found, cases: Iterable[PlannedCase]) -> Iterator[Input]:
    """Yield the files that a run reads; see ``replaced_inputs``."""
    yield from traces_of(dict.fromkeys(found.traces.values()))
    agents = {id(item.agent): item.agent for item in cases}.values()
    yield from recordings_of({Path(str(agent.target)): None for agent in agents if agent.kind == REPLAY})
    turns = (turn for suite in found.suites for case in suite.cases for turn in case.turns if turn.files)
    yield from (("attachment", Path(file.path)) for turn in turns for file in turn.files if file.path is not None)
    yield from templates_of(found.presentation)
    reports = (suite.evaluation.report for suite in found.suites if suite.evaluation is not None)
    yield from (("template", Path(report.template)) for report in reports if report and report.template is not None)
    yield from programs_of([agent for agent in agents if agent.kind != REPLAY], _metrics(found))
    yield from definitions_of(found.opened)


def _metrics(found: _Found) -> Collection[MetricConfig]:
    used = (metric for suite in found.suites for case in suite.cases for metric in case.all_metrics)
    of_traces = (metric for suite in found.suites for metric in suite.metrics)
    return {id(metric): metric for metric in (*of_traces, *used)}.values()


def _with_defaults(suite: Suite, config: Config | None, settings: Settings) -> Suite:
    """Return a suite with the metrics, criteria and personas of its configuration, and with the caller's metrics."""
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
    """Return a warning for each added metric that scores no case of the suites of its configuration."""
    with_suites = ((config, found.suites_of(config)) for config in found.configs.all)
    return tuple(
        warning
        for config, suites in with_suites
        if suites
        for warning in metrics_without_cases(suites, config.metrics, found.traces)
    )


def _search(found: _Found, context: RunContext) -> Search:
    """Search for a baseline, if the environment of the run supports it."""
    if context.baseline is None:
        return Search()
    ids = [] if found.traces else [case.id for suite in found.suites for case in suite.cases]
    return search_baseline(context.baseline, ids)


def gate_policy(settings: Settings, config: Config) -> GatePolicy:
    """Return the policy of the gate: the configuration, with the caller's overrides."""
    fail_on = config.gate.fail_on if settings.fail_on is None else settings.fail_on
    return replace(
        config.gate, fail_on=fail_on, needs_baseline=config.gate.needs_baseline and settings.wants_baseline
    )


def _error(problems: Iterable[Problem], found: _Found) -> ConfigError:
    """Return the error with all problems; it also lists the valid suites."""
    problems = list(dict.fromkeys(problems))
    wrong = {problem.file for problem in problems}
    fine = [suite.path for suite in found.suites if suite.path not in wrong]
    return ConfigError(problems, fine if found.some_are_broken or len(fine) < len(found.suites) else ())


def _planned(found: _Found, settings: Settings) -> tuple[PlannedCase, ...]:
    """Return all cases with their agents and numbers of iterations."""
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
    """Return the cases of one shard, and the record of the shard for results.json."""
    ids = [item.case.id for item in cases]
    durations = durations_of(baseline) if baseline else {}
    part = shard.cases(ids, durations)
    divided_by = baseline.run.id if baseline and not durations.keys().isdisjoint(ids) else None
    record = RunShard(index=shard.index, count=shard.count, cases=ids, divided_by=divided_by)
    return tuple(item for item in cases if item.case.id in part), record


def _compare_policy(found: _Found, cases: Sequence[PlannedCase]) -> ComparePolicy:
    """Return the comparison policy, without confirmation for recorded answers, which are the same in every run."""
    recorded = frozenset(item.case.id for item in cases if item.agent.kind == REPLAY)
    policy = replace(found.configs.of_run.compare, recorded=recorded)
    if found.traces or (recorded and len(recorded) == len(cases)):
        return policy.without_runs()
    return policy


def _limits(settings: Settings, config: Config, suites: Sequence[Suite]) -> RunLimits:
    by_suite = max((suite.concurrency or 0 for suite in suites), default=0)
    return RunLimits(
        concurrency=settings.concurrency or config.concurrency or by_suite or DEFAULT_CONCURRENCY,
        run_s=config.time_limit_s if settings.time_limit_s is None else settings.time_limit_s,
    )


def _coverage(
    found: _Found, settings: Settings, selected: int, config: Config, redact: Callable[[str], str]
) -> Coverage:
    """Return what the run is to cover; how many cases finish is known afterwards."""
    limits = llm_settings(settings, config.llm).limits
    return Coverage(
        cases=None if found.traces else sum(len(suite.cases) for suite in found.suites),
        selected=selected,
        finished=0,
        iterations=settings.iterations,
        filter=redact(settings.filter) if settings.filter else None,
        tags=[redact(tag) for tag in settings.tags],
        names=[redact(name) for name in settings.cases],
        failed_in=redact(str(settings.failed_in)) if settings.failed_in else None,
        max_llm_calls=limits.max_calls,
        max_cost_usd=limits.max_cost_usd,
        time_limit_s=_limits(settings, config, found.suites).run_s,
    )


def llm_settings(settings: Settings, configured: LlmSettings) -> LlmSettings:
    """Return how models are called: the configuration, with the caller's overrides."""
    models = configured.limits
    limits = Limits(
        max_calls=models.max_calls if settings.max_llm_calls is None else settings.max_llm_calls,
        max_cost_usd=models.max_cost_usd if settings.max_cost_usd is None else settings.max_cost_usd,
    )
    cache = configured.cache if settings.use_cache else None
    return replace(configured, limits=limits, cache=cache, seed=settings.seed)
