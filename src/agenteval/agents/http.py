"""An agent behind an HTTP address: requests are POSTed as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request, agent_problem, reply_from_json
from agenteval.errors import AgentError, ConfigError
from agenteval.suite.model import AgentSpec
from agenteval.suite.response_path import value_at

if TYPE_CHECKING:
    import httpx

_SHOWN = 300


class HttpService:
    """An address that JSON is POSTed to, with one connection pool; time limits are the scheduler's.

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
        self._concurrency = concurrency
        self._client: httpx.AsyncClient | None = None

    def open(self) -> None:
        """Open the connection pool; whether the service answers shows with the first case.

        Raises:
            ConfigError: the address or a header cannot be.
        """
        import httpx

        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise ConfigError(agent_problem(self._where, f"the header {name!r} may hold printable ASCII only"))
        limits = httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency)
        try:
            httpx.URL(self._url)
            # No time limit here: the scheduler has one for the whole turn.
            self._client = httpx.AsyncClient(timeout=httpx.Timeout(None), limits=limits, headers=self._headers)
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

        if self._client is None:
            raise AgentError(f"{self._what} was not started")
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            return await self._client.post(self._url, content=body, headers={"content-type": "application/json"})
        except httpx.ConnectError as error:
            raise AgentError(f"{self._what} cannot be reached: {error}") from None
        except httpx.HTTPError as error:
            raise AgentError(f"{self._what} broke off: {type(error).__name__} {error}") from None

    def refusal(self, response: httpx.Response) -> str:
        """What a response says that is no success."""
        said = response.headers.get("location") if response.has_redirect_location else response.text[:_SHOWN]
        return f"{self._what} answered {response.status_code} {response.reason_phrase}: {said}"

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


class HttpAgent:
    """An agent that is asked over HTTP."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._service = HttpService(spec, concurrency, "the agent")
        self._response_path = spec.options.get("response_path")

    async def start(self) -> None:
        """Open the connection pool."""
        self._service.open()

    def session(self) -> HttpAgent:
        """Sessions are told apart by the ``session`` of each request."""
        return self

    async def send(self, request: Request) -> Reply:
        """POST one request."""
        response = await self._service.post(request.to_json())
        if not response.is_success:
            raise AgentError(self._service.refusal(response))
        return self._read(response)

    async def end(self) -> None:
        """Connections are shared."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    def _read(self, response: httpx.Response) -> Reply:
        is_json = "json" in response.headers.get("content-type", "")
        if not is_json and self._response_path is None:
            return Reply(response=response.text)
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
