"""Agents behind an HTTP address: requests are sent as JSON, replies are read as configured."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agenteval.agents.base import PlainAgent, Remarks, Reply, Request, read_json, reply_from_json
from agenteval.agents.http_response import (
    TRANSIENT_STATUSES,
    Address,
    HttpError,
    HttpResponse,
    StreamEvent,
    is_stream,
    is_text,
    media_type,
    objects_of,
    proxy_of,
    read_address,
    read_events,
    text_of_response,
)
from agenteval.agents.http_shapes import SHAPES, Shape, probable_shape
from agenteval.agents.reading import WHOLE, ReplyReader, suggestion
from agenteval.agents.registry import Listener, ignore
from agenteval.agents.tool_calls import raise_error
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError, agent_problem
from agenteval.core.escape import display_url
from agenteval.core.redact import MASK
from agenteval.core.secrets import shortened
from agenteval.core.text import text_of
from agenteval.core.version import __version__
from agenteval.suite.agent_keys import check_template, filled, filled_text, request_problem
from agenteval.suite.forms import PathError, described
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.agents.http_client import HttpClient


_DOT_SEGMENTS = frozenset({".", ".."})


class RequestBuilder:
    """Builds requests by the options of an agent; the address can have placeholders after the host.

    Args:
        shape: the form of the requests; ``None`` for the agent protocol.
    """

    def __init__(self, url: str, options: Mapping[str, Any], shape: Shape | None, config: Mapping[str, Any]) -> None:
        method, self._template = options.get("method"), options.get("body")
        check_template([url, self._template])
        name = None if shape is None else shape.name
        problem = request_problem(method=method, url=url, body=self._template, shape=name, config=config)
        if problem:
            raise ValueError(problem)
        self.method = method or "POST"
        self._url, self._shape = url, shape

    def address(self, request: Request) -> str:
        """Return the address for a turn."""
        try:
            return filled_text(self._url, _values(request), _quoted)
        except KeyError as error:
            raise AgentError(_missing(error)) from None

    def body(self, request: Request) -> Any:
        """Return the JSON to send for a turn; ``None`` for a request without a body."""
        if self.method == "GET":
            return None
        if self._shape is None and self._template is None:
            return request.to_json()
        values = _values(request)
        try:
            made = filled(self._template, values)
        except KeyError as error:
            raise AgentError(_missing(error)) from None
        return made if self._shape is None else {**self._shape.body(values), **(made or {})}


def _values(request: Request) -> dict[str, Any]:
    values = request.to_json()
    said = {"role": "user", "content": request.prompt}
    return {**values, "input": request.prompt, "messages": [*values["history"], said]}


def _quoted(value: Any) -> str:
    """Return a value as a part of an address that cannot change its other parts."""
    text = quote(text_of(value), safe="", errors="replace")
    if text in _DOT_SEGMENTS:
        raise AgentError(f"{text!r} cannot be a part of the agent's address")
    return text


def _missing(error: KeyError) -> str:
    name = str(error.args[0])
    return f"the request needs {{{name}}}, but the case has no such value"


_SHOWN = 300
_AS_TEXT = "check the address, or set `reply: text` if the whole body is the answer"
_EMPTY = "an empty answer needs `Content-Type: text/plain` or a `response`"


def _is_untagged(kind: str, response: HttpResponse) -> bool:
    """Return whether a response of type HTML is plain text: some frameworks send every text as HTML."""
    return kind == "text/html" and not response.content.lstrip().startswith(b"<")


class HttpReader(ReplyReader):
    """Reads responses by the options of an agent; paths replace parts of a shape."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options, _fix)
        name = options.get("shape")
        if name is not None and name not in SHAPES:
            raise ValueError(f"no shape {name!r}; known: {', '.join(SHAPES)}")
        self.shape = None if name is None else SHAPES[name]

    def received(self, response: HttpResponse) -> Sequence[Any] | str:
        """Return the JSON in a response, one document or those of a stream, or its text."""
        if not response.content and not is_text(response):
            raise AgentError("the agent's reply has no body; " + _EMPTY)
        if self.is_text:
            return text_of_response(response)
        if is_stream(response):
            return self._of_stream(read_events(response))
        is_foreign = self.shape is not None or self.paths is not None
        kind = media_type(response)
        if not is_foreign and "json" not in kind:
            if kind and not (is_text(response) or _is_untagged(kind, response)):
                shown = shortened(kind, _SHOWN)
                raise AgentError(f"the agent's reply has the type {shown}, not JSON or plain text; {_AS_TEXT}")
            return text_of_response(response)
        try:
            return [read_json(response.content)]
        except (ValueError, RecursionError) as error:
            # Some servers do not name the type of a stream.
            events = read_events(response) if is_foreign else []
            if len(events) > 1:
                return self._of_stream(events)
            raise AgentError(f"the agent's reply is not JSON: {error}") from None

    def reply(self, received: Sequence[Any] | str, request: Request) -> Reply:
        """Return the reply to a turn in its response."""
        if isinstance(received, str):
            return self.parse_text(received, request)
        if self.shape is None:
            return self.read(received, request)
        found = _read(self.shape, received[0])
        if self.paths is not None:
            found.update(self.paths.find(received))
        return self.noticed(reply_from_json(found), received)

    def missing(self, received: Sequence[Any] | str) -> Iterator[str]:
        """Yield why paths have no value in a reply or in any event of a stream, and which shape it probably has."""
        if isinstance(received, str):
            return
        if self.paths is not None:
            yield from self.paths.missing(received)
        elif self.shape is None and (name := _shape_of(received)):
            yield f"the reply looks like `shape: {name}`"

    def _of_stream(self, events: Sequence[StreamEvent]) -> Sequence[Any] | str:
        if not events:
            raise AgentError("the agent's stream contains no events")
        if self.shape is not None:
            return [self.shape.join(events)]
        failed = next((event for event in events if event.name == "error"), None)
        if failed is not None:
            raise AgentError(f"the agent reported an error: {shortened(failed.data, _SHOWN)}")
        if self.paths is not None:
            return list(objects_of(events)) or [None]
        return _without_mapping(events)


