"""Makes the agent that a specification describes, of the kinds in ``suite/agent_kinds.py``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from agenteval.agents.base import Agent
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.suite.agent_kinds import BY_NAME, TOOL_SUFFIX, AgentKind
from agenteval.suite.model import AgentSpec


def build_agent(spec: AgentSpec, concurrency: int, gateway: Gateway) -> Agent:
    """Make the agent, not started yet.

    Args:
        spec: how it is reached.
        concurrency: turns it may be asked at once.
        gateway: how agents of ours ask models.
    """
    offered = {"concurrency": concurrency, "gateway": gateway}
    kind = _kind(spec)
    if not spec.kind.endswith(TOOL_SUFFIX):
        agent: Agent = _made(kind.agent, spec, offered)
        return agent
    from agenteval.agents.tool import Tool

    return Tool(_made(str(kind.tool), spec, offered))


def _kind(spec: AgentSpec) -> AgentKind:
    return BY_NAME[spec.kind.removesuffix(TOOL_SUFFIX)]


def _made(implementation: str, spec: AgentSpec, offered: dict[str, Any]) -> Any:
    module, _, name = implementation.partition(":")
    cls = getattr(import_module(module), name)
    declared = inspect.signature(cls).parameters
    return cls(spec, **{key: value for key, value in offered.items() if key in declared})


def unavailable_agents(specs: Iterable[AgentSpec]) -> list[Problem]:
    """Programs, modules, functions and recordings that are not here, in the order of the agents that name them."""
    return asyncio.run(_obstacles([spec for spec in specs if _kind(spec).is_local]))


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
