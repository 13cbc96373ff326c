"""Makes the agent that a specification describes."""

from __future__ import annotations

from agenteval.agents.base import Agent
from agenteval.llm.gateway import Gateway
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
        from agenteval.agents.http import HttpAgent

        return HttpAgent(spec, concurrency)
    if spec.kind == "python":
        from agenteval.agents.python import PythonAgent

        return PythonAgent(spec, concurrency)
    if spec.kind == "model":
        from agenteval.agents.model import ModelAgent

        return ModelAgent(spec, gateway, concurrency)
    if spec.kind == "replay":
        from agenteval.agents.replay import ReplayAgent

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