def _read(shape: Shape, document: Any) -> dict[str, Any]:
    try:
        return shape.read(document)
    except PathError as error:
        other = probable_shape(document)
        hint = f"; it looks like `shape: {other}`" if other and other != shape.name else ""
        raise AgentError(f"{error}{hint}") from None


def _fix(value: Mapping[str, Any]) -> str:
    shape = probable_shape(value)
    return f"set `shape: {shape}`, or {WHOLE}" if shape else suggestion(value)


def _without_mapping(events: Sequence[StreamEvent]) -> Sequence[Any] | str:
    """Return the texts of a stream as one, or the only reply of the agent protocol in it."""
    values = [_value(event) for event in events]
    objects = [value for value in values if isinstance(value, dict)]
    if not objects:
        # Texts as they are, or as JSON texts.
        is_json = all(isinstance(value, str) for value in values)
        return "".join(values if is_json else [event.data for event in events])
    for value in objects:
        raise_error(value)
    replies = [value for value in objects if "response" in value]
    if len(replies) == 1:
        return replies
    shape = _shape_of(objects)
    fix = f"set `shape: {shape}`" if shape else "set `response: {answer: …}` to the path of the text in an event"
    example = max(objects, key=len)
    raise AgentError(f"the agent's stream consists of {len(objects)} objects, such as {described(example)}; {fix}")


def _shape_of(documents: Iterable[Any]) -> str | None:
    return next((name for value in documents if (name := probable_shape(value))), None)


def _value(event: StreamEvent) -> Any:
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError):
        return None


