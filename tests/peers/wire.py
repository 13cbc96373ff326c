"""Sees every request of the code under test, and can answer in GitHub's place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from requests import PreparedRequest, Response, Session
from tests.peers.openapi import Request

from agenteval.github.client import USER_AGENT

#: Gets the request and what sends it on; returns the answer or raises.
Interceptor = Callable[[PreparedRequest, Callable[[], Response]], Response]


@dataclass
class Wire:
    """The requests so far, oldest first.

    Args:
        interceptors: asked in order for each request. One that has nothing to say calls what it was given.
    """

    requests: list[Request] = field(default_factory=list)
    interceptors: list[Interceptor] = field(default_factory=list)

    def writes(self) -> list[str]:
        """The methods of the requests that change something."""
        return [r.method for r in self.requests if r.method != "GET" and not r.url.endswith("/graphql")]


def tap(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Records what agenteval's own client sends; other users of the library are left alone."""
    wire = Wire()
    original = Session.send

    def send(session: Session, request: PreparedRequest, **options: Any) -> Response:
        def go_on() -> Response:
            return original(session, request, **options)

        if request.headers.get("User-Agent") != USER_AGENT:
            return go_on()
        wire.requests.append(Request(request.method or "", request.url or "", text_of(request)))
        return _through(wire.interceptors, request, go_on)

    monkeypatch.setattr(Session, "send", send)
    return wire


def text_of(request: PreparedRequest) -> str | None:
    """The body of a request that has one."""
    if isinstance(request.body, bytes):
        return request.body.decode()
    return request.body if isinstance(request.body, str) else None


def answer(request: PreparedRequest, status: int, body: str, **headers: str) -> Response:
    """An answer as the library would have read it from the network."""
    response = requests.Response()
    response.request = request
    response.url = request.url or ""
    response.status_code = status
    response.headers.update({"content-type": "application/json; charset=utf-8", **headers})
    response._content = body.encode()
    return response


def _through(interceptors: list[Interceptor], request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
    if not interceptors:
        return go_on()
    first, *rest = interceptors
    return first(request, lambda: _through(rest, request, go_on))
