"""Agents and tools of frameworks: found in a repository, then called in real worker processes.

Most frameworks are stood in for by packages of the same shape, in an interpreter that has nothing else
installed; Pydantic AI is the real one.
"""

from __future__ import annotations

import ast
import asyncio
import sys
import textwrap
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, agent_spec

from agenteval.agents.base import reply_from_json
from agenteval.agents.frameworks.scan import FoundAgent
from agenteval.agents.worker.pool import WorkerPool
from agenteval.agents.worker.worker import OWN_FILES
from agenteval.core.errors import AgentError

TARGETS = "agenteval.agents.worker.calls"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without any packages, agenteval included."""
    directory = tmp_path_factory.mktemp("python")
    venv.create(directory, symlinks=True)
    return str(directory / "bin" / "python")


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


def call(directory: Path, interpreter: str, *calls: tuple[str, list[Any]]) -> Any:
    """Call functions in a worker, one after the other; what the last one returns."""

    async def run() -> Any:
        pool = WorkerPool(agent_spec("python", "x:y", directory, options={"interpreter": interpreter}), 4)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return [await pool.call(f"{TARGETS}:{function}", arguments) for function, arguments in calls][-1]
        finally:
            await pool.close()

    return asyncio.run(run())


def check(found: FoundAgent) -> tuple[str, list[Any]]:
    return "check", [found.reference, found.method, found.instantiate]


def ask(
    directory: Path, interpreter: str, found: FoundAgent, prompt: str = "hello", **request: Any
) -> dict[str, Any]:
    """Check an agent and ask it; what comes back must be a reply of the agent protocol."""
    arguments = [found.reference, found.method, found.instantiate, found.prompt_argument]
    asked = ("ask", [*arguments, {"input": prompt, **request}])
    reply: dict[str, Any] = call(directory, interpreter, check(found), asked)
    calls = reply_from_json(reply).tool_calls
    shown = [{key: value for key, value in call.model_dump().items() if value is not None} for call in calls]
    return {**reply, "tool_calls": shown}


def use(directory: Path, interpreter: str, found: FoundAgent, context: Any = None, prompt: str | None = None) -> Any:
    """Check a tool and call it."""
    called = ("call_tool", [found.reference, found.method, found.instantiate, context, prompt])
    return call(directory, interpreter, check(found), called)


def in_module(
    name: str, method: str = "__call__", *, prompt: str | None = None, instantiate: bool = False
) -> FoundAgent:
    return FoundAgent(name, f"app:{name}", "app.py", 1, method, prompt, instantiate)


def asked(directory: Path, interpreter: str, code: str, bodies: Iterable[str]) -> list[dict[str, Any] | str]:
    """The replies, or errors, of agents that are functions with these bodies, all of one process."""
    functions = [f"\ndef bot{number}(prompt):\n    {body}\n" for number, body in enumerate(bodies)]
    write(directory, {"app.py": textwrap.dedent(code) + "".join(functions)})

    async def run() -> list[dict[str, Any] | str]:
        pool = WorkerPool(agent_spec("python", "x:y", directory, options={"interpreter": interpreter}), 4)
        found: list[dict[str, Any] | str] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                for number in range(len(functions)):
                    try:
                        arguments = [f"app:bot{number}", "__call__", False, None, {"input": "hello"}]
                        found.append(await pool.call(f"{TARGETS}:ask", arguments))
                    except AgentError as problem:
                        found.append(str(problem))
        finally:
            await pool.close()
        return found

    return asyncio.run(run())


# Results of other shapes


CODE = """\
import dataclasses
from types import SimpleNamespace as Fields

@dataclasses.dataclass
class Point:
    x: int
    y: object

async def later(text):
    return text

async def pieces(text):
    for letter in text:
        yield letter

@dataclasses.dataclass
class Result:
    output: object
