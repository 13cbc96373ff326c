"""What ``python:`` names besides functions: classes, generators, files, and agents of frameworks.

Pydantic AI is the real one. The other frameworks are packages of the same shape.
"""

from __future__ import annotations

import asyncio
import sys
import textwrap
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.framework_stand_ins import AGNO, GOOGLE_ADK, LANGGRAPH, LLAMA_INDEX, OPENAI_AGENTS
from tests.support import PATIENCE_S, agent_spec, answer, ask, request, started

from agenteval.agents.base import RemarkingAgent, Reply
from agenteval.core.errors import AgentError, ConfigError, UserCodeError
from agenteval.suite.model import AgentSpec

CALLED = [("weather", {"city": "Oslo"}, "rain")]
EARLIER = ({"role": "user", "content": "one"}, {"role": "assistant", "content": "two"})


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without any packages, agenteval included."""
    directory = tmp_path_factory.mktemp("python")
    venv.create(directory, symlinks=True)
    return str(directory / "bin" / "python")


def defined(
    directory: Path,
    files: Mapping[str, str] | str,
    target: str = "app:bot",
    python: str = sys.executable,
    **options: str,
) -> AgentSpec:
    """Return an agent that the files define; a text is ``app.py``."""
    for name, text in ({"app.py": files} if isinstance(files, str) else files).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return agent_spec("python", target, directory, options={"interpreter": python, **options})


def converse(spec: AgentSpec, *turns: Any) -> tuple[list[Reply], tuple[str, ...]]:
    """Return the replies to turns of one conversation, and the agent's remarks."""

    async def run() -> tuple[list[Reply], tuple[str, ...]]:
        async with asyncio.timeout(PATIENCE_S), started(spec) as bot:
            session = bot.session()
            replies = [await session.send(turn) for turn in turns]
            await session.end()
            assert isinstance(bot, RemarkingAgent)
            return replies, bot.remarks().texts

    return asyncio.run(run())


def calls(reply: Reply) -> list[tuple[str, Any, Any]]:
    return [(call.name, call.args, call.result) for call in reply.tool_calls]


# What is asked, and what it gets


# Conversations


def test_each_conversation_has_an_instance_of_a_class(tmp_path: Path, bare_python: str) -> None:
    code = """
        alive = []
        class bot:
            def __init__(self):
                self.said = []
                alive.append(self)
            def chat(self, message):
                self.said.append(message)
                return f"{' '.join(self.said)} {len(alive)}"
            def __del__(self):
                alive.remove(self)
    """
    spec = defined(tmp_path, code, python=bare_python)

    async def run() -> list[str]:
        async with asyncio.timeout(PATIENCE_S), started(spec) as bot:
            one, two = bot.session(), bot.session()
            said = [
                await one.send(request("a", "one")),
                await two.send(request("x", "two")),
                await one.send(request("b", "one", turn=1, history=EARLIER)),
            ]
            await one.end()
            said.append(await bot.session().send(request("c", "one")))
            assert isinstance(bot, RemarkingAgent)
            assert bot.remarks().texts == ()
            return [reply.response for reply in said]

    assert [text.rpartition(" ")[0] for text in asyncio.run(run())] == ["a", "x", "a b", "c"]


@pytest.mark.parametrize(
    ("method", "is_error"),
    [("def run(self, text): return text", True), ("def run(self, text, history): return str(len(history))", False)],
)
def test_a_conversation_whose_instance_is_gone_does_not_go_on_without_its_past(
    *, tmp_path: Path, bare_python: str, method: str, is_error: bool
) -> None:
    spec = defined(tmp_path, f"class bot:\n    {method}\n", python=bare_python)
    (found,) = ask(spec, request(turn=1, history=EARLIER))
    assert isinstance(found, AgentError) == is_error, found
    assert ("the instance with the earlier turns is gone" in str(found)) == is_error


# Frameworks


@pytest.mark.parametrize(
    ("files", "target", "first", "second", "called"),
    [
        (LANGGRAPH, "app:assistant", "It is rain", "It is rain!!", [("weather", {"city": "Oslo"}, "rain")]),
        (
            OPENAI_AGENTS,
            "app:bot",
            "bot heard Oslo, None",
            "bot heard [{'role': 'user', 'content': 'one'}, {'role': 'assistant', 'content': 'two'}, "
            "{'role': 'user', 'content': 'Oslo'}], None",
            CALLED,
        ),
        (
            GOOGLE_ADK,
            "app.py:bot",
            "Oslo!",
            "user user one, bot model two, Oslo!",
            [("weather", {"city": "Oslo"}, {"sky": "rain"})],
        ),
        (LLAMA_INDEX, "app:bot", "heard Oslo", "heard user one, assistant two, Oslo", CALLED),
        (
            AGNO,
            "app:bot",
            "heard Oslo",
            "heard user one, assistant two, user Oslo",
            [*CALLED, ("news", {}, None)],
        ),
    ],
    ids=["langgraph", "openai-agents", "google-adk", "llama-index", "agno"],
)
def test_asks_an_agent_of_a_framework_with_the_conversation(
    *, tmp_path: Path, bare_python: str, files: Mapping[str, str], target: str, first: str, second: str, called: Any
) -> None:
    spec = defined(tmp_path, files, target, bare_python)
    replies, remarks = converse(spec, request("Oslo"), request("Oslo", turn=1, history=EARLIER))
    assert [reply.response for reply in replies] == [first, second]
    assert [calls(reply) for reply in replies] == [called, called]
    assert remarks == ()


