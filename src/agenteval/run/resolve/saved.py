"""Resolves commands on finished runs: saved results, and shards to merge."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import noting_reads
from agenteval.core.redact import Redactor
from agenteval.core.secrets import redactor
from agenteval.core.text import place_of, working_directory
from agenteval.results.case import SuiteResult
from agenteval.results.history import read_history
from agenteval.results.merge import Merged
from agenteval.results.model import Results
from agenteval.run.baseline import Search, masked, read_baseline, search_baseline
from agenteval.run.config import Config, Settings
from agenteval.run.context import RunContext
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.configurations import Configurations, Sources, find_configurations, read_configurations
from agenteval.run.resolve.control import with_config_defaults
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.resolve.suites import load_suites
from agenteval.run.resolve.written import definitions_of, presentation, templates_of
from agenteval.suite.cases import masked_suite
from agenteval.suite.model import Suite


def resolve_saved(results: Results, settings: Settings, environment: Mapping[str, str]) -> GateSpec:
    """Return what the gate needs to decide on the results in a file.

    Args:
        results: the run; the suites that are on this machine lead to their configurations, as in the run.
        settings: the configuration, history, templates, and what fails the gate.
        environment: the runner's variables with the GitHub instance and repository for links.

    Raises:
        ConfigError: a configuration or a template is invalid.
    """
    with noting_reads() as opened:
        configs = configurations_of(results, settings)
        past = read_history(settings.history)
    config = configs.of_run
    look = presentation(config, environment)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare,
        presentation=look,
        redact=redactor(configs.secrets),
        earlier=past.runs,
        warnings=past.warnings,
        inputs=(*templates_of(look), *definitions_of([*opened, *files_of(results.suites)])),
    )


def configurations_of(results: Results, settings: Settings) -> Configurations:
    """Return the configurations of the suites of a run that are on this machine.

    Raises:
        ConfigError: configurations are not valid, or contradict each other.
    """
    problems: list[Problem] = []
    sources = Sources(working_directory(), config=settings.config)
    configs = read_configurations(find_configurations(sources, files_of(results.suites)), problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return configs


def files_of(suites: Iterable[SuiteResult]) -> list[Path]:
    """Return the files of the suites of a run that are on this machine."""
    return [file for suite in suites if (file := place_of(suite.path)) is not None]


def unchanged_suites(
    results: Sequence[SuiteResult], settings: Settings, secrets: Iterable[str]
) -> tuple[tuple[Suite, ...], Redactor]:
    """Return the suites of a run that this repository still has as they were, and what masks secrets in them."""
    loaded = _suites_here(results, settings)
    redact = redactor(frozenset(secrets).union(*(suite.secrets for suite in loaded)))
    prints = {suite.path: suite.fingerprint for suite in results}
    here = (masked_suite(suite, redact) for suite in loaded)
    return tuple(suite for suite in here if prints.get(suite.path) == suite.fingerprint), redact


def _suites_here(results: Collection[SuiteResult], settings: Settings) -> list[Suite]:
    files = files_of(results)
    if not files:
        return []
    # Problems are ignored: a suite that cannot be read has changed since the run.
    problems: list[Problem] = []
    loaded = load_suites(Sources(working_directory(), tuple(files), settings.config), problems)
    configs = read_configurations(loaded.places, problems).by_file
    found = ((suite, configs[loaded.config_of[suite.path]]) for suite in loaded.suites)
    return [_bound(with_config_defaults(suite, config), config) for suite, config in found]


def _bound(suite: Suite, config: Config) -> Suite:
    """Return the suite with every ``*`` expanded, if its agents are known."""
    try:
        return bind(suite, None, config).suite
    except ConfigError:
        return suite


def resolve_merge(merged: Merged, settings: Settings, context: RunContext | None = None) -> GateSpec:
    """Return what the gate needs to decide on merged results.

    The merged results alone decide: no case runs again.

    Args:
        settings: the configuration, baseline, history, templates, and what fails the gate.

    Raises:
        ConfigError: the configuration, the baseline or a template is invalid.
    """
    context = context or RunContext()
    results = merged.results
    with noting_reads() as opened:
        configs = configurations_of(results, settings)
        config = configs.of_run
        suites, redact = unchanged_suites(results.suites, settings, configs.secrets)
    look = presentation(config, os.environ)
    baseline = _baseline(settings, context, results)
    past = read_history(settings.history)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare.without_runs(),
        presentation=look,
        redact=redact,
        suites=suites,
        baseline=masked(baseline.found, redact, config.max_answer_bytes) if baseline.found else None,
        max_answer_bytes=config.max_answer_bytes,
        earlier=past.runs,
        inputs=(*templates_of(look), *definitions_of(opened)),
        warnings=(*context.warnings, *configs.warnings, *merged.warnings, *baseline.warnings, *past.warnings),
    )


def _baseline(settings: Settings, context: RunContext, results: Results) -> Search:
    if settings.baseline is not None:
        from agenteval.results.importers.base import suites_of

        return Search(read_baseline(settings.baseline, suites_of(results)))
    if context.baseline is not None:
        return search_baseline(context.baseline, [case.id for _, case in results.cases()]).accepted()
    return Search()
