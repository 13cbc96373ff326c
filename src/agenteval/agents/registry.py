"""Creates the agent of a specification; the kinds are listed in ``suite/agents.py``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from agenteval.agents.base import Agent
from agenteval.core.errors import ConfigError, Problem, UserCodeError, agent_problem
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.text import choices
from agenteval.suite.agents import BY_NAME, TOOL_SUFFIX, AgentKind
from agenteval.suite.model import AgentSpec

#: Receives a title, such as ``request``, and a function that makes the text.
Listener = Callable[[str, Callable[[], str]], None]


def ignore(_title: str, _text: Callable[[], str]) -> None:
    """Do nothing."""


def build_agent(spec: AgentSpec, concurrency: int, gateway: Gateway, listener: Listener = ignore) -> Agent:
    """Create an agent, without starting it.

    Args:
        concurrency: maximum number of simultaneous turns.
        gateway: the gateway for the model calls of model agents.
        listener: receives requests and replies as they pass, from kinds of agents that tell them.
    """
    offered = {"concurrency": concurrency, "gateway": gateway, "listener": listener}
    kind = _kind(spec)
    agent: Agent = _made(str(kind.tool if spec.kind.endswith(TOOL_SUFFIX) else kind.agent), spec, offered)
    return agent


def _kind(spec: AgentSpec) -> AgentKind:
    kind = BY_NAME.get(spec.kind.removesuffix(TOOL_SUFFIX))
    if kind is None or (kind.tool is None and spec.kind.endswith(TOOL_SUFFIX)):
        known = [*BY_NAME, *(f"{name}{TOOL_SUFFIX}" for name, item in BY_NAME.items() if item.tool)]
        message = f"no kind {spec.kind!r}{choices(spec.kind, known, 'known')}"
        raise ConfigError(agent_problem(spec.where, message))
    return kind


def _made(implementation: str, spec: AgentSpec, offered: dict[str, Any]) -> Any:
    if not spec.target:
        raise ConfigError(agent_problem(spec.where, f"an agent of kind {spec.kind!r} needs a `target`"))
    module, _, name = implementation.partition(":")
    cls = getattr(import_module(module), name)
    declared = inspect.signature(cls).parameters
    try:
        return cls(spec, **{key: value for key, value in offered.items() if key in declared})
    except KeyError as error:
        # Formats and files set all options; a specification that a program makes can lack one.
        problem = f"an agent of kind {spec.kind!r} needs the option {error}"
        raise ConfigError(agent_problem(spec.where, problem)) from None


def unavailable_agents(specs: Iterable[AgentSpec]) -> list[Problem]:
    """Return a problem for every missing program, module, function or recording, in the order of the agents."""
    return asyncio.run(_unavailable([spec for spec in specs if _kind(spec).is_local]))


async def _unavailable(specs: Iterable[AgentSpec]) -> list[Problem]:
    found = await asyncio.gather(*map(_problems_of, specs))
    return [problem for problems in found for problem in problems]


async def _problems_of(spec: AgentSpec) -> tuple[Problem, ...]:
    agent = build_agent(spec, 1, Gateway(LlmSettings()))
    try:
        await agent.start()
    except (ConfigError, UserCodeError) as error:
        return error.problems
    finally:
        await agent.close()
    return ()