"""
ANSWERS = [
    ("return prompt", "hello"),
    ("return {'output': prompt, 'messages': []}", "hello"),
    ("return {'answer': [1, 'ä']}", '{"answer": [1, "ä"]}'),
    ("return 42", "42"),
    ("return ['a', 'b']", '["a", "b"]'),
    ("return Fields(text='words')", "words"),
    ("return Fields(output=None, response=Fields(role='assistant', content='words'))", "words"),
    ("return Fields(final_output=Fields(a=1))", "namespace(a=1)"),
    ("return Point(1, {2})", '{"x": 1, "y": [2]}'),
    ("return {'messages': [{'role': 'user', 'content': 'q'}, {'role': 'assistant', 'content': 'a'}]}", "a"),
    ("return {'messages': [Fields(type='ai', content=''), Fields(type='tool', content='direct')]}", "direct"),
    (
        "return {'messages': [Fields(type='ai', content='x')], 'structured_response': Point(1, 2)}",
        '{"x": 1, "y": 2}',
    ),
    ("yield 'he'; yield 'llo'", "hello"),
    ("yield Fields(content='he', type='AIMessageChunk'); yield Fields(content=[], type='AIMessageChunk')", "he"),
    ("yield {'delta': 'he'}; yield {'text': 'llo'}", "hello"),
    ("return later(prompt)", "hello"),
    ("return pieces(prompt)", "hello"),
    ("return ''", ""),
    ("return Point(1, None)", '{"x": 1, "y": null}'),
]
NO_ANSWERS = [
    "return Result(None)",
    "return {'output': None}",
    "return {'messages': [{'role': 'user', 'content': 'q'}]}",
    "return {'messages': [{'role': 'assistant', 'content': None}]}",
    "yield Fields(type='tool', content='seen')",
]
TOOL_CALLS: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "{'output': '', 'intermediate_steps': [(Fields(tool='a', tool_input={'x': 1}, log=''), 'seen')]}",
        [{"name": "a", "args": {"x": 1}, "result": "seen"}],
    ),
    (
        "{'response': '', 'tool_calls': [{'name': 'a', 'args': {'x': 1}, 'result': [1]}, {'name': 'a', 'args': {}}]}",
        [{"name": "a", "args": {"x": 1}, "result": [1]}, {"name": "a", "args": {}}],
    ),
    (
        "{'messages': ["
        "{'role': 'assistant', 'tool_calls': [{'id': '1', 'function': {'name': 'a', 'arguments': '{\"x\": 1}'}},"
        " {'id': '2', 'function': {'name': 'b', 'arguments': 'no JSON'}}]},"
        "{'role': 'tool', 'tool_call_id': '2', 'content': 'two'},"
        "{'role': 'tool', 'tool_call_id': '1', 'content': 'one'},"
        "{'role': 'assistant', 'content': 'done'}]}",
        [{"name": "a", "args": {"x": 1}, "result": "one"}, {"name": "b", "args": "no JSON", "result": "two"}],
    ),
    (
        "{'messages': [Fields(type='ai', content='', tool_calls=[{'name': 'a', 'args': {}, 'id': '1'}]),"
        "Fields(type='tool', tool_call_id='1', name='a', status='error', content='broke')]}",
        [{"name": "a", "args": {}, "error": "broke"}],
    ),
    (
        "{'messages': [message for x in '12' for message in ("
        "Fields(type='ai', content='', tool_calls=[{'name': 'a', 'args': {'x': x}, 'id': '1'}]),"
        "Fields(type='tool', tool_call_id='1', content=x))]}",
        [{"name": "a", "args": {"x": "1"}, "result": "1"}, {"name": "a", "args": {"x": "2"}, "result": "2"}],
    ),
    (
        "{'messages': [Fields(parts=[Fields(function_call=Fields(name='a', args={'x': x})) for x in (1, 2)]),"
        "Fields(parts=[Fields(function_response=Fields(name='a', response=x)) for x in (1, 2)])]}",
        [{"name": "a", "args": {"x": 1}, "result": 1}, {"name": "a", "args": {"x": 2}, "result": 2}],
    ),
    (
        "{'output': '', 'intermediate_steps': [(Fields(tool='a', tool_input='5'), None)]}",
        [{"name": "a", "args": "5"}],
    ),
    (
        "Fields(type='ai', content='x', tool_calls=[{'name': 'a', 'args': {}, 'id': '1'}])",
        [{"name": "a", "args": {}}],
    ),
    (
        "Fields(text='', sources=[Fields(tool_name='a', raw_input={'kwargs': {'x': 1}}, raw_output=2, content='2')])",
        [{"name": "a", "args": {"x": 1}, "result": 2}],
    ),
    ("{'output': '', 'tools': [Fields(name='a', args={'x': {'type': 'string'}})], 'sources': ['page']}", []),
]
TOKENS = [
    ("Fields(input_tokens=1, output_tokens=2)", {"input_tokens": 1, "output_tokens": 2}),
    ("lambda: Fields(request_tokens=1, response_tokens=2)", {"input_tokens": 1, "output_tokens": 2}),
    ("{'prompt_tokens': 1, 'completion_tokens': None}", {"input_tokens": 1}),
    ("Fields(input_tokens=-1, output_tokens='2')", None),
]


def test_finds_the_answer_in_any_result(tmp_path: Path, bare_python: str) -> None:
    found = asked(tmp_path, bare_python, CODE, [body for body, _ in ANSWERS] + NO_ANSWERS)
    answers, errors = found[: len(ANSWERS)], found[len(ANSWERS) :]
    assert [reply if isinstance(reply, str) else reply["response"] for reply in answers] == [
        expected for _, expected in ANSWERS
    ]
    for reply in errors:
        assert isinstance(reply, dict), reply
        with pytest.raises(AgentError, match="returned no answer"):
            reply_from_json(reply)


def test_finds_the_tool_calls_and_the_tokens_in_any_result(tmp_path: Path, bare_python: str) -> None:
    bodies = [f"return {result}" for result, _ in TOOL_CALLS]
    bodies += [f"return Fields(text='', usage={usage})" for usage, _ in TOKENS]
    found = asked(tmp_path, bare_python, CODE, bodies)
    for reply, (result, expected) in zip(found, TOOL_CALLS, strict=False):
        assert isinstance(reply, dict), (reply, result)
        calls = [call.model_dump(exclude_none=True) for call in reply_from_json(reply).tool_calls]
        assert calls == expected, result
    for reply, (usage, counted) in zip(found[len(TOOL_CALLS) :], TOKENS, strict=True):
        assert isinstance(reply, dict), (reply, usage)
        assert reply["usage"] == counted, usage


# How agents are called


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (in_module("nobody"), "module 'app' has no 'nobody'"),
        (
            in_module("Bot", "go", instantiate=True),
            "app:Bot, a Bot, has no method 'go' (execution.method); it has run",
        ),
        (in_module("Needy", "run", instantiate=True), "app:Needy cannot be instantiated without arguments"),
        (in_module("bot", "run", prompt="question"), "missing a required argument: 'text'; given: question"),
        (FoundAgent("x", "nowhere:x", "", 1, "run"), "No module named 'nowhere'"),
    ],
)
def test_names_what_is_wrong_with_an_agent(
    tmp_path: Path, bare_python: str, found: FoundAgent, expected: str
) -> None:
    code = """\
        class Bot:
            def run(self, text): ...

        class Needy(Bot):
            def __init__(self, key): ...

        bot = Bot()
        """
    write(tmp_path, {"app.py": code})
    with pytest.raises(AgentError) as caught:
        ask(tmp_path, bare_python, found)
    assert expected in str(caught.value)


# How tools are called


TOOLS = """\
    import collections
    import dataclasses
    import sys

    @dataclasses.dataclass
    class Hit:
        title: str
        tags: set

    class Dumped:
        def model_dump(self, mode):
            return {"mode": mode}

    def add(a, b=1): return a + b
    async def later(a): return a
    def echo(text): return text
    def none(): return None
    def hit(): return Hit("x", {1})
    def dumped(): return [Dumped()]
    def binary(): return {"data": b"x", 1: float("inf")}
    def circular():
        found = []
        found.append(found)
        return found
    def pieces():
        yield 1
        yield 2
    def fails(a): raise ValueError("no " + a)
    async def fails_later(a): raise ValueError("no " + a)
    def inner(a): return echo(wrong=a)
    def chained(a):
        try:
            fails(a)
        except ValueError as error:
            raise KeyError from error
    def leaves(): sys.exit(3)
    def interrupts(): raise KeyboardInterrupt
    def stops(): raise StopIteration

    class Tool:
        def invoke(self, input, config=None): return input
    search = Tool()
    class Search:
        def run(self, query): return "found " + query
    class Asynchronous:
        func = None
        async def coroutine(self): ...
        def invoke(self, input): raise NotImplementedError
        async def ainvoke(self, input): return input
    class Schema:
        args_schema = {"properties": {"q": {}, "limit": {}}, "required": ["q"]}
        def invoke(self, input): return input
    """


@pytest.mark.parametrize(
    ("found", "context", "prompt", "expected"),
    [
        (in_module("add"), {"a": 1}, None, {"value": 2}),
        (in_module("later"), {"a": [1]}, "unused", {"value": [1]}),
        (in_module("echo"), None, "hello", {"value": "hello"}),
        (in_module("echo"), {}, "hello", {"value": "hello"}),
        (in_module("none"), None, None, {"value": None}),
        (in_module("hit"), {}, None, {"value": {"title": "x", "tags": [1]}}),
        (in_module("dumped"), None, None, {"value": [{"mode": "json"}]}),
        (in_module("binary"), None, None, {"value": {"data": "b'x'", "1": float("inf")}}),
        (in_module("circular"), None, None, {"value": "[[...]]"}),
        (in_module("pieces"), None, None, {"value": [1, 2]}),
        (in_module("Tool", "invoke", instantiate=True), {"a": 1}, None, {"value": {"a": 1}}),
        (in_module("Tool", "invoke", instantiate=True), None, "hello", {"value": "hello"}),
        (in_module("search.invoke"), {"input": 1}, None, {"value": 1}),
        (in_module("Search", "run", instantiate=True), {"query": "x"}, None, {"value": "found x"}),
        (in_module("Asynchronous", "invoke", instantiate=True), {"a": 1}, None, {"value": {"a": 1}}),
        (
            in_module("Schema", "invoke", instantiate=True),
            {"q": "x", "limit": 1},
            None,
            {"value": {"q": "x", "limit": 1}},
        ),
        (in_module("fails"), {"a": "way"}, None, {"raised": "ValueError: no way"}),
        (in_module("fails_later"), {"a": "way"}, None, {"raised": "ValueError: no way"}),
        (
            in_module("inner"),
            {"a": 1},
            None,
            {"raised": "TypeError: echo() got an unexpected keyword argument 'wrong'"},
        ),
        (
            in_module("chained"),
            {"a": "way"},
            None,
            {"raised": "KeyError: ", "causes": ["ValueError", "Exception", "BaseException", "object"]},
        ),
        (in_module("leaves"), None, None, {"raised": "SystemExit: 3"}),
        (in_module("interrupts"), None, None, {"raised": "KeyboardInterrupt: "}),
        (in_module("stops"), None, None, {"raised": "RuntimeError: coroutine raised StopIteration"}),
    ],
    ids=lambda value: value.name if isinstance(value, FoundAgent) else "",
)
def test_calls_a_tool(
    *, tmp_path: Path, bare_python: str, found: FoundAgent, context: Any, prompt: str | None, expected: dict[str, Any]
) -> None:
    write(tmp_path, {"app.py": TOOLS})
    result = use(tmp_path, bare_python, found, context, prompt)
    assert {key: result[key] for key in result if key in {"value", "raised"} | expected.keys()} == expected


def test_what_runs_in_the_worker_is_python_3_8() -> None:
    root = Path(sys.modules["agenteval"].__file__ or "").parent
    for file in (*OWN_FILES.values(), "agents/worker/worker.py"):
        ast.parse((root / file).read_text(encoding="utf-8"), feature_version=(3, 8))
