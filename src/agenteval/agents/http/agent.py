"""Agents behind an HTTP address: requests are sent as JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Remarks, Reply, Request
from agenteval.agents.calls_elsewhere import CallsElsewhere
from agenteval.agents.http.address import Address, proxy_of, read_address
from agenteval.agents.http.reply import ReplyReader
from agenteval.agents.http.request import RequestBuilder
from agenteval.agents.http.response import TRANSIENT_STATUSES, HttpError, HttpResponse, text_of
from agenteval.agents.listener import Listener, ignore
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError, agent_problem
from agenteval.core.masking import shortened
from agenteval.core.text.redact import MASK
from agenteval.core.urls import display_url
from agenteval.core.version import __version__
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.agents.http.client import Client

_SHOWN = 300
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# Headers that delimit a request's body.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class HttpService:
    """An address that receives JSON; the scheduler sets the time limits.

    Connections are kept open and reused. A response body can have up to 50 MiB.

    Args:
        spec: the definition.
        concurrency: the maximum number of simultaneous requests.
        what: the service's name in messages.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, what: str) -> None:
        self._where = spec.where
        self._url = str(spec.target)
        self._what = f"{what} at {display_url(self._url)}"
        # Secrets often end with a line break that must not be sent.
        self._user_headers = {name: value.strip() for name, value in (spec.options.get("headers") or {}).items()}
        self._slots = asyncio.Semaphore(concurrency)
        self._client: Client | None = None
        self._address: Address | None = None

    def open(self) -> None:
        """Check the definition and the environment, without connecting.

        Raises:
            ConfigError: the address, a header or the environment's proxy is not valid.
        """
        for name, value in self._user_headers.items():
            if problem := _problem(name, value):
                raise ConfigError(agent_problem(self._where, f"the header {name!r} {problem}"))
        try:
            address = read_address(self._url)
        except ValueError as error:
            text = f"{display_url(self._url)!r} is not a valid address: {error}"
            raise ConfigError(agent_problem(self._where, text)) from None
        # Imported here: aiohttp takes 0.2 s, and `agenteval validate` does not need it.
        from agenteval.agents.http.client import Client

        try:
            self._client = Client(address, proxy_of(address), _headers(address, self._user_headers))
        except (ValueError, OSError) as error:
            raise ConfigError(agent_problem(self._where, f"cannot be reached from here: {error}")) from None
        self._address = address

    async def send(self, request: Any, *, method: str = "POST", url: str | None = None) -> HttpResponse:
        """Send one request and return the response, whatever its status.

        Args:
            request: JSON; ``None`` for a request without a body.
            method: the HTTP method.
            url: the address if it depends on the request; its host is that of the service.

        Raises:
            AgentError: the service cannot be reached, closes the connection early, or sends too much data.
        """
        if self._client is None or self._address is None:
            raise AgentError(f"{self._what} was not started")
        body = None if request is None else json_bytes(request)
        try:
            address = self._address if url is None else read_address(url)
            async with self._slots:
                return await self._client.send(method, address.url, body)
        except ValueError as error:
            raise AgentError(f"the address of the request is not valid: {error}") from None
        except HttpError as error:
            kind = TransientAgentError if error.is_transient else AgentError
            raise kind(f"{self._what} {error}") from None

    def refusal(self, response: HttpResponse) -> AgentError:
        """Return the error for a response that is not a success."""
        said = display_url(response.location) if response.location else text_of(response)
        reason = shortened(response.reason, _SHOWN)
        text = f"{self._what} answered {response.status} {reason}: {shortened(said, _SHOWN)}"
        if response.status not in TRANSIENT_STATUSES:
            return AgentError(text)
        from agenteval.core.llm.providers.failures import retry_after_s

        return TransientAgentError(text, retry_after_s(response.headers))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _problem(name: str, value: str) -> str | None:
    """Return the problem of a header; ``None`` if it is valid."""
    if not _NAME.fullmatch(name):
        return "has a name that HTTP does not allow"
    if name.lower() in _FRAMING:
        return "cannot be set: it follows from each request"
    if not (value.isascii() and value.isprintable()):
        return "may contain printable ASCII only"
    return None


def _headers(address: Address, of_user: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of every request; the user's headers replace the built-in ones."""
    built_in = {
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": f"agenteval/{__version__}",
        "Content-Type": "application/json",
        **({"Authorization": address.credentials} if address.credentials else {}),
    }
    replaced = {name.lower() for name in of_user}
    return {**{name: value for name, value in built_in.items() if name.lower() not in replaced}, **of_user}


def json_bytes(value: Any) -> bytes:
    """Return the body of a request."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


class HttpAgent:
    """An agent that answers over HTTP.

    Args:
        spec: the definition.
        concurrency: the maximum number of simultaneous requests.
        listener: receives requests and replies as they are sent.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, listener: Listener = ignore) -> None:
        self._service = HttpService(spec, concurrency, "the agent")
        try:
            self._reader = ReplyReader.of(spec.options)
            self._builder = RequestBuilder.of(str(spec.target), spec.options, self._reader.shape, spec.config)
        except ValueError as error:
            raise ConfigError(agent_problem(spec.where, str(error))) from None
        self._header_names = sorted(spec.options.get("headers") or {})
        self._listener = listener
        self._calls = CallsElsewhere()

    async def start(self) -> None:
        """Check the definition."""
        self._service.open()

    def session(self) -> HttpAgent:
        """Return the agent: each request names its session."""
        return self

    async def send(self, request: Request) -> Reply:
        """Send one request."""
        builder = self._builder
        body = builder.body(request)
        url = None if builder.has_fixed_address else builder.address(request)
        self._listener("request", lambda: self._shown_request(url or builder.url, body))
        response = await self._service.send(body, method=builder.method, url=url)
        self._listener("response", lambda: _shown_response(response))
        if not response.is_success:
            raise self._service.refusal(response)
        received = self._reader.received(response)
        self._listener("remarks", lambda: "\n".join(self._reader.missing(received)))
        reply = self._reader.reply(received, request)
        if not reply.tool_calls:
            self._calls.look_in(received.documents)
        return reply

    def _shown_request(self, url: str, body: Any) -> str:
        """Return a request as text, without the values of headers."""
        query = "?…" if "?" in url else ""
        headers = [f"{name}: {MASK}" for name in self._header_names]
        content = [] if body is None else ["", json.dumps(body, ensure_ascii=False, indent=2)]
        return "\n".join([f"{self._builder.method} {display_url(url)}{query}", *headers, *content])

    def remarks(self) -> Remarks:
        """Return the configuration that finds the tool calls in the replies, if any contained some elsewhere."""
        return Remarks(mapping_of_calls=self._calls.mapping)

    async def end(self) -> None:
        """Do nothing: sessions share the connections."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()


def _shown_response(response: HttpResponse) -> str:
    content_type = response.headers.get("content-type", "")
    return f"{response.status} {response.reason}\ncontent-type: {content_type}\n\n{text_of(response)}"
