"""Makes the agent that a specification describes."""

from __future__ import annotations

from agenteval.agents.base import Agent
from agenteval.llm.gateway import Gateway
from agenteval.suite.model import AgentSpec


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
    raise ValueError(f"no agent kind {spec.kind!r}")
