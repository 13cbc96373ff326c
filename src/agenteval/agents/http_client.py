"""HTTP client of agents and tools: aiohttp with size limits and one kind of error."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http import HttpProcessingError

from agenteval.agents.http_response import MAX_BYTES, TRANSIENT_STATUSES, Address, HttpError, HttpResponse
from agenteval.core.records import dataclass
from agenteval.core.runtime import in_thread, localhost_hint
from agenteval.core.secrets import shortened

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler as _AiohttpProtocol
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace
    from yarl import URL


_SHOWN = 300
# Window sizes as zlib takes them; services also send deflate without zlib's header.
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_RAW = -zlib.MAX_WBITS
_ZLIB_METHOD = 8
# The names of packed encodings.
_PACKED = frozenset({*_WINDOWS, "x-gzip", "compress", "x-compress", "br", "zstd"})


class Body:
    """The body of one response. A packed or incomplete body must never be taken for an answer.

    Args:
        encoding: the value of ``Content-Encoding``; services also name charsets there, whose bodies are plain.

    Raises:
        HttpError: the encoding is not one that agenteval asks for.
    """

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in _WINDOWS and not _PACKED.isdisjoint(part.strip() for part in name.split(",")):
            raise HttpError(
                f"sent a body with `Content-Encoding: {shortened(name, _SHOWN)}`, which is not supported; "
                "it must send identity, gzip or deflate, as `Accept-Encoding` asks",
                is_transient=False,
            )
        self._encoding = name if name in _WINDOWS else ""
        self._member: zlib._Decompress | None = None
        self._content = bytearray()

    def add(self, piece: bytes) -> None:
        """Take the next piece as received.

        Raises:
            HttpError: it cannot be unpacked, or the content is too large.
        """
        if not self._encoding:
            self._extend(piece)
        while self._encoding and piece:
            piece = self._unpack(piece)

    def complete(self) -> bytes:
        """Return the content.

        Raises:
            HttpError: the packed body is incomplete.
        """
        if self._member is not None:
            raise HttpError(f"broke off: its {self._encoding} body is incomplete", is_transient=True)
        return bytes(self._content)

    def _unpack(self, piece: bytes) -> bytes:
        """Unpack as far as one member reaches (a gzip body may have several), and return the rest."""
        member = self._member or zlib.decompressobj(self._window(piece[0]))
        try:
            unpacked = member.decompress(piece, MAX_BYTES + 1 - len(self._content))
        except zlib.error as error:
            raise HttpError(
                f"sent a {self._encoding} body that cannot be unpacked: {error}", is_transient=False
            ) from None
        self._extend(unpacked)
        self._member = None if member.eof else member
        return member.unused_data

    def _window(self, first: int) -> int:
        has_no_header = self._encoding == "deflate" and first & 0xF != _ZLIB_METHOD
        return _RAW if has_no_header else _WINDOWS[self._encoding]

    def _extend(self, content: bytes) -> None:
        self._content += content
        if len(self._content) > MAX_BYTES:
            raise too_large()


def too_large() -> HttpError:
    """Return the error of a response that is too large."""
    return HttpError(f"answered more than {MAX_BYTES // 2**20} MiB", is_transient=False)


# Limits of a response's head: the status line or one header line in bytes, and the number of header lines.
_MAX_LINE_BYTES = 100 * 1024
_MAX_HEADERS = 1000
# Limit of everything received before the final head is read: interim responses, the head, and the first of the body.
_MAX_HEAD_BYTES = 2**20
# Limit of everything received for one response.
_MAX_RECEIVED_BYTES = MAX_BYTES + 2**20
# If a reused connection ends within this time, in seconds, the service had probably closed it before the request.
_STALE_S = 0.1
# As asyncio tells of a refused connection.
_REFUSED = re.compile(r"^\[Errno (?:61|111|10061)\] Connect call failed \('(?P<host>[^']+)', (?P<port>\d+)")


class HttpClient:
    """Sends requests to one server over kept connections, without redirects, cookies or time limits.

    Raises:
        OSError: the certificate authorities that the environment names cannot be read.
    """

    def __init__(self, service: Address, proxy: Address | None, headers: Mapping[str, str]) -> None:
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

    async def send(self, method: str, url: URL, body: bytes | None) -> HttpResponse:
        """Send a request once, or twice if the service had just closed the kept connection.

        Args:
            body: JSON, or ``None``.

        Raises:
            HttpError: the service cannot be reached, closes the connection early, or sends more than ``MAX_BYTES``.
        """
        progress = _Progress()
        started_s = time.monotonic()
        try:
            return await self._exchange(self._keeping, method, url, body, progress)
        except _UnansweredError:
            if not progress.is_reused or time.monotonic() - started_s > _STALE_S:
                raise
        return await self._exchange(self._single_use, method, url, body, _Progress())

    async def close(self) -> None:
        """Close the connections."""
        await self._keeping.close()
        await self._single_use.close()

    async def _exchange(
        self, session: aiohttp.ClientSession, method: str, url: URL, body: bytes | None, progress: _Progress
    ) -> HttpResponse:
        try:
            response = await session.request(
                method,
                url,
                data=None if body is None else BytesIO(body),
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
                failure = self._unreachable(_reason(error))
                raise HttpError(f"{failure}{localhost_hint(str(url))}", is_transient=True) from None
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
        return HttpError(shortened(f"cannot be reached{through}: {reason}", _SHOWN), is_transient=is_transient)


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


@dataclass
class _Progress:
    is_connected: bool = False
    is_reused: bool = False


class _Guard(asyncio.Protocol):
    """Adds limits to aiohttp: for interim responses, and for data outside of bodies such as chunk extensions.

    It stands between a connection and aiohttp's protocol.

    Attributes:
        failure: the limit that was exceeded, if any; then the connection is closed.
    """

    def __init__(self, transport: asyncio.Transport, protocol: _AiohttpProtocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self.expect_response()

    def expect_response(self) -> None:
        """Reset the count for a new response."""
        self.failure: HttpError | None = None
        self._received = 0
        self._has_begun = False

    def expect_body(self) -> None:
        """Apply the limit of a whole response: its head has been read."""
        self._has_begun = True

    def data_received(self, data: bytes) -> None:
        """Check the size, and let aiohttp parse the data."""
        self._received += len(data)
        if self._received > _MAX_RECEIVED_BYTES:
            self._fail(too_large())
        elif self._received > _MAX_HEAD_BYTES and not self._has_begun:
            self._fail(_broken_off("it sends headers or interim responses without end"))
        else:
            self._protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Call aiohttp's protocol."""
        self._protocol.connection_lost(exc)

    def eof_received(self) -> None:
        """Call aiohttp's protocol."""
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Call aiohttp's protocol."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Call aiohttp's protocol."""
        self._protocol.resume_writing()

    def _fail(self, error: HttpError) -> None:
        self.failure = error
        self._protocol.set_exception(error)
        self._transport.abort()


class _Connector(aiohttp.TCPConnector):
    """Creates connections with ``_Guard``, and does not reuse one on which unrequested data has arrived."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as in aiohttp
    ) -> Connection:
        """Return a new or a kept connection."""
        connection = await super().connect(req, traces, timeout)
        transport, protocol = connection.transport, connection.protocol
        if transport is None or protocol is None:
            return connection
        guard = transport.get_protocol()
        if not isinstance(guard, _Guard):
            transport.set_protocol(_Guard(transport, protocol))
        elif protocol.should_close:
            connection.close()
            raise aiohttp.ServerDisconnectedError
        else:
            guard.expect_response()
        return connection


