"""Looks, without asking anything, whether agents and tools can be started on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agenteval.agents.build import build_agent
from agenteval.errors import ConfigError, Problem
from agenteval.llm.gateway import Gateway, LlmSettings
from agenteval.suite.model import AgentSpec

# What starts something here; the others begin with a connection.
_LOCAL = frozenset({"command", "python", "replay", "command_tool", "python_tool"})


def obstacles(specs: Iterable[AgentSpec]) -> list[Problem]:
    """Programs, modules, functions and recordings that are not here, in the order of the agents that name them."""
    return asyncio.run(_obstacles([spec for spec in specs if spec.kind in _LOCAL]))


async def _obstacles(specs: Iterable[AgentSpec]) -> list[Problem]:
    found = await asyncio.gather(*map(_obstacle, specs))
    return [problem for problems in found for problem in problems]


async def _obstacle(spec: AgentSpec) -> tuple[Problem, ...]:
    agent = build_agent(spec, 1, Gateway(LlmSettings()))
    try:
        await agent.start()
    except ConfigError as error:
        return tuple(error.problems)
    finally:
        await agent.close()
    return ()
