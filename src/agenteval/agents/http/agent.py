"""Agents behind an HTTP address: requests are POSTed as JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.http.address import Address, proxy_of, read_address, without_secrets
from agenteval.agents.http.response import TRANSIENT_STATUSES, HttpError, HttpResponse, text_of
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError, agent_problem
from agenteval.core.version import __version__
from agenteval.suite.model import AgentSpec
from agenteval.suite.response_path import value_at

if TYPE_CHECKING:
    from agenteval.agents.http.client import Client

_SHOWN = 300
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# They delimit a request's body.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class HttpService:
    """An address to which JSON is POSTed; the scheduler sets the time limits.

    Connections are kept and reused. A response may contain 50 MiB.

    Args:
        spec: the definition.
        concurrency: the maximum number of requests under way.
        what: the service's name in messages.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, what: str) -> None:
        self._where = spec.where
        self._url = str(spec.target)
        self._what = f"{what} at {without_secrets(self._url)}"
        # Secrets often end in a line break that is not meant to be sent.
        self._user_headers = {name: value.strip() for name, value in (spec.options.get("headers") or {}).items()}
        self._slots = asyncio.Semaphore(concurrency)
        self._client: Client | None = None

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
            text = f"{without_secrets(self._url)!r} is not a valid address: {error}"
            raise ConfigError(agent_problem(self._where, text)) from None
        # Imported here: aiohttp takes 0.2 s, and `agenteval validate` does not need it.
        from agenteval.agents.http.client import Client

        try:
            self._client = Client(address, proxy_of(address), _headers(address, self._user_headers))
        except (ValueError, OSError) as error:
            raise ConfigError(agent_problem(self._where, f"cannot be reached from here: {error}")) from None

    async def post(self, request: Any) -> HttpResponse:
        """POST one request and return the response, whatever its status.

        Raises:
            AgentError: the service cannot be reached, breaks off, or sends too much.
        """
        if self._client is None:
            raise AgentError(f"{self._what} was not started")
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            async with self._slots:
                return await self._client.post(body)
        except HttpError as error:
            kind = TransientAgentError if error.is_transient else AgentError
            raise kind(f"{self._what} {error}") from None

    def refusal(self, response: HttpResponse) -> AgentError:
        """Return the error for a response that is not a success."""
        shown = (response.location or text_of(response))[:_SHOWN]
        text = f"{self._what} answered {response.status} {response.reason[:_SHOWN]}: {shown}"
        if response.status not in TRANSIENT_STATUSES:
            return AgentError(text)
        from agenteval.core.llm.providers.failures import retry_after_s

        return TransientAgentError(text, retry_after_s(response.headers))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _problem(name: str, value: str) -> str | None:
    """Return what is wrong with a header, or ``None``."""
    if not _NAME.fullmatch(name):
        return "has a name that HTTP does not allow"
    if name.lower() in _FRAMING:
        return "cannot be set: it follows from each request"
    if not (value.isascii() and value.isprintable()):
        return "may contain printable ASCII only"
    return None


def _headers(address: Address, of_user: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of every request; the user's replace the built-in ones."""
    built_in = {
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": f"agenteval/{__version__}",
        "Content-Type": "application/json",
        **({"Authorization": address.credentials} if address.credentials else {}),
    }
    replaced = {name.lower() for name in of_user}
    return {**{name: value for name, value in built_in.items() if name.lower() not in replaced}, **of_user}


class HttpAgent:
    """An agent that answers over HTTP."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._service = HttpService(spec, concurrency, "the agent")
        self._response_path = spec.options.get("response_path")

    async def start(self) -> None:
        """Check the definition."""
        self._service.open()

    def session(self) -> HttpAgent:
        """Return the agent: each request names its session."""
        return self

    async def send(self, request: Request) -> Reply:
        """POST one request."""
        response = await self._service.post(request.to_json())
        if not response.is_success:
            raise self._service.refusal(response)
        return self._read(response)

    async def end(self) -> None:
        """Do nothing: sessions share the connections."""

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