RUNNABLES = """\
    from langchain_core.runnables.base import Runnable
    from langgraph.graph.state import StateGraph

    class Chain(Runnable):
        def __init__(self, *keys): self.input_keys = list(keys)
        async def ainvoke(self, given, config=None): return str(given)

    topic, chat, unclear = Chain("topic"), Chain("chat_history", "input"), Chain("a", "b")

    class Memory(Runnable):
        input_keys, checkpointer, threads = ["messages"], object(), {}
        async def ainvoke(self, given, config=None):
            kept = self.threads.setdefault(config["configurable"]["thread_id"], [])
            for _, said in given["messages"]:
                kept += [{"type": "human", "content": said}, {"type": "ai", "content": str(len(kept)), "tool_calls": [
                    {"name": "weather", "args": {"city": "Oslo"}, "id": str(len(kept))}]}]
            return {"messages": list(kept)}

    builder = StateGraph(Memory())
    """
LANGCHAIN = {
    "langchain_core/runnables/base.py": "class Runnable: ...\n",
    "langgraph/graph/state.py": """\
        class StateGraph:
            def __init__(self, graph): self.graph = graph
            def compile(self): return self.graph
        """,
    "app.py": RUNNABLES,
}


@pytest.mark.parametrize("made", ["Memory()", "builder"])
def test_a_graph_with_a_checkpointer_keeps_the_conversation(tmp_path: Path, bare_python: str, made: str) -> None:
    files = {**LANGCHAIN, "app.py": textwrap.dedent(RUNNABLES) + f"bot = {made}\n"}
    spec = defined(tmp_path, files, "app:bot", bare_python)
    replies, _ = converse(spec, request("a"), request("b", turn=1, history=EARLIER))
    # Earlier messages are not sent again, and earlier tool calls are not counted again.
    assert [reply.response for reply in replies] == ["0", "2"]
    assert [len(reply.tool_calls) for reply in replies] == [1, 1]


# Where the code is


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"a.py": "import b\nreply = b.reply", "b.py": "def reply(request): return 'found'"}, "a.py:reply"),
        (
            {"lib/my-agent.py": "import b\nreply = b.reply", "lib/b.py": "def reply(request): return 'found'"},
            "lib/my-agent.py:reply",
        ),
        (
            {
                "lib/shop/__init__.py": "",
                "lib/shop/a.py": "from .b import reply",
                "lib/shop/b.py": "def reply(request): return 'found'",
            },
            "lib/shop/a.py:reply",
        ),
        ({"lib/json.py": "def reply(request): return 'found'"}, "lib/json.py:reply"),
        ({"src/shop/__init__.py": "", "src/shop/a.py": "def reply(request): return 'found'"}, "shop.a:reply"),
        ({"src/shop/__init__.py": "", "src/shop/a.py": "def reply(request): return 'found'"}, "src/shop/a.py:reply"),
        ({"src/__init__.py": "", "src/a.py": "def reply(request): return 'found'"}, "src.a:reply"),
        ({"src/json.py": "1/0", "a.py": "import json\ndef reply(request): return 'found'"}, "a:reply"),
    ],
    ids=[
        "file",
        "no-name",
        "in-a-package",
        "like-the-library",
        "src",
        "file-in-src",
        "src-package",
        "src-like-the-library",
    ],
)
def test_finds_the_code(tmp_path: Path, bare_python: str, files: Mapping[str, str], target: str) -> None:
    assert answer(defined(tmp_path, files, target, bare_python)).response == "found"


@pytest.mark.parametrize(
    ("code", "target", "error", "said"),
    [
        ("", "app:nobody", ConfigError, "module 'app' has no 'nobody'"),
        ("", "nothing:bot", ConfigError, "cannot import module 'nothing'"),
        ("", "app.nothing:bot", ConfigError, "cannot import module 'app.nothing'"),
        ("", "nothing.py:bot", ConfigError, "there is no file nothing.py in "),
        ("bot = 5", "app:bot", ConfigError, "'app:bot' is not callable, and a int has none of invoke, "),
        ("class bot: pass", "app:bot", ConfigError, "'app:bot' is a class that has none of __call__, invoke"),
        (
            "class bot:\n    def __init__(self, key): ...\n    def run(self, text): ...",
            "app:bot",
            ConfigError,
            "cannot be instantiated without",
        ),
        (
            "class Workflow: ...\nWorkflow.__module__ = 'workflows.workflow'\nbot = Workflow()",
            "app:bot",
            ConfigError,
            "takes only its custom events",
        ),
        ("import missing_package", "app:bot", UserCodeError, "No module named 'missing_package'"),
        ("import app.nothing", "app:bot", UserCodeError, "No module named 'app.nothing'"),
        ("from os import missing", "app.py:bot", UserCodeError, "cannot import module 'app.py': ImportError"),
        ("def bot(:", "app:bot", UserCodeError, "SyntaxError"),
        ("raise SystemExit('set MODEL')", "app:bot", UserCodeError, "SystemExit: set MODEL"),
        ("def __getattr__(name): raise RuntimeError('no key')", "app:bot", UserCodeError, "RuntimeError: no key"),
    ],
)
def test_a_wrong_name_is_a_wrong_setting_and_broken_code_is_not(
    *, tmp_path: Path, bare_python: str, code: str, target: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        answer(defined(tmp_path, code, target, bare_python))
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'agenteval.yaml'}:3: agent: ")
