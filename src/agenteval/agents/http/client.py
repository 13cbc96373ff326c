"""HTTP client of agents and tools: aiohttp with size limits and one kind of error."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.http_exceptions import ContentEncodingError

from agenteval.agents.http.address import Address
from agenteval.agents.http.response import MAX_BYTES, TRANSIENT_STATUSES, HttpError, HttpResponse
from agenteval.core.runtime import in_thread

# The encodings of bodies that agenteval asks for.
_ENCODINGS = frozenset({"gzip", "deflate"})
# The names of packed encodings.
_PACKED = frozenset({"gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"})
# Limits of a response's head: the status line or one header line in bytes, and the number of header lines.
_MAX_LINE_BYTES = 100 * 1024
_MAX_HEADERS = 1000
_MAX_INTERIM = 1000
# Limit of everything received for one response.
_MAX_RECEIVED_BYTES = MAX_BYTES + 2**20
# A kept connection that ends this soon after a request was most likely closed before the request arrived.
_STALE_S = 0.1
_SHOWN = 300


class Client:
    """POSTs to one address over kept connections, without redirects, cookies or time limits.

    Args:
        service: the address.
        proxy: the proxy to use, if any.
        headers: sent with every request.

    Raises:
        OSError: the certificate authorities that the environment names cannot be read.
    """

    def __init__(self, service: Address, proxy: Address | None, headers: Mapping[str, str]) -> None:
        self._service = service
        self._proxy = proxy
        proxy_headers = {"Proxy-Authorization": proxy.credentials} if proxy and proxy.credentials else {}
        # For TLS the proxy reads the CONNECT request only; without TLS it reads the request itself.
        self._proxy_headers = proxy_headers if service.is_secure else None
        self._headers = headers if service.is_secure else {**proxy_headers, **headers}
        is_secure = service.is_secure or (proxy is not None and proxy.is_secure)
        # Reading the authorities takes long; all connections share them.
        trusted = trusted_authorities() if is_secure else None
        self._keeping = _session(trusted, force_close=_is_closing(headers))
        self._single_use = _session(trusted, force_close=True)

    async def post(self, body: bytes) -> HttpResponse:
        """POST a body once, or twice if the service had just closed the kept connection.

        Raises:
            HttpError: the service cannot be reached, breaks off, or sends more than ``MAX_BYTES``.
        """
        progress = _Progress()
        started_s = time.monotonic()
        try:
            return await self._exchange(self._keeping, body, progress)
        except _UnansweredError:
            if not progress.is_reused or time.monotonic() - started_s > _STALE_S:
                raise
        return await self._exchange(self._single_use, body, _Progress())

    async def close(self) -> None:
        """Close the connections."""
        await self._keeping.close()
        await self._single_use.close()

    async def _exchange(self, session: aiohttp.ClientSession, body: bytes, progress: _Progress) -> HttpResponse:
        try:
            response = await session.post(
                self._service.url,
                data=BytesIO(body),
                headers=self._headers,
                allow_redirects=False,
                proxy=self._proxy.url if self._proxy else None,
                proxy_headers=self._proxy_headers,
                trace_request_ctx=progress,
            )
        except aiohttp.ClientHttpProxyError as error:
            raise self._unreachable(
                f"it answered {error.status} {_reason(error)}", is_transient=error.status in TRANSIENT_STATUSES
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            if not progress.is_connected:
                raise self._unreachable(_reason(error)) from None
            if isinstance(error, aiohttp.ClientConnectionError):
                raise _UnansweredError(_unanswered(error), is_transient=True) from None
            raise _broken_off(_reason(error)) from None
        async with response:
            if response.status == 101:
                raise _broken_off("it changed to another protocol")
            return HttpResponse(
                status=response.status,
                reason=(response.reason or "").encode("ascii", "ignore").decode("ascii"),
                headers=_headers(response.raw_headers),
                content=await _content(response),
            )

    def _unreachable(self, reason: str, *, is_transient: bool = True) -> HttpError:
        through = f" through the proxy {self._proxy.origin}" if self._proxy else ""
        return HttpError(f"cannot be reached{through}: {reason}"[:_SHOWN], is_transient=is_transient)


def trusted_authorities() -> ssl.SSLContext:
    """Return a TLS context that trusts ``SSL_CERT_FILE``, else ``SSL_CERT_DIR``, else Mozilla's list.

    Raises:
        OSError: a file cannot be read.
    """
    if file := os.environ.get("SSL_CERT_FILE"):
        try:
            return ssl.create_default_context(cafile=file)
        except OSError as error:
            raise OSError(f"SSL_CERT_FILE {file}: {error}") from None
    if directory := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=directory)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


class _UnansweredError(HttpError):
    """The connection ended before a response began."""


@dataclass(slots=True)
class _Progress:
    """How far a request has come."""

    is_connected: bool = False
    is_reused: bool = False


class _Protocol(ResponseHandler):
    """Limits what aiohttp does not: interim responses, and bytes that are not body, like chunk extensions."""

    _received = 0
    _interim = 0

    def expect_response(self) -> None:
        """Count from zero.

        Raises:
            ServerDisconnectedError: data arrived that no request asked for.
        """
        if self.should_close:
            raise aiohttp.ServerDisconnectedError
        self._received = self._interim = 0

    def data_received(self, data: bytes) -> None:
        """Parse a piece of the response."""
        self._received += len(data)
        if self._received > _MAX_RECEIVED_BYTES:
            self._fail(_too_large())
        else:
            super().data_received(data)

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        """Take one response, interim or final."""
        self._interim += data[0].code < 200
        if self._interim > _MAX_INTERIM:
            self._fail(_broken_off("it sends interim responses without end"))
        else:
            super().feed_data(data, size)

    def _fail(self, error: HttpError) -> None:
        self.set_exception(error)
        if self._payload is not None:
            self._payload.set_exception(error)
        if self.transport is not None:
            self.transport.abort()


class _Connector(aiohttp.TCPConnector):
    """Makes connections that speak ``_Protocol``."""

    def __init__(self, trusted: ssl.SSLContext | None, *, force_close: bool) -> None:
        super().__init__(limit=0, ssl=trusted or True, resolver=_Resolver(), force_close=force_close)
        make: Callable[..., ResponseHandler] = _Protocol
        self._factory = partial(make, loop=self._loop)


class _Request(aiohttp.ClientRequest):
    """A request that is not sent over a kept connection on which unrequested data has arrived."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request."""
        if isinstance(conn.protocol, _Protocol):
            conn.protocol.expect_response()
        return await super().send(conn)


