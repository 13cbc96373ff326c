"""Replies of every form from every kind of agent that has one: the same reply and options have the same result."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, agent_spec, answer, request, serving, started

from agenteval.agents.base import RemarkingAgent, Reply, Request
from agenteval.core.errors import AgentError
from agenteval.suite.model import AgentSpec

Options = Mapping[str, Any]
Ask = Callable[[AgentSpec], Any]

ARGS = {"item": "bolt"}
STEPS = [{"type": "tool_use", "id": "1", "name": "price_of", "input": ARGS}]
FOREIGN = {"data": {"text": "5 USD", "steps": STEPS}, "cost": {"in": 3}, "problem": None}


def over_http(value: Any, directory: Path, options: Options, ask: Ask) -> Any:
    with serving(lambda _: Answer(value)) as service:
        return ask(agent_spec("http", service.url, directory, options=options))


def of_a_command(value: Any, directory: Path, options: Options, ask: Ask) -> Any:
    code = f"import json; print(json.dumps({value!r}))"
    return ask(agent_spec("command", [sys.executable, "-c", code], directory, options=options))


def of_python(value: Any, directory: Path, options: Options, ask: Ask) -> Any:
    (directory / "agent.py").write_text(f"def reply(request):\n    return {value!r}\n", encoding="utf-8")
    options = {**options, "interpreter": sys.executable}
    return ask(agent_spec("python", "agent:reply", directory, options=options))


KINDS = pytest.mark.parametrize("kind", [over_http, of_a_command, of_python])


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def answered(asked: Request | None = None) -> Callable[[AgentSpec], Reply]:
    return lambda spec: answer(spec, asked)


@KINDS
@pytest.mark.parametrize(
    ("options", "expects_json", "response", "calls", "tokens"),
    [
        ({"response_path": "data.text"}, False, "5 USD", [], None),
        ({"response_path": "data.steps[*].name"}, False, "price_of", [], None),
        ({"response_path": "$.data['text']"}, True, "5 USD", [], None),
        (
            {"response": {"answer": "data.text", "tool_calls": "data.steps", "usage": {"input_tokens": "cost.in"}}},
            False,
            "5 USD",
            ["price_of"],
            3,
        ),
        ({"response": {"tool_calls": "data.steps"}}, True, json.dumps(FOREIGN), ["price_of"], None),
        ({"reply": "text"}, False, json.dumps(FOREIGN), [], None),
        ({}, True, json.dumps(FOREIGN), [], None),
    ],
)
def test_options_and_case_tell_what_the_parts_of_a_reply_are(
    *,
    tmp_path: Path,
    kind: Any,
    options: Options,
    expects_json: bool,
    response: str,
    calls: list[str],
    tokens: int | None,
) -> None:
    found = kind(FOREIGN, tmp_path, options, answered(request(expects_json=expects_json)))
    assert (found.response, [call.name for call in found.tool_calls]) == (response, calls)
    assert (found.usage and found.usage.input_tokens) == tokens


@KINDS
@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (
            {"answer": "5 USD", "n": 1},
            {},
            "without `response` (its keys: answer, n); set `response_path: answer`, or `reply: text` if",
        ),
        ({"n": 1}, {}, "without `response` (its keys: n); set `response_path` to the path of the answer, or"),
        (
            {"n": 1, "steps": STEPS},
            {"response": {"tool_calls": "steps"}},
            "without `response` (its keys: n, steps); set `response_path` to the path of the answer",
        ),
        (
            FOREIGN,
            {"response_path": "data.answer"},
            "no 'answer' (response_path 'data.answer'); 'data' is an object with the keys text, steps",
        ),
        ({"error": "no quota"}, {"response": {"error": "error"}}, "the agent reported an error: no quota"),
    ],
    ids=["answer", "no-answer", "calls-only", "path", "error"],
)
def test_an_object_without_an_answer_is_an_error_that_lists_its_keys(
    tmp_path: Path, kind: Any, value: Any, options: Options, message: str
) -> None:
    with pytest.raises(AgentError) as caught:
        kind(value, tmp_path, options, answered())
    assert message in str(caught.value)


def test_an_error_of_an_http_agent_names_the_probable_shape(tmp_path: Path) -> None:
    chat = {"choices": [{"message": {"content": "5 USD"}}]}
    with pytest.raises(AgentError, match=r"its keys: choices\); set `shape: openai-chat`, or `reply: text`"):
        over_http(chat, tmp_path, {}, answered())


@KINDS
def test_remarks_contain_the_path_of_tool_calls_that_were_not_found(tmp_path: Path, kind: Any) -> None:
    def mapping(spec: AgentSpec) -> str | None:
        async def run() -> str | None:
            async with started(spec) as agent:
                await agent.session().send(request())
                assert isinstance(agent, RemarkingAgent)
                return agent.remarks().mapping_of_calls

        return asyncio.run(run())

    value = {"response": "5 USD", "trace": {"steps": STEPS}}
    assert kind(value, tmp_path, {}, mapping) == "response: {tool_calls: trace.steps}"
    assert kind({**value, "tool_calls": STEPS}, tmp_path, {}, mapping) is None


CALLED = {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"name": "price_of"}}]}}]}
SILENT = {"choices": [{"message": {"content": None}}]}


@KINDS
@pytest.mark.parametrize(
    ("value", "options"),
    [
        ({"response": None}, {}),
        ({"response": None, "tool_calls": []}, {}),
        ({"a": None}, {"response_path": "a"}),
        (SILENT, {"response_path": "choices[0].message.content"}),
    ],
)
def test_a_missing_answer_is_an_error(tmp_path: Path, kind: Any, value: Any, options: Options) -> None:
    with pytest.raises(AgentError, match="returned no answer"):
        kind(value, tmp_path, options, answered())


@pytest.mark.parametrize("reply", [{}, {"reply": "text"}])
@pytest.mark.parametrize(
    ("code", "ending"),
    [("return None", "returned no answer"), ("if False: yield", "returned no answer")],
)
def test_a_python_agent_that_returns_nothing(tmp_path: Path, code: str, ending: str, reply: Options) -> None:
    (tmp_path / "agent.py").write_text(f"def reply(request):\n    {code}\n", encoding="utf-8")
    with pytest.raises(AgentError, match=ending):
        answer(agent_spec("python", "agent:reply", tmp_path, options={**reply, "interpreter": sys.executable}))


@pytest.mark.parametrize("reply", [{}, {"reply": "text"}])
def test_a_program_that_prints_nothing(tmp_path: Path, reply: Options) -> None:
    code = "import sys; print('no model', file=sys.stderr)"
    with pytest.raises(AgentError, match=r"printed no answer \(no model\); print the answer"):
        answer(agent_spec("command", [sys.executable, "-c", code], tmp_path, options=reply))


@pytest.mark.parametrize("sent", [Answer(status=204, content_type=""), Answer(b""), Answer("null")])
def test_a_response_without_an_answer(tmp_path: Path, sent: Answer) -> None:
    with serving(lambda _: sent) as service, pytest.raises(AgentError, match=r"has no body|returned no answer"):
        answer(agent_spec("http", service.url, tmp_path))


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ("openai-chat", SILENT),
        ("openai-responses", {"output": []}),
        ("anthropic-messages", {"content": []}),
        ("langserve", {"output": None}),
        ("langserve", {"output": {"messages": [{"type": "human", "content": "hi"}]}}),
        ("ag-ui", {"messages": [{"role": "user", "content": "hi"}]}),
    ],
)
def test_a_shape_without_an_answer(tmp_path: Path, shape: str, value: Any) -> None:
    with pytest.raises(AgentError, match="returned no answer"):
        over_http(value, tmp_path, {"shape": shape}, answered())


@KINDS
@pytest.mark.parametrize(
    ("value", "options", "expects_json"),
    [
        ({"response": "sorry", "error": "db down"}, {}, False),
        ({"response": "sorry", "error": {"message": "db down"}}, {}, True),
        ({"error": "db down"}, {}, False),
        ({"error": "db down"}, {"response_path": "answer"}, True),
        ({"response": "sorry", "error": "db down"}, {"response": {"usage": {"input_tokens": "n"}}}, False),
    ],
)
def test_an_error_in_a_reply_is_an_error_of_the_turn(
    *, tmp_path: Path, kind: Any, value: Any, options: Options, expects_json: bool
) -> None:
    with pytest.raises(AgentError) as caught:
        kind(value, tmp_path, options, answered(request(expects_json=expects_json)))
    assert str(caught.value) == "the agent reported an error: db down"


@KINDS
@pytest.mark.parametrize("error", [None, False, "", {}])
def test_an_empty_error_is_none(tmp_path: Path, kind: Any, error: Any) -> None:
    found = kind({"response": "hello", "error": error}, tmp_path, {}, answered())
    assert (found.response, found.metadata) == ("hello", {})


def test_an_error_in_an_object_of_python(tmp_path: Path) -> None:
    fields = "response='sorry', error=ValueError('db down')"
    code = "from dataclasses import make_dataclass\nR = make_dataclass('R', ['response', 'error'])\n"
    (tmp_path / "agent.py").write_text(f"{code}def reply(request):\n    return R({fields})\n", encoding="utf-8")
    with pytest.raises(AgentError, match="reported an error: db down"):
        answer(agent_spec("python", "agent:reply", tmp_path, options={"interpreter": sys.executable}))


def test_an_error_in_a_stream(tmp_path: Path) -> None:
    sent = Answer('data: {"response": "x"}\n\ndata: {"error": "db down"}\n\n', content_type="text/event-stream")
    with serving(lambda _: sent) as service, pytest.raises(AgentError, match="reported an error: db down"):
        answer(agent_spec("http", service.url, tmp_path))


@KINDS
def test_an_error_inside_is_not_suggested_as_the_answer(tmp_path: Path, kind: Any) -> None:
    with pytest.raises(AgentError, match="set `response_path` to the path of the answer"):
        kind({"detail": {"error": "db down"}}, tmp_path, {}, answered())


@KINDS
def test_tool_calls_need_no_text(tmp_path: Path, kind: Any) -> None:
    calls = [{"name": "price_of", "args": {}}]
    found = kind({"response": None, "tool_calls": calls}, tmp_path, {}, answered())
    assert (found.response, [call.name for call in found.tool_calls]) == ("", ["price_of"])


def test_tool_calls_of_a_shape_need_no_text(tmp_path: Path) -> None:
    found = over_http(CALLED, tmp_path, {"shape": "openai-chat"}, answered())
    assert (found.response, [call.name for call in found.tool_calls]) == ("", ["price_of"])
