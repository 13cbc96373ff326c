"""HTTP client of agents and tools: aiohttp with size limits and one kind of error."""

from __future__ import annotations

import os
import re
import socket
import ssl
import time
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
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace
    from yarl import URL


_SHOWN = 300
# The names of packed encodings; services also name charsets in the header.
_PACKED = frozenset({"gzip", "deflate", "x-gzip", "compress", "x-compress", "br", "zstd"})
# Limits of a response's head: the status line or one header line in bytes, and the number of header lines.
_MAX_LINE_BYTES = 100 * 1024
_MAX_HEADERS = 1000
# If a reused connection ends within this time, in seconds, the service had probably closed it before the request.
_STALE_S = 0.1
# As asyncio tells of a refused connection.
_REFUSED = re.compile(r"^\[Errno (?:61|111|10061)\] Connect call failed \('(?P<host>[^']+)', (?P<port>\d+)")


class HttpClient:
    """Sends requests to one server over kept connections, without redirects, cookies or time limits."""

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
    """Return a TLS context that trusts ``SSL_CERT_FILE``, else ``SSL_CERT_DIR``, else Mozilla's list."""
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


class _Connector(aiohttp.TCPConnector):
    """Does not reuse a connection on which unrequested data has arrived: it would be taken for the next answer."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as in aiohttp
    ) -> Connection:
        """Return a new or a kept connection."""
        connection = await super().connect(req, traces, timeout)
        if connection.protocol is not None and connection.protocol.should_close:
            connection.close()
            raise aiohttp.ServerDisconnectedError
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
    values = ",".join(value for name, value in headers.items() if name.lower() == "connection")
    return "close" in (value.strip() for value in values.lower().split(","))


async def _content(response: aiohttp.ClientResponse) -> bytes:
    encoding = ", ".join(response.headers.getall("Content-Encoding", ())).strip().lower()
    if not _PACKED.isdisjoint(part.strip() for part in encoding.split(",")):
        raise HttpError(
            f"sent a body with `Content-Encoding: {shortened(encoding, _SHOWN)}`, which is not supported; "
            "it must send identity, as `Accept-Encoding` asks",
            is_transient=False,
        )
    content = bytearray()
    try:
        async for piece in response.content.iter_any():
            content += piece
            if len(content) > MAX_BYTES:
                raise HttpError(f"answered more than {MAX_BYTES // 2**20} MiB", is_transient=False)
    except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
        raise _broken_off(_reason(error)) from None
    return bytes(content)


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
