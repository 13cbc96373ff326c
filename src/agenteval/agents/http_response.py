"""Responses of HTTP services: their addresses, errors and streams."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from itertools import islice
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import MOST_OF_STREAM, check_size
from agenteval.core.errors import AgentError
from agenteval.core.escape import display_url
from agenteval.core.records import dataclass

if TYPE_CHECKING:
    from yarl import URL


_SCHEMES = ("http", "https")
_HOST = re.compile(r"[!$&'()*+,;=\w.~%-]+", re.ASCII)
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)


@dataclass(frozen=True)
class Address:
    """A valid address.

    Attributes:
        url: percent-encoded, without user and password.
        credentials: the value of ``Authorization`` for the address's user and password; empty without them.
    """

    url: URL
    credentials: str = ""

    @property
    def is_secure(self) -> bool:
        """Whether it uses TLS."""
        return self.url.scheme == "https"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return str(self.url.origin())


def read_address(url: str) -> Address:
    """Parse an address."""
    # Imported here: only HTTP agents need it.
    from yarl import URL

    if not url.isprintable() or url != url.strip():
        raise ValueError("it contains control characters, or begins or ends with a space")
    if not url.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES)):
        raise ValueError("it must begin with http:// or https://")
    try:
        parsed = URL(url)
        host, port = parsed.raw_host or "", parsed.port
    except ValueError:
        # The library's message can contain the password.
        raise ValueError("it needs a host, and its port must be a number from 1 to 65535") from None
    if not host or not port:
        raise ValueError("it needs a host, and its port must be a number from 1 to 65535")
    if ":" in host or _IPV4.fullmatch(host):
        ip_address(host)
    elif not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is not a host name")
    return Address(parsed.with_user(None).with_fragment(None), _credentials(parsed))


def proxy_of(address: Address) -> Address | None:
    """Return the proxy that the environment names for an address.

    ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``ALL_PROXY`` name proxies, ``NO_PROXY`` the hosts that need none; on macOS
    and Windows the system's settings count too.
    """
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Imported here: it loads an HTTP client.
    from urllib.request import getproxies, proxy_bypass

    proxies: Mapping[str, str] = getproxies()
    url = proxies.get(address.url.scheme) or proxies.get("all")
    host = address.url.raw_host or ""
    if not url or proxy_bypass(host) or proxy_bypass(f"{address.url.host_subcomponent}:{address.url.port}"):
        return None
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme.startswith("socks"):
        raise ValueError(f"SOCKS proxies ({scheme}://) are not supported; http:// and https:// are")
    if scheme not in _SCHEMES:
        raise ValueError(f"Unknown scheme for proxy: {scheme}://; http:// and https:// are allowed")
    try:
        return read_address(url)
    except ValueError as error:
        raise ValueError(f"the proxy {display_url(url)!r} is not a valid address: {error}") from None


def _credentials(url: URL) -> str:
    """Basic authentication (RFC 7617)."""
    if not url.user and not url.password:
        return ""
    pair = f"{url.user or ''}:{url.password or ''}"
    return f"Basic {b64encode(pair.encode()).decode('ascii')}"


# Limit of a decompressed body in bytes, so that an endless response cannot fill the memory.
MAX_BYTES = 50 * 2**20
# Too many requests, and failures of the server: neither is an answer of the agent.
TRANSIENT_STATUSES = frozenset({429, *range(500, 600)})
# Text types of pages and documents for programs.
_MARKUP = frozenset({"text/html", "text/xml"})
# Encodings of domain names, which are excluded: decoding a long text takes quadratic time.
_OF_NAMES = frozenset({"idna", "punycode"})


class HttpError(Exception):
    """A failed exchange.

    Args:
        message: what failed; callers put the name of the service before it.
        is_transient: whether another attempt may succeed.
    """

    def __init__(self, message: str, *, is_transient: bool) -> None:
        super().__init__(message)
        self.is_transient = is_transient


@dataclass(frozen=True)
class HttpResponse:
    """A complete response.

    Attributes:
        status: usually 200 to 599.
        reason: the service's name for the status; often empty.
        headers: by name in lower case; values of one name are joined with ``, ``.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def is_client_error(self) -> bool:
        """Whether the status is 4xx: the service rejects the request."""
        return 400 <= self.status < 500

    @property
    def location(self) -> str | None:
        """The target of a redirect; ``None`` for other responses."""
        return self.headers.get("location") if self.status in {301, 302, 303, 307, 308} else None


