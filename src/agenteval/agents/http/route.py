"""The way to an HTTP service: names, sockets, proxies and TLS."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from agenteval.agents.http.address import Address
from agenteval.agents.http.connection import Connection
from agenteval.agents.http.response import PASSING, HttpError
from agenteval.core.runtime import in_thread

# As socket.getaddrinfo tells them: family, type, protocol, canonical name, address.
Place: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]
Places: TypeAlias = Sequence[Place]

# What a first address of a name gets ahead of the next one (RFC 8305, "Connection Attempt Delay").
_AHEAD_S = 0.25


class Route:
    """Makes connections to a service.

    Args:
        service: where it is.
        proxy: what stands between here and there.

    Raises:
        OSError: the certificates that the environment names cannot be read.
    """

    def __init__(self, service: Address, proxy: Address | None) -> None:
        self._service = service
        self._proxy = proxy
        self._first = proxy or service
        is_secure = service.is_secure or self._first.is_secure
        # Reading the authorities takes long; all connections share them.
        self._trusted = trusted_authorities() if is_secure else None
        self._look_up: asyncio.Task[Places] | None = None

    @property
    def target(self) -> str:
        """What a request names: a proxy that only passes it on needs all of the address."""
        return f"{self._service.origin}{self._service.path}" if self._is_passed_on else self._service.path

    @property
    def headers(self) -> dict[str, str]:
        """What each request says on this way."""
        return _proxy_headers(self._proxy) if self._proxy and self._is_passed_on else {}

    @property
    def _is_passed_on(self) -> bool:
        return self._proxy is not None and not self._service.is_secure

    async def connect(self) -> Connection:
        """A new connection.

        Raises:
            HttpError: there is no way.
        """
        through = f" through the proxy {self._proxy.origin}" if self._proxy else ""
        try:
            connection = await self._connected()
            if self._proxy and self._service.is_secure:
                await self._tunnel(connection, self._proxy)
        except (OSError, UnicodeError) as error:
            raise HttpError(f"cannot be reached{through}: {error}", passing=True) from None
        return connection

    async def _connected(self) -> Connection:
        reached = await _first_reached(await self._places())
        _, connection = await asyncio.get_running_loop().create_connection(
            Connection,
            sock=reached,
            ssl=self._trusted if self._first.is_secure else None,
            server_hostname=self._first.host if self._first.is_secure else None,
        )
        return connection

    async def _tunnel(self, connection: Connection, proxy: Address) -> None:
        """Have a proxy open the way to the service (RFC 9110, 9.3.6)."""
        there = self._service.host_and_port
        headers = {"Host": there, **_proxy_headers(proxy)}
        try:
            response = await connection.exchange("CONNECT", there, list(headers.items()))
        except HttpError as error:
            raise HttpError(f"cannot be reached: the proxy {proxy.origin} {error}", passing=error.passing) from None
        if not response.is_success:
            connection.abort()
            text = f"cannot be reached: the proxy {proxy.origin} answered {response.status} {response.reason}"
            raise HttpError(text, passing=response.status in PASSING)
        assert self._trusted is not None, "tunnels lead to services that are spoken to over TLS"  # noqa: S101
        await connection.secure(self._trusted, self._service.host)

    async def _places(self) -> Places:
        """Where the next host is; connections that are made at the same time share one look-up."""
        # As bytes: texts make Python load what it has for names beyond ASCII, which the host is not.
        host = self._first.host.encode("ascii")
        look_up = partial(socket.getaddrinfo, host, self._first.port, type=socket.SOCK_STREAM)
        try:
            return look_up(flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            pass
        if self._look_up is None:
            self._look_up = asyncio.create_task(in_thread(look_up))
            self._look_up.add_done_callback(self._forget)
        # Who is given up does not take it from the others.
        return await asyncio.shield(self._look_up)

    def _forget(self, look_up: asyncio.Task[Places]) -> None:
        self._look_up = None
        if not look_up.cancelled():
            # Not left to the loop, which complains where nobody waits any more.
            look_up.exception()


def trusted_authorities() -> ssl.SSLContext:
    """Whom certificates may be from: ``SSL_CERT_FILE``, else ``SSL_CERT_DIR``, else Mozilla's list.

    Raises:
        OSError: a file cannot be read.
    """
    if file := os.environ.get("SSL_CERT_FILE"):
        try:
            trusted = ssl.create_default_context(cafile=file)
        except OSError as error:
            raise OSError(f"SSL_CERT_FILE {file}: {error}") from None
    elif directory := os.environ.get("SSL_CERT_DIR"):
        trusted = ssl.create_default_context(capath=directory)
    else:
        import certifi

        trusted = ssl.create_default_context(cafile=certifi.where())
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def _proxy_headers(proxy: Address) -> dict[str, str]:
    return {"Proxy-Authorization": proxy.credentials} if proxy.credentials else {}


async def _first_reached(places: Places) -> socket.socket:
    """A socket that is connected to one of several places, where the later ones start later (RFC 8305).

    Raises:
        OSError: none can be reached; the last failure.
    """
    if len(places) == 1:
        return await _reached(places[0])
    failure = OSError("its name leads nowhere")
    waiting = list(places)
    attempts: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.create_task(_reached(waiting.pop(0))))
            done, _ = await asyncio.wait(
                attempts, timeout=_AHEAD_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in done:
                attempts.remove(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
                if not isinstance(error, OSError):
                    raise error
                failure = error
        raise failure
    finally:
        for attempt in attempts:
            attempt.add_done_callback(_close)
            attempt.cancel()


async def _reached(place: Place) -> socket.socket:
    family, kind, protocol, _, address = place
    reached = socket.socket(family, kind, protocol)
    try:
        reached.setblocking(False)
        await asyncio.get_running_loop().sock_connect(reached, address)
    except BaseException:
        reached.close()
        raise
    return reached


def _close(attempt: asyncio.Task[socket.socket]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
