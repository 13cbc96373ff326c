"""Resolves settings, configuration, suites and baseline into the specification of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import GatePolicy
from agenteval.compare.policy import ComparePolicy
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.runtime import gc_paused
from agenteval.report.presentation import Presentation
from agenteval.results.history import read_history
from agenteval.results.model import Results, RunShard
from agenteval.run.baseline import Search, known_suites, masked, read_baseline, search_baseline
from agenteval.run.config.model import DEFAULT_CONCURRENCY, Config
from agenteval.run.config.read import read_config
from agenteval.run.context import RunContext
from agenteval.run.journal.journal import JOURNAL_FILE
from agenteval.run.plan import PlannedCase, RunLimits
from agenteval.run.provenance import provenance
from agenteval.run.resolve.checks import (
    contradictions,
    gate_warnings,
    no_suite,
    nothing_selected,
    secret_names,
    without_cases,
    without_metrics,
)
from agenteval.run.resolve.defaults import with_config_defaults, with_metrics
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.redactor import redactor
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import RunSpec, Selection, TraceFiles
from agenteval.run.resolve.suites import bind_all, collected, config_path, suite_paths
from agenteval.run.settings import Settings
from agenteval.run.setup import Setup
from agenteval.suite.formats.registry import load_suites
from agenteval.suite.model import AgentSpec, Suite

if TYPE_CHECKING:
    from agenteval.run.shard import Shard

_REPLAY = "replay"


def resolve_run(settings: Settings, context: RunContext | None = None) -> RunSpec:
    """Read everything that a run needs, and make every choice.

    Args:
        settings: what the caller asks for.
        context: what the place of the run contributes.

    Raises:
        ConfigError: with every problem of options, suites, configuration and baseline; nothing was run.
    """
    context = context or RunContext()
    files = tuple(suite for suite in settings.suites if isinstance(suite, Path))
    sources = Sources(Path.cwd(), files, settings.config, settings.agent)
    problems = contradictions(settings)
    found = _read(settings, sources, problems)
    suites, config = found.suites, found.config
    selection = Selection(settings.filter or "", settings.tags)
    cases = () if problems else _planned(found, selection, settings)
    problems += without_cases(suites) if settings.traces is None else without_metrics(suites)
    if suites and not problems and settings.traces is None and not cases:
        problems.append(nothing_selected(selection))
    secrets = config.secrets.union(*(suite.secrets for suite in suites))
    problems += secret_names(suites, secrets)
    if problems:
        raise _error(problems, found)
    # Only now: what is wrong here shows before anything is asked over a network.
    search = found.baseline or _search(settings, context, suites)
    baseline, part = search.found, None
    if settings.shard is not None:
        cases, part = _one_shard(cases, settings.shard, baseline.results if baseline else None)
        # Only all parts together are compared.
        baseline = None
    past = read_history(settings.history)
    redact = redactor(secrets)
    return RunSpec(
        gate=gate_policy(settings, config),
        compare=_compare_policy(config, cases, settings),
        presentation=found.presentation,
        redact=redact,
        suites=tuple(suites),
        baseline=masked(baseline, redact) if baseline else None,
        earlier=past.runs,
        warnings=(
            *context.warnings,
            *config.warnings,
            *(text for suite in suites for text in suite.warnings),
            *gate_warnings(settings, context, suites, config.compare),
            *search.warnings,
            *past.warnings,
        ),
        cases=cases,
        limits=_limits(settings, config, suites),
        llm=_llm(settings, config),
        judge=config.judge,
        embeddings=config.embeddings,
        seed=settings.seed,
        interpreters=_interpreters(found.agents.values()),
        setup=resolve_setup(config, context.setup),
        sources=sources,
        base_agent=found.base_agent,
        traces=TraceFiles(settings.traces, selection, settings.keep_going) if settings.traces else None,
        shard=part,
        resume=settings.resume,
        provenance=context.provenance or provenance(os.environ, sources.here),
        out=settings.out,
        journal=(settings.out or context.scratch) / JOURNAL_FILE,
        activity="running",
        quiet=settings.quiet,
    )


@dataclass(frozen=True)
class _Found:
    """The content of the files that settings name; empty where a file has problems.

    Attributes:
        some_are_broken: a suite could not be read.
        baseline: from a file; ``None`` if the settings name none.
    """

    suites: Sequence[Suite]
    some_are_broken: bool
    config: Config
    agents: Mapping[str, AgentSpec]
    base_agent: AgentSpec | None
    presentation: Presentation
    baseline: Search | None


def _read(settings: Settings, sources: Sources, problems: list[Problem]) -> _Found:
    """Read suites, configuration, templates and the baseline file.

    Args:
        settings: what the caller asks for.
        sources: where suites and configuration are.
        problems: receives every problem of the files.

    Raises:
        ConfigError: there is no suite.
    """
    given = [suite for suite in settings.suites if isinstance(suite, Suite)]
    paths = suite_paths(sources) if sources.suites or not given else ()
    if not paths and not given:
        raise ConfigError([*problems, no_suite()])
    broken: list[Problem] = []
    with gc_paused():
        suites = [*load_suites(paths, broken), *given]
    problems += broken
    config, look, baseline = Config(), Presentation(), None
    base_agent: AgentSpec | None = None
    agents: Mapping[str, AgentSpec] = {}
    with collected(problems):
        config = read_config(config_path(sources, paths))
        # In this block only: without the configuration, the names that it defines would be unknown.
        suites = [with_metrics(with_config_defaults(suite, config), settings.metrics) for suite in suites]
        if settings.traces is None:
            suites, agents = bind_all(suites, settings.agent, config, problems)
        with collected(problems):
            base_agent = resolve_agent(settings.control, config, "--control") if settings.control else None
        look = presentation(settings, config, os.environ)
    with collected(problems):
        if settings.baseline is not None:
            # Recorded traces are not cases of their suites.
            asked = suites if settings.traces is None else [replace(suite, cases=()) for suite in suites]
            baseline = Search(read_baseline(settings.baseline, known_suites(asked)))
    return _Found(suites, bool(broken), config, agents, base_agent, look, baseline)


def _search(settings: Settings, context: RunContext, suites: Sequence[Suite]) -> Search:
    """Let the place of the run find a baseline, if it can."""
    if context.baseline is None:
        return Search()
    ids = [] if settings.traces else [case.id for suite in suites for case in suite.cases]
    return search_baseline(context.baseline, ids)


def gate_policy(settings: Settings, config: Config) -> GatePolicy:
    """Return what fails the gate: the configuration, with what the caller overrules."""
    return config.gate if settings.fail_on is None else replace(config.gate, fail_on=settings.fail_on)


def resolve_setup(config: Config, commands: str) -> Setup:
    """Return what user code needs and may use.

    Args:
        config: which secrets it gets, and its limits.
        commands: install what it needs.
    """
    return Setup(commands, config.pass_env, config.limits.memory_mb, config.limits.cpu_s)


def _error(problems: Iterable[Problem], found: _Found) -> ConfigError:
    """Return the error with all problems; it names the correct suites where others are not."""
    problems = list(dict.fromkeys(problems))
    wrong = {problem.file for problem in problems}
    fine = [suite.path for suite in found.suites if suite.path not in wrong]
    return ConfigError(problems, fine if found.some_are_broken or len(fine) < len(found.suites) else ())


def _planned(found: _Found, selection: Selection, settings: Settings) -> tuple[PlannedCase, ...]:
    """Return the selected cases, each with its agent and iterations."""
    if settings.traces is not None:
        return ()
    asked = (
        (suite, case, settings.iterations or case.iterations or suite.iterations)
        for suite in found.suites
        for case in suite.cases
        if selection.includes(case.id, case.name, case.tags)
    )
    return tuple(
        PlannedCase(
            suite=suite,
            case=case,
            agent=found.agents[case.id],
            iterations=iterations or found.config.iterations or 1,
            follow_recording=iterations is None,
        )
        for suite, case, iterations in asked
    )


def _one_shard(
    cases: Sequence[PlannedCase], shard: Shard, baseline: Results | None
) -> tuple[tuple[PlannedCase, ...], RunShard]:
    """Return the cases of one part of a run, and the record of that part for results.json.

    Args:
        cases: of all parts.
        shard: the part.
        baseline: its durations divide the cases.
    """
    from agenteval.run.shard import durations_of

    ids = [item.case.id for item in cases]
    durations = durations_of(baseline) if baseline else {}
    part = shard.cases(ids, durations)
    divided_by = baseline.run.id if baseline and not durations.keys().isdisjoint(ids) else None
    record = RunShard(index=shard.index, count=shard.count, cases=ids, divided_by=divided_by)
    return tuple(item for item in cases if item.case.id in part), record


def _compare_policy(config: Config, cases: Sequence[PlannedCase], settings: Settings) -> ComparePolicy:
    """Return the policy as far as it can be followed: a recorded answer is the same however often it is asked for."""
    recorded = frozenset(item.case.id for item in cases if item.agent.kind == _REPLAY)
    policy = replace(config.compare, recorded=recorded)
    if settings.traces is not None or (recorded and len(recorded) == len(cases)):
        return policy.without_confirmation()
    return policy


def _limits(settings: Settings, config: Config, suites: Sequence[Suite]) -> RunLimits:
    by_suite = max((suite.concurrency or 0 for suite in suites), default=0)
    models = config.llm.limits
    return RunLimits(
        concurrency=settings.concurrency or config.concurrency or by_suite or DEFAULT_CONCURRENCY,
        case_s=config.case_timeout_s,
        run_s=config.time_limit_s if settings.max_time_s is None else settings.max_time_s,
        models=Limits(
            max_calls=models.max_calls if settings.max_llm_calls is None else settings.max_llm_calls,
            max_cost_usd=models.max_cost_usd if settings.max_cost_usd is None else settings.max_cost_usd,
        ),
    )


def _llm(settings: Settings, config: Config) -> LlmSettings:
    cache = config.llm.cache if settings.use_cache else None
    return replace(config.llm, limits=Limits(), cache=cache, seed=settings.seed)


def _interpreters(agents: Iterable[AgentSpec]) -> Mapping[str, str]:
    """Return the Python of graders by directory: that of the agent beside them, where it names one."""
    return {
        agent.directory: str(agent.options["interpreter"]) for agent in agents if agent.options.get("interpreter")
    }
