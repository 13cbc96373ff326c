"""HTTP agents with a shape, against an independent mock of the APIs of OpenAI and Anthropic and of AG-UI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.peers.aimock import KEY, Aimock, running_ag_ui
from tests.peers.model_bench import USAGE, says
from tests.support import agent_spec, answer, request

from agenteval.agents.base import Reply
from agenteval.results.case import Usage

pytestmark = pytest.mark.peer

ARGUMENTS = {"item": "bolt", "count": 2}
PATHS = {
    "openai-chat": "v1/chat/completions",
    "openai-responses": "v1/responses",
    "anthropic-messages": "v1/messages",
}


def asked(models: Aimock, directory: Path, shape: str, *, stream: bool) -> Reply:
    """Ask the second question of a conversation."""
    # In a stream, chat completions have their usage on request only.
    options = {"stream_options": {"include_usage": True}} if stream and shape == "openai-chat" else {}
    spec = agent_spec(
        "http",
        f"{models.url}/{PATHS[shape]}",
        directory,
        options={
            "shape": shape,
            "headers": {"Authorization": f"Bearer {KEY}", "x-api-key": KEY, "anthropic-version": "2023-06-01"},
            "body": {
                "model": "claude-sonnet-4-6" if "anthropic" in shape else "gpt-4.1",
                "stream": stream,
                **options,
            },
        },
    )
    history = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"})
    return answer(spec, request("What does a bolt cost?", turn=1, history=history))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", PATHS)
def test_reads_text_usage_and_tool_calls(models: Aimock, tmp_path: Path, shape: str, stream: bool) -> None:
    models.play(says("A bolt costs 5 USD — or 4.50 € in Köln."))
    reply = asked(models, tmp_path, shape, stream=stream)
    assert (reply.response, reply.tool_calls) == ("A bolt costs 5 USD — or 4.50 € in Köln.", ())
    assert reply.usage == Usage(input_tokens=100, output_tokens=10)
    (sent,) = models.requests()
    assert [message["content"] for message in sent.body["messages"]] == ["Hello", "Hi", "What does a bolt cost?"]

    tools = ("price_of", "stock_of")
    made = [{"name": name, "arguments": json.dumps(ARGUMENTS)} for name in tools]
    models.play({"match": {}, "response": {"content": None, "usage": USAGE, "toolCalls": made}})
    reply = asked(models, tmp_path, shape, stream=stream)
    assert reply.response == ""
    assert [(call.name, call.args) for call in reply.tool_calls] == [(name, ARGUMENTS) for name in tools]


@pytest.mark.parametrize("events", ["whole", "chunks"])
def test_reads_the_events_of_ag_ui(tmp_path: Path, events: str) -> None:
    whole: list[dict[str, Any]] = [
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Let me look."},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "price_of"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"item": "bolt",'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ' "count": 2}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "5 USD"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m3", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "A bolt "},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "costs 5 USD."},
        {"type": "TEXT_MESSAGE_END", "messageId": "m3"},
    ]
    chunks: list[dict[str, Any]] = [
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "price_of", "delta": '{"item": "bolt"'},
        {"type": "TOOL_CALL_CHUNK", "delta": ', "count": 2}'},
        {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "5 USD"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m3", "role": "assistant", "delta": "A bolt "},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "costs 5 USD."},
    ]
    run = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        *(whole if events == "whole" else chunks),
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "usage": [{"inputTokens": 7, "outputTokens": 3}]},
    ]
    with running_ag_ui(tmp_path, [{"match": {"message": "bolt"}, "events": run}]) as url:
        reply = answer(
            agent_spec("http", url, tmp_path, options={"shape": "ag-ui"}), request("What does a bolt cost?")
        )
    assert reply.response == "A bolt costs 5 USD."
    assert [(call.name, call.args, call.result) for call in reply.tool_calls] == [("price_of", ARGUMENTS, "5 USD")]
    assert reply.usage == Usage(input_tokens=7, output_tokens=3)
