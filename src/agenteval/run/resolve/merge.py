"""Resolves what the results of a merge are compared, decided on and shown by."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError
from agenteval.results.history import read_history
from agenteval.results.merge import Merged
from agenteval.results.model import Results, SuiteResult
from agenteval.run.baseline import Search, masked, read_baseline, search_baseline
from agenteval.run.config.model import Config
from agenteval.run.config.read import find_config, read_config
from agenteval.run.context import RunContext
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.defaults import with_config_defaults
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.redactor import redactor
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.settings import Settings
from agenteval.suite.formats.registry import load_suites
from agenteval.suite.model import Suite


def resolve_merge(merged: Merged, settings: Settings, context: RunContext | None = None) -> GateSpec:
    """Read what the gate needs to decide on merged results.

    The merged results decide alone, as with ``confirm: off``: nothing runs again.

    Args:
        merged: the results.
        settings: name configuration, baseline, history and templates, and what fails the gate.
        context: what the place of the merge contributes.

    Raises:
        ConfigError: configuration, baseline or a template is wrong.
    """
    context = context or RunContext()
    results = merged.results
    places = [place for suite in results.suites if (place := _place(suite.path)) is not None]
    config = read_config(find_config(settings.config, [Path.cwd(), *(place.parent for place in places)]))
    suites = _suites_here(results.suites, places, config)
    redact = redactor(config.secrets.union(*(suite.secrets for suite in suites)))
    look = presentation(settings, config, os.environ)
    baseline = _baseline(settings, context, results)
    past = read_history(settings.history)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare.without_confirmation(),
        presentation=look,
        redact=redact,
        suites=tuple(suites),
        baseline=masked(baseline.found, redact) if baseline.found else None,
        earlier=past.runs,
        warnings=(*context.warnings, *config.warnings, *merged.warnings, *baseline.warnings, *past.warnings),
    )


def _baseline(settings: Settings, context: RunContext, results: Results) -> Search:
    """Return the run to compare with, if one is asked for and there is one."""
    if settings.baseline is not None:
        from agenteval.results.importers.known_cases import suites_of

        return Search(read_baseline(settings.baseline, suites_of(results)))
    if context.baseline is not None:
        return search_baseline(context.baseline, [case.id for _, case in results.cases()])
    return Search()


def _place(path: str) -> Path | None:
    """Return the file of a suite, if it is in this repository: the inverse of `display_path`."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    try:
        return root / path if (root / path).is_file() else None
    except OSError:
        # The path is too long for a file name.
        return None


def _suites_here(suites: Sequence[SuiteResult], places: Sequence[Path], config: Config) -> list[Suite]:
    """Return the suites in this repository that still ask and judge what they did in the run."""
    fingerprints = {suite.path: suite.fingerprint for suite in suites}
    # Problems are left out: a suite that cannot be read is not the suite of the run.
    found = load_suites(places, [])
    bound = (_bound(with_config_defaults(suite, config), config) for suite in found)
    return [suite for suite in bound if fingerprints.get(suite.path) == suite.fingerprint]


def _bound(suite: Suite, config: Config) -> Suite:
    """Return the suite with every ``*`` written out, if its agents are known."""
    try:
        return bind(suite, None, config).suite
    except ConfigError:
        return suite
