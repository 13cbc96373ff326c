"""Resolves the gate, comparison and presentation of a merged run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.masking import redactor
from agenteval.core.paths import working_directory
from agenteval.results.case import SuiteResult
from agenteval.results.history import read_history
from agenteval.results.merge import Merged
from agenteval.results.model import Results
from agenteval.run.baseline import Search, masked, read_baseline, search_baseline
from agenteval.run.config.model import Config
from agenteval.run.context import RunContext
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.configurations import read_configurations
from agenteval.run.resolve.defaults import with_config_defaults
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.saved import configurations_of, files_of
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.resolve.suites import load_suites
from agenteval.run.settings import Settings
from agenteval.suite.masking import masked_suite
from agenteval.suite.model import Suite


def resolve_merge(merged: Merged, settings: Settings, context: RunContext | None = None) -> GateSpec:
    """Return what the gate needs to decide on merged results.

    The merged results alone decide: no case runs again.

    Args:
        merged: the results.
        settings: the configuration, baseline, history, templates, and what fails the gate.
        context: additions of the environment.

    Raises:
        ConfigError: the configuration, the baseline or a template is invalid.
    """
    context = context or RunContext()
    results = merged.results
    configs = configurations_of(results, settings)
    config = configs.of_run
    loaded = _suites_here(results.suites, settings)
    redact = redactor(configs.secrets.union(*(suite.secrets for suite in loaded)))
    suites = _unchanged(results.suites, (masked_suite(suite, redact) for suite in loaded))
    look = presentation(settings, config, os.environ)
    baseline = _baseline(settings, context, results)
    past = read_history(settings.history)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare.without_confirmation(),
        presentation=look,
        redact=redact,
        suites=tuple(suites),
        baseline=masked(baseline.found, redact, config.max_answer_bytes) if baseline.found else None,
        max_answer_bytes=config.max_answer_bytes,
        earlier=past.runs,
        ignore=config.ignore,
        warnings=(*context.warnings, *configs.warnings, *merged.warnings, *baseline.warnings, *past.warnings),
    )


def _baseline(settings: Settings, context: RunContext, results: Results) -> Search:
    """Return the result of the search for a baseline, if the settings request one."""
    if settings.baseline is not None:
        from agenteval.results.importers.known_cases import suites_of

        return Search(read_baseline(settings.baseline, suites_of(results)))
    if context.baseline is not None:
        return search_baseline(context.baseline, [case.id for _, case in results.cases()]).accepted()
    return Search()


def _suites_here(results: Sequence[SuiteResult], settings: Settings) -> list[Suite]:
    """Return the suites in this repository."""
    files = files_of(results)
    if not files:
        return []
    # Problems are ignored: a suite that cannot be read has changed since the run.
    problems: list[Problem] = []
    loaded = load_suites(Sources(working_directory(), tuple(files), settings.config), problems)
    configs = read_configurations(loaded.places, problems).by_file
    found = ((suite, configs[loaded.config_of[suite.path]]) for suite in loaded.suites)
    return [_bound(with_config_defaults(suite, config), config) for suite, config in found]


def _unchanged(suites: Sequence[SuiteResult], here: Iterable[Suite]) -> list[Suite]:
    """Return the suites of this repository whose cases and metrics have not changed since the run."""
    fingerprints = {suite.path: suite.fingerprint for suite in suites}
    return [suite for suite in here if fingerprints.get(suite.path) == suite.fingerprint]


def _bound(suite: Suite, config: Config) -> Suite:
    """Return the suite with every ``*`` expanded, if its agents are known."""
    try:
        return bind(suite, None, config).suite
    except ConfigError:
        return suite
