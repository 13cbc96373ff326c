"""Resolves what saved results are compared, decided on and shown by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agenteval.results.history import read_history
from agenteval.run.config.read import find_config, read_config
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.redactor import redactor
from agenteval.run.resolve.run import gate_policy
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.settings import Settings


def resolve_saved(settings: Settings, environment: Mapping[str, str]) -> GateSpec:
    """Read what the gate needs to decide on results that a file holds.

    Args:
        settings: name configuration, history and templates, and what fails the gate.
        environment: the runner's variables name the GitHub instance and repository that links lead to.

    Raises:
        ConfigError: the configuration or a template is wrong.
    """
    config = read_config(find_config(settings.config, [Path.cwd()]))
    past = read_history(settings.history)
    return GateSpec(
        gate=gate_policy(settings, config),
        compare=config.compare,
        presentation=presentation(settings, config, environment),
        redact=redactor(config.secrets),
        earlier=past.runs,
        warnings=past.warnings,
    )