def text_of_response(response: HttpResponse) -> str:
    """Return the body as text, decoded with the charset that the response names if Python knows it, else as UTF-8."""
    encoding = _charset(response.headers.get("content-type", "")) or "utf-8"
    try:
        # decode() rejects codecs that are not text encodings, such as zlib.
        if codecs.lookup(encoding).name not in _OF_NAMES:
            return response.content.decode(encoding, "replace")
    except (LookupError, ValueError):
        pass
    return response.content.decode("utf-8", "replace")


def media_type(response: HttpResponse) -> str:
    """Return the type of a response's content, without its parameters; empty without one."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_text(response: HttpResponse) -> bool:
    """Return whether the content is text that people read: a text type other than HTML and XML."""
    kind = media_type(response)
    return kind.startswith("text/") and kind not in _MARKUP


def _charset(content_type: str) -> str | None:
    if "charset" not in content_type.lower():
        return None
    from email.message import Message

    message = Message()
    message["content-type"] = content_type
    return message.get_content_charset()


#: Limit of the events of one reply, whose objects need much more memory than their text.
MAX_EVENTS = 200_000
#: What OpenAI and others send after the last event.
DONE = "[DONE]"

_SERVER_SENT = "text/event-stream"
_JSON_LINES = re.compile(r"application/(x-)?(ndjson|jsonl|jsonlines|json-lines|stream\+json)")
_BEGINS_AS_EVENTS = re.compile(r"(?:data|event|id|retry)?:|(?:\r\n|\r|\n)+(?:data|event):")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class StreamEvent:
    """One event: its name, empty for most, and its data."""

    name: str
    data: str


def is_stream(response: HttpResponse) -> bool:
    """Return whether the type of a response's content is that of a stream."""
    kind = media_type(response)
    return kind == _SERVER_SENT or _JSON_LINES.fullmatch(kind) is not None


def read_events(response: HttpResponse) -> list[StreamEvent]:
    """Return the events of a response, whatever its type: server-sent events, else one for each line."""
    text = text_of_response(response).removeprefix("\ufeff")
    check_size(text.encode("utf-8", "replace"), MOST_OF_STREAM)
    is_server_sent = media_type(response) == _SERVER_SENT or _BEGINS_AS_EVENTS.match(text)
    found = _server_sent(text) if is_server_sent else _lines(text)
    events = list(islice(found, MAX_EVENTS + 1))
    if len(events) > MAX_EVENTS:
        raise AgentError(f"the agent's stream has more than {MAX_EVENTS:,} events")
    return [event for event in events if event.data != DONE]


def json_of(event: StreamEvent) -> Any:
    """Return the data of an event."""
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"an event of the agent's stream is not JSON: {error}") from None


def objects_of(events: Iterable[StreamEvent]) -> Iterator[dict[str, Any]]:
    """Yield the objects in the data of events; events without data and with other JSON are left out."""
    for event in events:
        value = json_of(event) if event.data else None
        if isinstance(value, dict):
            yield value


def _lines(text: str) -> Iterator[StreamEvent]:
    return (StreamEvent("", line) for line in _LINE_END.split(text) if line.strip())


def _server_sent(text: str) -> Iterator[StreamEvent]:
    """Yield the events of an event stream (WHATWG HTML, section 9.2.6); the last one may lack its empty line."""
    name, data = "", list[str]()
    for line in _LINE_END.split(f"{text}\n\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not line:
            if data or name:
                yield StreamEvent(name, "\n".join(data))
            name, data = "", []
