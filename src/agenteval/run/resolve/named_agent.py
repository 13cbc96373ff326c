"""Finds the agent that a name, an option or a suite asks for."""

from __future__ import annotations

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.paths import working_directory
from agenteval.core.text.choices import choices
from agenteval.run.config.model import CONFIG_FILE, DEFAULT_AGENT, Config
from agenteval.suite.agents import agent_from_text, is_inline_agent
from agenteval.suite.model import AgentSpec


def resolve_agent(
    asked: AgentSpec | str | None, config: Config, suite: str, fallback: AgentSpec | None = None
) -> AgentSpec:
    """Return the agent that answers a suite.

    Args:
        asked: the agent that ``--agent`` or the suite requests: a specification, a name, or ``None``.
        config: defines the named agents.
        suite: the suite's path, for messages.
        fallback: the agent that the suite defines, if it does.

    Raises:
        ConfigError: the name is not defined; or there is no name, no default agent, and no fallback that can run on
            this machine.
    """
    if isinstance(asked, AgentSpec):
        return asked
    if asked is not None and is_inline_agent(asked):
        return agent_from_text(asked, working_directory())
    name = asked or DEFAULT_AGENT
    if name in config.agents:
        return config.agents[name]
    if asked is None and fallback is not None:
        # Both kinds of agents that suites describe have such reasons why they cannot run.
        problems = fallback.options["agent"].problems
        if problems:
            raise ConfigError(problems)
        return fallback
    if asked is None:
        message = (
            f"no agent to run: add one to {config.name or CONFIG_FILE}, for instance\n"
            "    agents:\n      default:\n        command: [python, agent.py]"
        )
    else:
        hint = "" if config.agents else "; write a program as a list, such as [python, agent.py]"
        message = f"no agent is called {name!r}{choices(name, config.agents, 'defined')}{hint}"
    raise ConfigError(Problem(message, file=suite, kind=Kind.AGENT_MISSING))
