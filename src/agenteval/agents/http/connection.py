"""One connection to an HTTP service: requests go over it one after the other."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence

import h11

from agenteval.agents.http.response import MAX_BYTES, HttpError, HttpResponse, too_long, unpacked

# As long as the head of a response may be, and a line between the chunks of its body.
_LONGEST_HEAD = 100 * 1024
# Before a response others may say that it will come (RFC 9110, 15.2).
_MOST_INTERIM = 1000
_SHOWN = 300


class UnansweredError(HttpError):
    """The connection was closed before anything of an answer came."""

    def __init__(self, why: BaseException | None) -> None:
        said = f": {why}" if why else ""
        super().__init__(f"broke off: it closed the connection without an answer{said}", passing=True)


class Connection(asyncio.Protocol):
    """A connection, made by the event loop. Whoever gives up an exchange closes it.

    A response holds 50 MiB at most, as it is sent and as it is unpacked, of which its head may be 100 KiB.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._wire = _wire()
        # Of the exchange under way:
        self._answer: asyncio.Future[tuple[h11.Response, bytes]] | None = None
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._received = self._interim = 0

    async def exchange(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes = b""
    ) -> HttpResponse:
        """Send a request, and wait for the whole of its response.

        Raises:
            UnansweredError: nothing of an answer came.
            HttpError: the response breaks off, is too long or is none.
        """
        request = h11.Request(method=method, target=target, headers=list(headers))
        sent = (self._wire.send(request), body and self._wire.send(h11.Data(data=body)), self._wire.send(_END))
        self._head, self._body = None, bytearray()
        self._received = self._interim = 0
        self._answer = asyncio.get_running_loop().create_future()
        try:
            if not self.is_open or self._transport is None:
                raise UnansweredError(None)
            self._transport.write(b"".join(part or b"" for part in sent))
            head, content = await self._answer
            named = _headers(head)
            content = unpacked(content, named.get("content-encoding", ""))
            return HttpResponse(head.status_code, head.reason.decode("ascii", "ignore"), named, content)
        except BaseException:
            self.abort()
            raise
        finally:
            self._answer = None

    async def secure(self, trusted: ssl.SSLContext, host: str) -> None:
        """Go on over TLS, through the tunnel that a proxy has opened.

        Raises:
            OSError: there is no trust, or no TLS at the other end.
        """
        if self._transport is None:
            raise ConnectionResetError("the proxy closed the connection")
        loop = asyncio.get_running_loop()
        try:
            self._transport = await loop.start_tls(self._transport, self, trusted, server_hostname=host)
        except BaseException:
            self.abort()
            raise
        if self._transport is None:
            raise ConnectionResetError("the proxy closed the connection")
        self._wire = _wire()

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent over it, as far as is known."""
        return self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        """Close it at once; its socket is closed as soon as the event loop goes on."""
        if self._transport is not None:
            self._transport.abort()

    # What the event loop says:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A piece of a response has come."""
        if self._answer is None or self._answer.done():
            # Nobody asked.
            self.abort()
            return
        self._received += len(data)
        if self._received > MAX_BYTES + _LONGEST_HEAD:
            self._fail(too_long())
        else:
            self._wire.receive_data(data)
            self._read()

    def eof_received(self) -> None:
        """The service sends no more."""
        self._ended(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._transport = None
        self._ended(exc)

    def _ended(self, error: Exception | None) -> None:
        if self._answer is None or self._answer.done():
            return
        if not self._received:
            self._fail(UnansweredError(error))
        elif error is not None:
            self._fail(_broke_off(error))
        else:
            # The end of the connection may be the end of the body.
            self._wire.receive_data(b"")
            self._read()

    def _read(self) -> None:
        """Take what has come, event by event, up to the end of the response."""
        try:
            while (event := self._wire.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    self._body += event.data
                elif isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.InformationalResponse):
                    self._interim += 1
                    if self._interim > _MOST_INTERIM:
                        return self._fail(_broke_off("it announces an answer again and again"))
                else:
                    return self._finish()
        except h11.RemoteProtocolError as error:
            self._fail(_broke_off(error))

    def _finish(self) -> None:
        if self._head is None:
            self._fail(_broke_off("it changed to another protocol"))
        elif len(self._body) > MAX_BYTES:
            self._fail(too_long())
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result((self._head, bytes(self._body)))
            self._make_ready()

    def _make_ready(self) -> None:
        """For the next request, or close it where there can be none."""
        unsent = self._transport is not None and self._transport.get_write_buffer_size()
        if self._wire.their_state is h11.SWITCHED_PROTOCOL:
            return
        if (
            self._wire.our_state is self._wire.their_state is h11.DONE
            and not self._wire.trailing_data[0]
            and not unsent
        ):
            self._wire.start_next_cycle()
        else:
            self.abort()

    def _fail(self, error: HttpError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.abort()


_END = h11.EndOfMessage()


def _wire() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)


def _broke_off(why: object) -> HttpError:
    return HttpError(f"broke off: {why}"[:_SHOWN], passing=True)


def _headers(head: h11.Response) -> dict[str, str]:
    named: dict[str, str] = {}
    for key, value in head.headers:
        name, text = key.decode("ascii"), _text(value)
        named[name] = f"{named[name]}, {text}" if name in named else text
    return named


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
