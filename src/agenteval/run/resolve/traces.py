"""Finds the recorded traces that a run scores instead of asking agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agenteval.core.errors import ConfigError
from agenteval.core.paths import working_directory
from agenteval.run.config.model import Config
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.run.settings import Settings
from agenteval.suite.agent_kinds import REPLAY
from agenteval.suite.model import Suite


def traces_to_score(suites: Iterable[tuple[Suite, Config]], settings: Settings) -> Mapping[str, Path]:
    """Return the file or folder of the traces that each suite scores, by the suite's path.

    These are the traces that the settings name. If no suite has inputs to ask, they are the recording of the replay
    agent of each suite: a suite with metrics for all answers needs no inputs to score a recording.

    Args:
        suites: the suites of the run, each with the configuration that defines its agents.
        settings: may name traces, or the agent of all suites.

    Returns:
        Nothing if agents are asked.
    """
    if settings.traces is not None:
        return {suite.path: _from_here(settings.traces) for suite, _ in suites}
    found = {suite.path: _recording(suite, settings, config) for suite, config in suites}
    recordings = {path: recording for path, recording in found.items() if recording is not None}
    return recordings if len(recordings) == len(found) else {}


def _recording(suite: Suite, settings: Settings, config: Config) -> Path | None:
    """Return the recording of a suite without inputs; ``None`` if the suite has inputs or another agent."""
    if suite.cases or not suite.metrics:
        return None
    try:
        agent = resolve_agent(settings.agent or suite.agent, config, suite.path, suite.fallback_agent)
    except ConfigError:
        # Reported where the agents of cases are resolved.
        return None
    return _from_here(Path(str(agent.target))) if agent.kind == REPLAY else None


def _from_here(path: Path) -> Path:
    """Return a path relative to the working directory if it is inside: every spelling has the same messages."""
    here = working_directory()
    return path.relative_to(here) if path.is_relative_to(here) else path
