"""Builds the requests of HTTP agents: of the agent protocol, of a shape, or from a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agenteval.agents.base import Request
from agenteval.agents.http.shapes.base import Shape
from agenteval.core.errors import AgentError
from agenteval.core.text.json_text import text_of
from agenteval.suite.http_keys import request_problem
from agenteval.suite.request_template import check_template, filled, filled_text, placeholders

_DOT_SEGMENTS = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """Builds requests by the options of an agent.

    Attributes:
        method: the HTTP method.
        url: the address, with placeholders after the host.
        template: the body, with placeholders; ``None`` for the body of the shape or of the agent protocol.
        shape: the form of the requests; ``None`` for the agent protocol.
    """

    method: str
    url: str
    template: Any = None
    shape: Shape | None = None

    @classmethod
    def of(
        cls, url: str, options: Mapping[str, Any], shape: Shape | None, config: Mapping[str, Any]
    ) -> RequestBuilder:
        """Return the builder for the options of an agent.

        Raises:
            ValueError: the template is not valid, or the options do not fit together.
        """
        method, template = options.get("method"), options.get("body")
        check_template([url, template])
        name = None if shape is None else shape.name
        problem = request_problem(method=method, url=url, body=template, shape=name, config=config)
        if problem:
            raise ValueError(problem)
        return cls(method or "POST", url, template, shape)

    @property
    def has_fixed_address(self) -> bool:
        """Whether every request goes to the same address."""
        return not any(True for _ in placeholders(self.url))

    def address(self, request: Request) -> str:
        """Return the address for a turn.

        Raises:
            AgentError: the case has no value for a placeholder, or it cannot be a part of a path.
        """
        try:
            return filled_text(self.url, _values(request), _quoted)
        except KeyError as error:
            raise AgentError(_missing(error)) from None

    def body(self, request: Request) -> Any:
        """Return the JSON to send for a turn; ``None`` for a request without a body.

        Raises:
            AgentError: the case has no value for a placeholder.
        """
        if self.method == "GET":
            return None
        if self.shape is None and self.template is None:
            return request.to_json()
        values = _values(request)
        try:
            made = filled(self.template, values)
        except KeyError as error:
            raise AgentError(_missing(error)) from None
        return made if self.shape is None else {**self.shape.body(values), **(made or {})}


def _values(request: Request) -> dict[str, Any]:
    """Return the values of the placeholders."""
    history = [dict(message) for message in request.history]
    return {
        "input": request.prompt,
        "messages": [*history, {"role": "user", "content": request.prompt}],
        "history": history,
        "session": request.session,
        "case": request.case,
        "turn": request.turn,
        "files": list(request.files),
        "config": dict(request.config),
        "context": dict(request.context),
    }


def _quoted(value: Any) -> str:
    """Return a value as a part of an address that cannot change its other parts."""
    text = quote(text_of(value), safe="", errors="replace")
    if text in _DOT_SEGMENTS:
        raise AgentError(f"{text!r} cannot be a part of the agent's address")
    return text


def _missing(error: KeyError) -> str:
    name = str(error.args[0])
    return f"the request needs {{{name}}}, but the case has no such value"
