"""Resolves the gate, comparison and presentation of a merged run."""

from __future__ import annotations

import os

from agenteval.core.files.reading import noting_reads
from agenteval.results.history import read_history
from agenteval.results.merge import Merged
from agenteval.results.model import Results
from agenteval.run.baseline import Search, masked, read_baseline, search_baseline
from agenteval.run.context import RunContext
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.saved import configurations_of
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.resolve.suites_here import unchanged_suites
from agenteval.run.resolve.written import definitions_of, templates_of
from agenteval.run.settings import Settings


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
    with noting_reads() as opened:
        configs = configurations_of(results, settings)
        config = configs.of_run
        suites, redact = unchanged_suites(results.suites, settings, configs.secrets)
    look = presentation(settings, config, os.environ)
    baseline = _baseline(settings, context, results)
    past = read_history(settings.history)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare.without_confirmation(),
        presentation=look,
        redact=redact,
        suites=suites,
        baseline=masked(baseline.found, redact, config.max_answer_bytes) if baseline.found else None,
        max_answer_bytes=config.max_answer_bytes,
        earlier=past.runs,
        ignore=config.ignore,
        inputs=(*templates_of(look), *definitions_of(opened)),
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
