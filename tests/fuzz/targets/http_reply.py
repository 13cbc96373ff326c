"""What an HTTP agent responds; the first line is the type of the content. AgentError."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agenteval.agents.base import Request
from agenteval.agents.http_agent import HttpReader
from agenteval.agents.http_response import HttpResponse
from agenteval.agents.http_shapes import SHAPES
from agenteval.agents.tool_calls import find_mapping
from agenteval.core.errors import AgentError

_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {},
    {"reply": "text"},
    {"response_path": "choices[0].message.content"},
    {"response": {"answer": "steps[*].text", "tool_calls": "steps", "retrieval_context": "$", "error": "error"}},
    {"response": {"tool_calls": {"path": "steps", "name": "tool.name", "args": "tool.args", "result": "output"}}},
    *({"shape": name} for name in SHAPES),
)
_READERS = tuple(map(HttpReader, _OPTIONS))
_REQUESTS = tuple(
    Request(input="", case="", turn=0, session="", expects_json=expects_json) for expects_json in (False, True)
)


def target(data: bytes) -> None:
    kind, _, content = data.partition(b"\n")
    response = HttpResponse(200, "OK", {"content-type": kind.strip().decode("latin-1")}, content)
    for reader in _READERS:
        with suppress(AgentError):
            received = reader.received(response)
            list(reader.missing(received))
            find_mapping([received] if isinstance(received, str) else received)
            for request in _REQUESTS:
                with suppress(AgentError):
                    reader.reply(received, request).response.encode()
