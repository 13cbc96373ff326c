"""How agents of frameworks are asked: the method, the input and the earlier turns of the conversation.

An agent is recognised by the modules of its classes; its framework is imported only if it is already in use. This
file runs in the worker process under the user's Python (3.8 or newer) and needs only the standard library.
"""

from __future__ import annotations

import importlib
import inspect
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from agenteval.agents.worker.references import get, kind_of

# Runs agents of frameworks whose agents do not have a method that takes a prompt.


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
    make = importlib.import_module("google.adk.events").Event if history else None
    for said in history:
        role, author = ("model", agent.name) if said["role"] == "assistant" else (_USER, _USER)
        parts = [types.Part(text=said["content"])]
        yield make(author=author, content=types.Content(role=role, parts=parts))  # type: ignore[misc]


def _last_text(events: list[Any]) -> str:
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


Request = Mapping[str, Any]

# Sessions of other processes may be in the same database.
_PROCESS = uuid.uuid4().hex[:12]
# Inputs of chains and graphs that mean the question, and those that mean the conversation.
_QUESTIONS = ("input", "question", "query", "prompt", "user_input", "text", "topic")
_CONVERSATIONS = ("chat_history", "history")


def _same(value: Any) -> Any:
    return value


class AgentCall(NamedTuple):
    """A call of an agent; ``read`` cuts what the result contains of earlier turns."""

    function: Callable[..., Any]
    args: Tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    read: Callable[[Any], Any] = _same


def adapter(agent: Any) -> Optional[Callable[[Request], AgentCall]]:
    """Return a function that prepares the call of an agent for a request; ``None`` if no framework is known."""
    for kind in type(agent).__mro__:
        package, name = kind.__module__.split("."), kind.__name__
        if package[0] == "pydantic_ai" and name in {"AbstractAgent", "Agent"}:
            return _pydantic_ai(agent)
        if package[0] == "langgraph" and name == "StateGraph":
            return _langchain(agent.compile())
        if package[0] == "langchain_core" and name == "Runnable":
            return _langchain(agent)
        if package[0] == "llama_index":
            return _llama_index(agent)
        if package[0] == "workflows" and name == "Workflow":
            raise TypeError("a %s takes only its custom events; name a function that runs it" % type(agent).__name__)
        if package[0] == "agno" and callable(getattr(agent, "run", None)):
            return _agno(agent)
    run = runner(agent)
    return None if run is None else _run(run)


def _run(run: Callable[..., Any]) -> Callable[[Request], AgentCall]:
    return lambda request: AgentCall(run, (request["input"],), {"history": _history(request)})


def _pydantic_ai(agent: Any) -> Callable[[Request], AgentCall]:
    """Pydantic AI: https://ai.pydantic.dev/message-history/."""

    def prepare(request: Request) -> AgentCall:
        history = _history(request)
        if not history:
            return AgentCall(agent.run, (request["input"],))
        messages = importlib.import_module("pydantic_ai.messages")
        earlier = [
            messages.ModelResponse(parts=[messages.TextPart(content=said["content"])])
            if said["role"] == "assistant"
            else messages.ModelRequest(parts=[messages.UserPromptPart(content=said["content"])])
            for said in history
        ]
        return AgentCall(agent.run, (request["input"],), {"message_history": earlier})

    return prepare


def _langchain(agent: Any) -> Callable[[Request], AgentCall]:
    """LangChain's runnables and LangGraph's graphs: https://python.langchain.com/docs/concepts/runnables/."""
    keys = None if _is_model(agent) else _keys(agent)
    question = _question_key(agent, keys)
    # A graph with a checkpointer keeps the conversation of each thread.
    remembers = bool(getattr(agent, "checkpointer", None))

    def prepare(request: Request) -> AgentCall:
        text = request["input"]
        earlier = [] if remembers else [(said["role"], said["content"]) for said in _history(request)]
        messages = [*earlier, ("user", text)]
        if keys is None:
            given: Any = messages
        elif "messages" in keys:
            given = {"messages": messages}
        elif question is None:
            given = text
        else:
            given = {question: text, **{key: earlier for key in _CONVERSATIONS if key in keys}}
        config = {"configurable": {"thread_id": _session(request)}}
        return AgentCall(agent.ainvoke, (given, config), {}, lambda result: _since(result, text))

    return prepare


