"""Makes the agent that a specification describes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agenteval.agents.base import Agent
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.suite.model import AgentSpec

TOOL_KINDS = ("python_tool", "command_tool", "http_tool")


def build_agent(spec: AgentSpec, concurrency: int, gateway: Gateway) -> Agent:
    """The agent, not started yet.

    Args:
        spec: how it is reached.
        concurrency: turns it may be asked at once.
        gateway: how agents of ours ask models.
    """
    # Imported one by one: a run pays for the kinds it uses.
    if spec.kind == "command":
        from agenteval.agents.command import CommandAgent

        return CommandAgent(spec)
    if spec.kind == "http":
        from agenteval.agents.http.agent import HttpAgent

        return HttpAgent(spec, concurrency)
    if spec.kind == "python":
        from agenteval.agents.python import PythonAgent

        return PythonAgent(spec, concurrency)
    if spec.kind == "model":
        from agenteval.agents.model.agent import ModelAgent

        return ModelAgent(spec, gateway, concurrency)
    if spec.kind == "replay":
        from agenteval.agents.replay.agent import ReplayAgent

        return ReplayAgent(spec)
    if spec.kind == "framework":
        from agenteval.agents.framework import FrameworkAgent

        return FrameworkAgent(spec, concurrency)
    if spec.kind in TOOL_KINDS:
        return _tool(spec, concurrency)
    raise ValueError(f"no agent kind {spec.kind!r}")


def _tool(spec: AgentSpec, concurrency: int) -> Agent:
    from agenteval.agents.tool import CommandCaller, HttpCaller, PythonCaller, Tool

    if spec.kind == "command_tool":
        return Tool(CommandCaller(spec))
    return Tool(HttpCaller(spec, concurrency) if spec.kind == "http_tool" else PythonCaller(spec, concurrency))


# What starts something here; the others begin with a connection.
_LOCAL = frozenset({"command", "python", "replay", "command_tool", "python_tool"})


def unavailable_agents(specs: Iterable[AgentSpec]) -> list[Problem]:
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