_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# Headers that delimit a request's body.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class HttpService:
    """An address that receives JSON; the scheduler sets the time limits.

    Connections are kept open and reused. A response body can have up to 50 MiB.

    Args:
        concurrency: the maximum number of simultaneous requests.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, what: str) -> None:
        self._where = spec.where
        self._url = str(spec.target)
        self._what = f"{what} at {display_url(self._url)}"
        # Secrets often end with a line break that must not be sent.
        self._user_headers = {name: value.strip() for name, value in (spec.options.get("headers") or {}).items()}
        self._slots = asyncio.Semaphore(concurrency)
        self._client: HttpClient | None = None

    def open(self) -> None:
        """Check the definition and the environment, without connecting."""
        for name, value in self._user_headers.items():
            if problem := _problem(name, value):
                raise ConfigError(agent_problem(self._where, f"the header {name!r} {problem}"))
        try:
            address = read_address(self._url)
        except ValueError as error:
            text = f"{display_url(self._url)!r} is not a valid address: {error}"
            raise ConfigError(agent_problem(self._where, text)) from None
        # Imported here: aiohttp takes 0.2 s, and `agenteval validate` does not need it.
        from agenteval.agents.http_client import HttpClient

        try:
            self._client = HttpClient(address, proxy_of(address), _headers(address, self._user_headers))
        except (ValueError, OSError) as error:
            raise ConfigError(agent_problem(self._where, f"cannot be reached from here: {error}")) from None

    async def send(self, request: Any, *, method: str = "POST", url: str | None = None) -> HttpResponse:
        """Send one request and return the response, whatever its status.

        Args:
            request: JSON; ``None`` for a request without a body.
            url: the address if it depends on the request; its host is that of the service.
        """
        if self._client is None:
            raise AgentError(f"{self._what} was not started")
        body = None if request is None else json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            address = read_address(url or self._url)
            async with self._slots:
                return await self._client.send(method, address.url, body)
        except ValueError as error:
            raise AgentError(f"the address of the request is not valid: {error}") from None
        except HttpError as error:
            kind = TransientAgentError if error.is_transient else AgentError
            raise kind(f"{self._what} {error}") from None

    def refusal(self, response: HttpResponse) -> AgentError:
        """Return the error for a response that is not a success."""
        said = display_url(response.location) if response.location else text_of_response(response)
        reason = shortened(response.reason, _SHOWN)
        text = f"{self._what} answered {response.status} {reason}: {shortened(said, _SHOWN)}"
        if response.status not in TRANSIENT_STATUSES:
            return AgentError(text)
        from agenteval.core.llm.provider_base import retry_after_s

        return TransientAgentError(text, retry_after_s(response.headers))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _problem(name: str, value: str) -> str | None:
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
        "Accept-Encoding": "identity",
        "User-Agent": f"agenteval/{__version__}",
        "Content-Type": "application/json",
        **({"Authorization": address.credentials} if address.credentials else {}),
    }
    replaced = {name.lower() for name in of_user}
    return {**{name: value for name, value in built_in.items() if name.lower() not in replaced}, **of_user}


class HttpAgent(PlainAgent):
    """An agent that answers over HTTP.

    Args:
        concurrency: the maximum number of simultaneous requests.
        listener: receives requests and replies as they are sent.
    """

    def __init__(self, spec: AgentSpec, concurrency: int, listener: Listener = ignore) -> None:
        self._service = HttpService(spec, concurrency, "the agent")
        try:
            self._reader = HttpReader(spec.options)
            self._builder = RequestBuilder(str(spec.target), spec.options, self._reader.shape, spec.config)
        except ValueError as error:
            raise ConfigError(agent_problem(spec.where, str(error))) from None
        self._header_names = sorted(spec.options.get("headers") or {})
        self._listener = listener
        self._where = spec.where

    async def start(self) -> None:
        """Check the definition."""
        self._service.open()

    async def send(self, request: Request) -> Reply:
        """Send one request."""
        builder = self._builder
        body = builder.body(request)
        url = builder.address(request)
        self._listener("request", lambda: self._shown_request(url, body))
        response = await self._service.send(body, method=builder.method, url=url)
        self._listener("response", lambda: _shown_response(response))
        if not response.is_success:
            raise self._service.refusal(response)
        received = self._reader.received(response)
        self._listener("remarks", lambda: "\n".join(self._reader.missing(received)))
        return self._reader.reply(received, request)

    def _shown_request(self, url: str, body: Any) -> str:
        query = "?…" if "?" in url else ""
        headers = [f"{name}: {MASK}" for name in self._header_names]
        content = [] if body is None else ["", json.dumps(body, ensure_ascii=False, indent=2)]
        return "\n".join([f"{self._builder.method} {display_url(url)}{query}", *headers, *content])

    def remarks(self) -> Remarks:
        """Return remarks about the replies and their tool calls."""
        return self._reader.remarks(self._where)

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()


def _shown_response(response: HttpResponse) -> str:
    content_type = response.headers.get("content-type", "")
    return f"{response.status} {response.reason}\ncontent-type: {content_type}\n\n{text_of_response(response)}"
