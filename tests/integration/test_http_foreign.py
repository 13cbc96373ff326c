"""HTTP agents whose requests and replies have another form than the agent protocol, against a real server."""

from __future__ import annotations

import json
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


def test_a_stream_of_too_many_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_response, "MAX_EVENTS", 1000)
    with pytest.raises(AgentError, match="has more than 1,000 events"):
        replied(Answer("data: x\n\n" * 1001, content_type=SERVER_SENT), tmp_path)
