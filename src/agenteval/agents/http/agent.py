"""An agent behind an HTTP address: requests are POSTed as JSON."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.http.address import Address, proxy_of, read_address, without_secrets
from agenteval.agents.http.response import PASSING, HttpError, HttpResponse, text_of
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError, agent_problem
from agenteval.core.version import __version__
from agenteval.suite.model import AgentSpec
from agenteval.suite.response_path import value_at

if TYPE_CHECKING:
    from agenteval.agents.http.connection import Connection
    from agenteval.agents.http.route import Route

_SHOWN = 300
# A connection that ends so soon after a request most likely ended without regard to it.
_TOO_SOON_S = 0.1
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# They say where a request ends.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class HttpService:
    """An address that JSON is POSTed to; time limits are the scheduler's.

    Each request under way has a connection of its own, which the next one takes over. A response may hold 50 MiB.

    Args:
        spec: its definition.
        concurrency: requests under way at once.
        what: what it is called in messages.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, what: str) -> None:
        self._where = spec.where
        self._url = str(spec.target)
        self._what = f"{what} at {without_secrets(self._url)}"
        # A secret often ends in a line break that nobody meant to send.
        self._own_headers = {name: value.strip() for name, value in (spec.options.get("headers") or {}).items()}
        self._headers: list[tuple[str, str]] = []
        self._places = asyncio.Semaphore(concurrency)
        self._route: Route | None = None
        self._idle: list[Connection] = []

    def open(self) -> None:
        """Make sure that it can be asked; whether the service answers shows with the first case.

        Raises:
            ConfigError: the address, a header or the proxy of the environment cannot be.
        """
        for name, value in self._own_headers.items():
            if problem := _problem(name, value):
                raise ConfigError(agent_problem(self._where, f"the header {name!r} {problem}"))
        try:
            address = read_address(self._url)
        except ValueError as error:
            text = f"{without_secrets(self._url)!r} is not a valid address: {error}"
            raise ConfigError(agent_problem(self._where, text)) from None
        # Imported here: who only wants to know whether an agent can be defined so waits for no TLS.
        from agenteval.agents.http.route import Route

        try:
            self._route = Route(address, proxy_of(address))
        except (ValueError, OSError) as error:
            raise ConfigError(agent_problem(self._where, f"cannot be reached from here: {error}")) from None
        self._headers = _headers(address, self._route.headers, self._own_headers)

    async def post(self, request: Any) -> HttpResponse:
        """POST one request; the response may be one that says no.

        Raises:
            AgentError: the service cannot be reached, breaks off, or answers without end.
        """
        if self._route is None:
            raise AgentError(f"{self._what} was not started")
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            async with self._places:
                return await self._exchange(self._route, body)
        except HttpError as error:
            kind = TransientAgentError if error.passing else AgentError
            raise kind(f"{self._what} {error}") from None

    def refusal(self, response: HttpResponse) -> AgentError:
        """What a response says that is no success."""
        said = (response.location or text_of(response))[:_SHOWN]
        text = f"{self._what} answered {response.status} {response.reason[:_SHOWN]}: {said}"
        if response.status not in PASSING:
            return AgentError(text)
        from agenteval.core.llm.providers.failures import retry_after_s

        return TransientAgentError(text, retry_after_s(response.headers))

    async def _exchange(self, route: Route, body: bytes) -> HttpResponse:
        from agenteval.agents.http.connection import UnansweredError

        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                asked_s = time.monotonic()
                try:
                    return await self._over(connection, route, body)
                except UnansweredError:
                    if time.monotonic() - asked_s > _TOO_SOON_S:
                        raise
                    # The service closed it at that very moment: nobody's fault, so a new one is tried at once.
                    break
        return await self._over(await route.connect(), route, body)

    async def _over(self, connection: Connection, route: Route, body: bytes) -> HttpResponse:
        headers = [*self._headers, ("Content-Length", str(len(body)))]
        response = await connection.exchange("POST", route.target, headers, body)
        if connection.is_open:
            self._idle.append(connection)
        return response

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
        # The sockets are closed as soon as the event loop goes on.
        await asyncio.sleep(0)


def _problem(name: str, value: str) -> str | None:
    """What is wrong with a header."""
    if not _NAME.fullmatch(name):
        return "has no name that HTTP allows"
    if name.lower() in _FRAMING:
        return "cannot be set: it follows from each request"
    if not (value.isascii() and value.isprintable()):
        return "may hold printable ASCII only"
    return None


def _headers(address: Address, of_route: Mapping[str, str], own: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of every request; those of the definition win."""
    ours = {
        "Host": address.authority,
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": f"agenteval/{__version__}",
        "Content-Type": "application/json",
        **({"Authorization": address.credentials} if address.credentials else {}),
        **of_route,
    }
    wins = {name.lower() for name in own}
    return [*((name, value) for name, value in ours.items() if name.lower() not in wins), *own.items()]


class HttpAgent:
    """An agent that is asked over HTTP."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._service = HttpService(spec, concurrency, "the agent")
        self._response_path = spec.options.get("response_path")

    async def start(self) -> None:
        """Make sure that it can be asked."""
        self._service.open()

    def session(self) -> HttpAgent:
        """Sessions are told apart by the ``session`` of each request."""
        return self

    async def send(self, request: Request) -> Reply:
        """POST one request."""
        response = await self._service.post(request.to_json())
        if not response.is_success:
            raise self._service.refusal(response)
        return self._read(response)

    async def end(self) -> None:
        """Connections are shared."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    def _read(self, response: HttpResponse) -> Reply:
        is_json = "json" in response.headers.get("content-type", "")
        if not is_json and self._response_path is None:
            return Reply(response=text_of(response))
        try:
            value = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            raise AgentError(f"the agent's reply is not JSON: {error}") from None
        if self._response_path is None:
            return reply_from_json(value)
        try:
            answer = value_at(value, self._response_path)
        except ValueError as error:
            raise AgentError(str(error)) from None
        return reply_from_json({"response": answer})
