"""What an HTTP agent responds; the first line is the type of the content. AgentError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.agents.http.agent import HttpAgent
from agenteval.agents.http.response import HttpResponse
from agenteval.core.errors import AgentError
from agenteval.suite.model import AgentSpec


def _agent(response_path: str | None) -> HttpAgent:
    options = {} if response_path is None else {"response_path": response_path}
    return HttpAgent(AgentSpec(kind="http", target="http://agent", directory=".", where="", options=options), 1)


_AGENTS = tuple(map(_agent, (None, "choices[0].message.content", "answer")))


def target(data: bytes) -> None:
    kind, _, content = data.partition(b"\n")
    response = HttpResponse(200, "OK", {"content-type": kind.strip().decode("latin-1")}, content)
    for agent in _AGENTS:
        with suppress(AgentError):
            agent._read(response).response.encode()