class _Resolver(AbstractResolver):
    """Looks names up in a thread that does not keep the program from ending."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        # As bytes, Python does not load its tables for names beyond ASCII.
        look_up = partial(socket.getaddrinfo, host.encode("ascii"), port, family, socket.SOCK_STREAM)
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=int(place[1]),
                family=found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found, _, protocol, _, place in await in_thread(look_up)
        ]

    async def close(self) -> None:
        """Do nothing: no look-up outlives its caller's interest."""


def _session(trusted: ssl.SSLContext | None, *, force_close: bool) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(_connected)
    trace.on_connection_reuseconn.append(_reused)
    return aiohttp.ClientSession(
        connector=_Connector(trusted, force_close=force_close),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(),
        max_line_size=_MAX_LINE_BYTES,
        max_field_size=_MAX_LINE_BYTES,
        max_headers=_MAX_HEADERS,
        request_class=_Request,
        trace_configs=[trace],
    )


async def _connected(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.is_connected = True


async def _reused(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.is_connected = context.trace_request_ctx.is_reused = True


def _is_closing(headers: Mapping[str, str]) -> bool:
    """Whether a ``Connection`` header asks for a new connection per request."""
    values = ",".join(value for name, value in headers.items() if name.lower() == "connection")
    return "close" in (value.strip() for value in values.lower().split(","))


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Read a body, unpacked.

    Raises:
        HttpError: the body breaks off, is too large, or has an encoding that was not asked for. A packed body must
            never be taken for an answer.
    """
    encoding = ", ".join(response.headers.getall("Content-Encoding", ())).strip().lower()
    # Services also name charsets here, whose bodies are plain.
    if encoding not in _ENCODINGS and not _PACKED.isdisjoint(part.strip() for part in encoding.split(",")):
        raise HttpError(f"sent a body in an unsupported encoding: {encoding!r}"[:_SHOWN], is_transient=False)
    content = bytearray()
    try:
        async for piece in response.content.iter_any():
            content += piece
            if len(content) > MAX_BYTES:
                raise _too_large()
    except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
        if isinstance(error.__cause__, ContentEncodingError):
            raise HttpError(
                f"sent a body that cannot be unpacked: {_reason(error.__cause__)}", is_transient=False
            ) from None
        raise _broken_off(_reason(error)) from None
    return bytes(content)


def _broken_off(reason: str) -> HttpError:
    return HttpError(f"broke off: {reason}", is_transient=True)


def _too_large() -> HttpError:
    return HttpError(f"answered more than {MAX_BYTES // 2**20} MiB", is_transient=False)


def _unanswered(error: Exception) -> str:
    said = f": {_reason(error)}" if isinstance(error, OSError) else ""
    return f"broke off: it closed the connection without an answer{said}"


def _reason(error: Exception) -> str:
    """The text of an error in one line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    elif isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    text = error.message if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError) else str(error)
    # aiohttp decodes bytes that are not UTF-8 to lone surrogates, which cannot be written.
    return " ".join(text.split())[:_SHOWN].encode("utf-8", "replace").decode("utf-8")


def _headers(raw: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    """Headers by name in lower case; the values of one name are joined with ``, ``."""
    named: dict[str, str] = {}
    for key, value in raw:
        name, text = _text(key).lower(), _text(value)
        named[name] = f"{named[name]}, {text}" if name in named else text
    return named


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
