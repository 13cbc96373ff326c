"""Runs agents of frameworks whose agents do not have a method that takes a prompt.

This file runs in the worker process under the user's Python (3.8 or newer) and needs only the
standard library.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_USER = "user"
_APP = "agenteval"


def runner(agent: Any) -> Callable[..., Any] | None:
    """Return a function that runs such an agent; ``None`` if the agent has a usable method ``run``.

    The function is asynchronous. It takes the prompt as its only positional argument or under any name, and the
    earlier messages of the conversation as ``history``.
    """
    for kind in type(agent).__mro__:
        package = kind.__module__.split(".")
        if package[0] == "agents" and kind.__name__ == "Agent" and not hasattr(agent, "run"):
            return _openai_agents(agent, package[0])
        if package[:2] == ["google", "adk"] and kind.__name__ == "BaseAgent":
            return _google_adk(agent)
    return None


def _openai_agents(agent: Any, package: str) -> Callable[..., Any]:
    """OpenAI Agents SDK: https://openai.github.io/openai-agents-python/running_agents/."""
    run = importlib.import_module(package).Runner.run

    async def ask(*prompt: str, context: Any = None, history: Sequence[Any] = (), **named: str) -> Any:
        (text,) = (*prompt, *named.values())
        given: Any = [*history, {"role": _USER, "content": text}] if history else text
        return await run(agent, given, context=context)

    return ask


def _google_adk(agent: Any) -> Callable[..., Any]:
    """Agent Development Kit: https://google.github.io/adk-docs/runtime/."""
    runners = importlib.import_module("google.adk.runners")
    types = importlib.import_module("google.genai.types")

    async def ask(*prompt: str, history: Sequence[Any] = (), **named: str) -> Any:
        (text,) = (*prompt, *named.values())
        running = runners.InMemoryRunner(agent=agent, app_name=_APP)
        try:
            session = await _awaited(running.session_service.create_session(app_name=_APP, user_id=_USER))
            for event in _adk_events(agent, history, types):
                await running.session_service.append_event(session, event)
            message = types.Content(role=_USER, parts=[types.Part(text=text)])
            started = running.run_async(user_id=_USER, session_id=session.id, new_message=message)
            events = [event async for event in started]
        finally:
            if hasattr(running, "close"):
                await _awaited(running.close())
        return {"output": _last_text(events), "messages": events}

    return ask


def _adk_events(agent: Any, history: Sequence[Any], types: Any) -> Iterator[Any]:
    """Yield the earlier messages of a conversation as the events of a session."""
    make = importlib.import_module("google.adk.events").Event if history else None
    for said in history:
        role, author = ("model", agent.name) if said["role"] == "assistant" else (_USER, _USER)
        parts = [types.Part(text=said["content"])]
        yield make(author=author, content=types.Content(role=role, parts=parts))  # type: ignore[misc]


def _last_text(events: list[Any]) -> str:
    """Return the agent's last text, without reasoning parts."""
    for event in reversed(events):
        parts = getattr(getattr(event, "content", None), "parts", None) or []
        said = [part.text for part in parts if getattr(part, "text", None) and not getattr(part, "thought", None)]
        if said:
            return "".join(said)
    failed = [event for event in events if getattr(event, "error_code", None)]
    if failed:
        raise RuntimeError(f"{failed[-1].error_code}: {getattr(failed[-1], 'error_message', '')}")
    return ""


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
