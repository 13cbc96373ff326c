"""Finds the suites of a finished run in this repository, if they have not changed since the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.masking import redactor
from agenteval.core.paths import working_directory
from agenteval.core.text.redact import Redactor
from agenteval.results.case import SuiteResult
from agenteval.run.config.model import Config
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.configurations import read_configurations
from agenteval.run.resolve.defaults import with_config_defaults
from agenteval.run.resolve.saved import files_of
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.suites import load_suites
from agenteval.run.settings import Settings
from agenteval.suite.masking import masked_suite
from agenteval.suite.model import Suite


def unchanged_suites(
    results: Sequence[SuiteResult], settings: Settings, secrets: Iterable[str]
) -> tuple[tuple[Suite, ...], Redactor]:
    """Return the suites of a run that this repository still has as they were, and what masks secrets in them.

    Args:
        results: the suites of the run.
        settings: the configuration.
        secrets: secrets of the configuration.
    """
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
