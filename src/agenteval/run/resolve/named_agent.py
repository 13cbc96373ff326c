"""Finds the agent that a name, an option or a suite asks for."""

from __future__ import annotations

from pathlib import Path

from agenteval.core.documents.validation import did_you_mean, join_choices
from agenteval.core.errors import ConfigError, Problem
from agenteval.run.config.model import CONFIG_FILE, DEFAULT_AGENT, Config
from agenteval.suite.agents import agent_from_text, is_inline_agent
from agenteval.suite.model import AgentSpec


def resolve_agent(
    asked: AgentSpec | str | None, config: Config, suite: str, fallback: AgentSpec | None = None
) -> AgentSpec:
    """The agent that answers a suite.

    Args:
        asked: what ``--agent`` or the suite names: an agent, the name of one, or nothing.
        config: where names are defined.
        suite: the suite's path, for messages.
        fallback: the agent that the suite itself describes, if it does.

    Raises:
        ConfigError: the name is not defined, or nothing is named and there is neither a default nor a fallback
            that can run here.
    """
    if isinstance(asked, AgentSpec):
        return asked
    if asked is not None and is_inline_agent(asked):
        return agent_from_text(asked, Path.cwd())
    name = asked or DEFAULT_AGENT
    if name in config.agents:
        return config.agents[name]
    if asked is None and fallback is not None:
        from agenteval.suite.model_agent import model_agent_of

        obstacles = model_agent_of(fallback).obstacles
        if obstacles:
            raise ConfigError(obstacles)
        return fallback
    if asked is None:
        message = (
            f"no agent to run: add one to {CONFIG_FILE}, for instance\n"
            "    agents:\n      default:\n        command: [python, agent.py]\n"
            "  or give one with --agent, or give the suite `model` and `instructions` to run these"
        )
    else:
        defined = join_choices(config.agents) or "none; a program is given as a list, like [python, agent.py]"
        message = f"no agent is called {name!r}{did_you_mean(name, config.agents)}; defined: {defined}"
    raise ConfigError(Problem(message, file=suite))
