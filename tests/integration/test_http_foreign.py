"""HTTP agents whose requests and replies have another form than the agent protocol, against a real server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, agent_spec, answer, listening, request, serving

from agenteval.agents import http_response
from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError

SERVER_SENT = "text/event-stream; charset=utf-8"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def replied(sent: Answer, directory: Path, **options: Any) -> Reply:
    """Return how an agent with these options reads an answer."""
    with serving(lambda _: sent) as service:
        return answer(agent_spec("http", service.url, directory, options=options))


def events(*data: Any, names: Sequence[str] = ()) -> Answer:
    """Return a stream of server-sent events."""
    text = ""
    for number, item in enumerate(data):
        name = f"event: {names[number]}\n" if names else ""
        text += f"{name}data: {item if isinstance(item, str) else json.dumps(item)}\n\n"
    return Answer(text, content_type=SERVER_SENT)


# Requests


class Recorder(BaseHTTPRequestHandler):
    """Answers with the method, the address and the body of the request."""

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        content = json.dumps(
            {"response": [self.command, self.path, self.rfile.read(size).decode(), self.headers.get("Host")]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_PATCH = do_POST = _answer  # noqa: N815 - the names are those of the base class

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""


@pytest.mark.parametrize(
    "question", ["a b&c=d#e?/../{case}%2e", "Grüße \U0001f600", "http://evil.example/", "@evil.example", "\r\nX: y"]
)
def test_a_question_in_the_address_cannot_change_it(tmp_path: Path, question: str) -> None:
    from urllib.parse import parse_qs, urlsplit

    with listening(Recorder) as url:
        target = f"{url}/ask?q={{input}}&k=3"
        reply = answer(agent_spec("http", target, tmp_path, options={"method": "GET"}), request(question))
    method, path, body, host = json.loads(reply.response)
    assert (method, urlsplit(path).path, body, host) == ("GET", "/ask", "", url.removeprefix("http://"))
    assert parse_qs(urlsplit(path).query) == {"q": [question], "k": ["3"]}


# Streams


CHUNK = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "Hel"}}]}


@pytest.mark.parametrize(
    ("sent", "options", "said"),
    [
        (Answer("", content_type=SERVER_SENT), {}, "the agent's stream contains no events"),
        (events(CHUNK), {}, "such as an object with the keys object, choices; set `shape: openai-chat`"),
        (
            events({"text": "a"}, {"text": "b"}),
            {},
            "consists of 2 objects, such as an object with the keys text; set `resp",
        ),
        (events({"a": 1}, {"a": 2}), {"response_path": "b"}, "is an object with the keys a (in none of 2 events)"),
        (
            events("x", '{"message": "no model"}', names=["", "error"]),
            {},
            'reported an error: {"message": "no model"}',
        ),
        (events({"a": 1}, {"error": "no model"}), {"response": {"error": "error"}}, "reported an error: no model"),
        (events("{"), {"response_path": "a"}, "an event of the agent's stream is not JSON"),
        (events({"error": {"message": "no model"}}), {"shape": "openai-chat"}, "reported an error: no model"),
        (events({"type": "error", "error": {"message": "busy"}}), {"shape": "anthropic-messages"}, "error: busy"),
        (events({"type": "RUN_ERROR", "message": "busy"}), {"shape": "ag-ui"}, "reported an error: busy"),
        (
            events({"type": "response.failed", "response": {"status": "failed", "error": {"message": "busy"}}}),
            {"shape": "openai-responses"},
            "reported an error: busy",
        ),
    ],
)
def test_says_what_is_wrong_with_a_stream(tmp_path: Path, sent: Answer, options: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentError) as caught:
        replied(sent, tmp_path, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stream_of_too_many_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_response, "MAX_EVENTS", 1000)
    with pytest.raises(AgentError, match="has more than 1,000 events"):
        replied(Answer("data: x\n\n" * 1001, content_type=SERVER_SENT), tmp_path)
