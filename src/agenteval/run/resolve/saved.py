"""Resolves the gate, comparison and presentation of saved results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files.reading import noting_reads
from agenteval.core.masking import redactor
from agenteval.core.paths import place_of, working_directory
from agenteval.results.case import SuiteResult
from agenteval.results.history import read_history
from agenteval.results.model import Results
from agenteval.run.resolve.configurations import Configurations, find_configurations, read_configurations
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.resolve.written import definitions_of, templates_of
from agenteval.run.settings import Settings


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
    look = presentation(settings, config, environment)
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
