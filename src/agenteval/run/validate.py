"""The ``validate`` command: checks suites and settings, and asks no agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval.agents.registry import unavailable_agents
from agenteval.core.confine import under_rules
from agenteval.core.errors import ConfigError
from agenteval.core.escape import terminal
from agenteval.report.view.view import count
from agenteval.run.config import Config
from agenteval.run.execute import check
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.settings import Settings
from agenteval.run.setup import users_code
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Suite


def validate(settings: Settings) -> list[str]:
    """Check what a run with these settings would read and start; no agent, tool or model is called.

    Args:
        settings: the settings of the run; nothing is written.

    Returns:
        Lines about the files and their warnings; a package that only the agent needs is one of the warnings.

    Raises:
        ConfigError: the run would not start; the error contains the problems that the run would report.
    """
    return checked(resolve_run(settings), may_lack=True)


def checked(spec: RunSpec, *, may_lack: bool = False) -> list[str]:
    """Return the lines of `validate` about a run.

    Args:
        may_lack: a package that only the agent needs may be missing on this machine.

    Raises:
        ConfigError: the run would not start.
    """
    with users_code(spec.setup, spec.redact):
        found = check(make_plan(spec))
        if found.lacking and not may_lack:
            raise ConfigError(found.lacking)
        warnings = dict.fromkeys((*found.notices, *map(str, found.lacking), *spec.warnings, *_unavailable(spec)))
    lines = (
        *map(_configuration, spec.configs),
        *map(_suite, spec.suites),
        *(f"warning: {text}" for text in warnings),
    )
    return [terminal(spec.redact(line)) for line in lines]


def _configuration(config: Config) -> str:
    tools = f", {count(len(config.tools), 'tool')}" if config.tools else ""
    return f"{config.name}: ok, {count(len(config.agents), 'agent')}{tools}"


def _suite(suite: Suite) -> str:
    return f"{suite.path}: ok, {suite.format}, {count(len(suite.cases), 'case')}"


def _unavailable(spec: RunSpec) -> Iterator[str]:
    """Yield the problems of agents and tools that no case uses, so that they do not prevent the run."""
    used = {item.agent.where for item in spec.cases}
    for config in spec.configs:
        defined = [agent for agent in (*config.agents.values(), *config.tools.values()) if agent.where not in used]
        with under_rules(config.user_code):
            found = unavailable_agents(agent for agent in defined if not _has_traces(agent))
        yield from map(str, found)


def _has_traces(agent: AgentSpec) -> bool:
    """Return whether an agent has recorded traces, which suites without inputs score."""
    from agenteval.agents.recorded_cases import read_traces
    from agenteval.agents.recording import Trace, is_otel

    path = Path(str(agent.target))
    if agent.kind != REPLAY or is_otel(path):
        return False
    try:
        return isinstance(next(read_traces(path)), Trace)
    except ConfigError:
        return False