class _Resolver(AbstractResolver):
    """Resolves host names in a daemon thread, which does not keep the program alive."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        # For bytes, Python does not load its tables of international domain names.
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
        """Do nothing: a look-up has no resources."""


def _session(trusted: ssl.SSLContext | None, *, force_close: bool) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(_connected)
    trace.on_connection_reuseconn.append(_reused)
    return aiohttp.ClientSession(
        connector=_Connector(limit=0, ssl=trusted or True, resolver=_Resolver(), force_close=force_close),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(),
        max_line_size=_MAX_LINE_BYTES,
        max_field_size=_MAX_LINE_BYTES,
        max_headers=_MAX_HEADERS,
        trace_configs=[trace],
    )


async def _connected(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.is_connected = True


async def _reused(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.is_connected = context.trace_request_ctx.is_reused = True


def _is_closing(headers: Mapping[str, str]) -> bool:
    """Return whether a ``Connection`` header requests a new connection per request."""
    values = ",".join(value for name, value in headers.items() if name.lower() == "connection")
    return "close" in (value.strip() for value in values.lower().split(","))


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Read and decompress a body.

    Raises:
        HttpError: the body breaks off, is too large, or has an encoding that was not asked for.
    """
    # Without a connection, all of the response has arrived.
    transport = response.connection.transport if response.connection else None
    guard = transport.get_protocol() if transport else None
    if isinstance(guard, _Guard):
        guard.expect_body()
    body = Body(", ".join(response.headers.getall("Content-Encoding", ())))
    try:
        async for piece in response.content.iter_any():
            body.add(piece)
    except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
        failure = guard.failure if isinstance(guard, _Guard) else None
        raise failure or _broken_off(_reason(error)) from None
    return body.complete()


def _broken_off(reason: str) -> HttpError:
    return HttpError(f"broke off: {reason}", is_transient=True)


def _unanswered(error: Exception) -> str:
    said = f": {_reason(error)}" if isinstance(error, OSError) else ""
    return f"broke off: it closed the connection without an answer{said}"


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    elif isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    refused = _REFUSED.search(str(error))
    if refused is not None:
        return f"nothing listens on {refused['host']}:{refused['port']}"
    text = error.message if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError) else str(error)
    # It may quote the service, and aiohttp decodes bytes that are not UTF-8 to lone surrogates.
    return shortened(text, _SHOWN)


def _headers(raw: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    """Return headers by lower-case name; the values of one name are joined with ``, ``."""
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