def _is_model(agent: Any) -> bool:
    return any(kind.__module__.startswith("langchain_core.language_models.chat") for kind in type(agent).__mro__)


def _keys(agent: Any) -> Sequence[str]:
    """Return the keys of a runnable's input; none if it takes a text."""
    keys = getattr(agent, "input_keys", None)
    if isinstance(keys, (list, tuple)):
        return keys
    builder = getattr(agent, "builder", None)
    state = getattr(builder, "input_schema", None) or getattr(builder, "schema", None)
    if isinstance(state, type):
        return [name for kind in state.__mro__ for name in getattr(kind, "__annotations__", None) or ()]
    try:
        schema = agent.get_input_schema().model_json_schema()
    except Exception:  # noqa: BLE001 - types that have no schema
        return ()
    return list(schema.get("properties") or ())


def _question_key(agent: Any, keys: Optional[Sequence[str]]) -> Optional[str]:
    if not keys or "messages" in keys:
        return None
    asked = [key for key in keys if key not in _CONVERSATIONS]
    found = asked[0] if len(asked) == 1 else next((key for key in _QUESTIONS if key in asked), None)
    if found is None:
        raise TypeError(
            "a %s takes %s, and none of them is the question; name a function that calls it"
            % (type(agent).__name__, ", ".join(keys))
        )
    return found


def _since(result: Any, text: str) -> Any:
    """Return the state of a graph with only the messages after the question."""
    messages = result.get("messages") if isinstance(result, dict) else None
    if not isinstance(messages, list):
        return result
    asked = [
        index
        for index, message in enumerate(messages)
        if kind_of(message) in {"human", "user"} and get(message, "content") == text
    ]
    return {**result, "messages": messages[asked[-1] + 1 :]} if asked else result


def _llama_index(agent: Any) -> Optional[Callable[[Request], AgentCall]]:
    """LlamaIndex: https://developers.llamaindex.ai/python/framework/understanding/agent/."""
    run, chat, query = (getattr(agent, name, None) for name in ("run", "achat", "aquery"))

    def prepare(request: Request) -> AgentCall:
        history = _history(request)
        if callable(chat):
            # Without it, a chat engine continues the conversation of another case.
            return AgentCall(chat, (request["input"],), {"chat_history": list(_llama_messages(history))})
        if callable(run):
            given = {"chat_history": list(_llama_messages(history))} if history else {}
            return AgentCall(run, (), {"user_msg": request["input"], **given})
        return AgentCall(query, (request["input"],))  # type: ignore[arg-type]

    return prepare if any(map(callable, (run, chat, query))) else None


def _llama_messages(history: Sequence[Mapping[str, str]]) -> Iterator[Any]:
    message = importlib.import_module("llama_index.core.llms").ChatMessage if history else None
    for said in history:
        yield message(role=said["role"], content=said["content"])  # type: ignore[misc]


def _agno(agent: Any) -> Callable[[Request], AgentCall]:
    """Agno: https://docs.agno.com/reference/agents/agent."""
    # An agent with a database may find the conversation by its session.
    keeps = any(getattr(agent, name, None) is not None for name in ("db", "storage"))
    adds = any(getattr(agent, name, None) is True for name in ("add_history_to_context", "add_history_to_messages"))

    def prepare(request: Request) -> AgentCall:
        history = [] if keeps and adds else _history(request)
        given: Any = request["input"]
        if history:
            message = importlib.import_module("agno.models.message").Message
            given = [message(role=said["role"], content=said["content"]) for said in history]
            given.append(message(role="user", content=request["input"]))
        return AgentCall(agent.run, (given,), {"session_id": _session(request)})

    return prepare


def _history(request: Request) -> List[Dict[str, str]]:
    return list(request.get("history") or ())


def _session(request: Request) -> str:
    return "%s-%s" % (request.get("session") or "session", _PROCESS)
