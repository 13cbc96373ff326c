"""What a command agent prints, with every way to read it. AgentError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.agents.base import Request
from agenteval.agents.reading import ReplyReader
from agenteval.core.errors import AgentError

_READERS = tuple(
    ReplyReader(options)
    for options in (
        {},
        {"reply": "text"},
        {"response_path": "data[0].answer"},
        {"response": {"tool_calls": "steps", "error": "error"}},
    )
)
_REQUESTS = tuple(
    Request(input="", case="", turn=0, session="", expects_json=expects_json) for expects_json in (False, True)
)


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for reader in _READERS:
        for request in _REQUESTS:
            with suppress(AgentError):
                reader.parse_text(text, request).response.encode()
