"""An agent behind an HTTP address: requests are POSTed as JSON."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request, agent_problem, reply_from_json
from agenteval.errors import AgentError, ConfigError, TransientAgentError
from agenteval.suite.model import AgentSpec
from agenteval.suite.response_path import value_at

if TYPE_CHECKING:
    import ssl

    import httpx

_SHOWN = 300
# Encodings of domain names: a long text takes for ever.
_OF_NAMES = frozenset({"idna", "punycode"})
# Too often, and what proxies say of a service that is not there just now.
_PASSING = frozenset({429, 502, 503, 504})


class HttpService:
    """An address that JSON is POSTed to; time limits are the scheduler's.

    Each request under way has a connection of its own, which the next one takes over. No pool holds them together:
    httpcore's looks at every connection for every request, which takes more time than the requests for some hundred.

    Args:
        spec: its definition.
        concurrency: requests under way at once.
        what: what it is called in messages.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, what: str) -> None:
        self._where = spec.where
        self._url = str(spec.target)
        self._what = f"{what} at {self._url}"
        # A secret often ends in a line break that nobody meant to send.
        self._headers = {name: value.strip() for name, value in (spec.options.get("headers") or {}).items()}
        self._places = asyncio.Semaphore(concurrency)
        self._trusted: ssl.SSLContext | None = None
        self._idle: list[httpx.AsyncClient] = []

    def open(self) -> None:
        """Make sure that it can be asked; whether the service answers shows with the first case.

        Raises:
            ConfigError: the address or a header cannot be.
        """
        import httpx

        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise ConfigError(agent_problem(self._where, f"the header {name!r} may hold printable ASCII only"))
        try:
            httpx.URL(self._url)
            # Reading the authorities takes long; all connections share them.
            self._trusted = httpx.create_ssl_context()
            self._idle.append(self._client(self._trusted))
        except httpx.InvalidURL as error:
            raise ConfigError(agent_problem(self._where, f"{self._url!r} is not a valid address: {error}")) from None
        except (ValueError, ImportError) as error:
            raise ConfigError(agent_problem(self._where, f"cannot be reached from here: {error}")) from None

    async def post(self, request: Any) -> httpx.Response:
        """POST one request; the response may be one that says no.

        Raises:
            AgentError: the service cannot be reached, or breaks off.
        """
        import httpx

        if self._trusted is None:
            raise AgentError(f"{self._what} was not started")
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            async with self._places, self._connection(self._trusted) as client:
                return await client.post(self._url, content=body, headers={"content-type": "application/json"})
        except httpx.ConnectError as error:
            raise TransientAgentError(f"{self._what} cannot be reached: {error}") from None
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            raise TransientAgentError(self._broke_off(error)) from None
        except httpx.HTTPError as error:
            raise AgentError(self._broke_off(error)) from None

    def refusal(self, response: httpx.Response) -> AgentError:
        """What a response says that is no success."""
        said = response.headers.get("location") if response.has_redirect_location else text_of(response)[:_SHOWN]
        text = f"{self._what} answered {response.status_code} {response.reason_phrase}: {said}"
        if response.status_code not in _PASSING:
            return AgentError(text)
        from agenteval.llm.providers.failures import retry_after_s

        return TransientAgentError(text, retry_after_s(response.headers))

    @asynccontextmanager
    async def _connection(self, trusted: ssl.SSLContext) -> AsyncIterator[httpx.AsyncClient]:
        client = self._idle.pop() if self._idle else self._client(trusted)
        try:
            yield client
        finally:
            self._idle.append(client)

    def _client(self, trusted: ssl.SSLContext) -> httpx.AsyncClient:
        import httpx

        # No time limit here: the scheduler has one for the whole turn.
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None), limits=httpx.Limits(max_connections=1), headers=self._headers, verify=trusted
        )

    def _broke_off(self, error: httpx.HTTPError) -> str:
        return f"{self._what} broke off: {type(error).__name__} {error}"

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(client.aclose() for client in self._idle))
        self._idle.clear()


def text_of(response: httpx.Response) -> str:
    """The text of a response, in the encoding that it names if that is one and fits, else in UTF-8."""
    # Not httpx's own: that takes every codec of Python's for an encoding, those that unpack data among them.
    encoding = response.charset_encoding or "utf-8"
    try:
        if codecs.lookup(encoding).name not in _OF_NAMES:
            return response.content.decode(encoding, "replace")
    except (LookupError, ValueError):
        pass
    return response.content.decode("utf-8", "replace")


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

    def _read(self, response: httpx.Response) -> Reply:
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
