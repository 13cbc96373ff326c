"""Whatever a service sends, an exchange ends with a response or with one kind of error."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents.http.connection import Connection
from agenteval.agents.http.response import HttpError, HttpResponse

PARTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.0 204\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 0\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"\n",
        b"5\r\nhello\r\n",
        b"0\r\n",
        b"hello",
    ]
)


class Sink(asyncio.Transport):
    """A transport whose other end takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Nobody reads it."""

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0


async def outcome(pieces: list[bytes]) -> tuple[HttpResponse | HttpError, Connection]:
    """What one exchange comes to if these pieces come, and then the end."""
    connection = Connection()
    connection.connection_made(Sink())
    asking = asyncio.create_task(connection.exchange("POST", "/", [("Host", "agent")]))
    await asyncio.sleep(0)
    for piece in pieces:
        if connection.is_open and not asking.done():
            connection.data_received(piece)
            await asyncio.sleep(0)
    if not asking.done():
        connection.eof_received()
        connection.connection_lost(None)
    try:
        async with asyncio.timeout(20):
            response = await asking
    except HttpError as error:
        assert not connection.is_open
        return error, connection
    return response, connection


@given(st.lists(st.one_of(PARTS, st.binary(max_size=20)), max_size=12))
def test_an_exchange_ends_with_a_response_or_an_error(pieces: list[bytes]) -> None:
    found, _ = asyncio.run(outcome(pieces))
    assert isinstance(found, HttpError) or 200 <= found.status <= 999


@given(st.binary(min_size=1, max_size=300), st.integers(1, 40), st.booleans())
def test_it_does_not_matter_in_which_pieces_a_response_comes(content: bytes, size: int, chunked: bool) -> None:
    if chunked:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (content[:7], content[7:]) if part)
        sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    else:
        sent = b"HTTP/1.1 200 OK\r\nX: a\r\nX: b\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    found, connection = asyncio.run(outcome(pieces))
    assert isinstance(found, HttpResponse)
    assert (found.status, found.reason, found.content) == (200, "OK", content)
    assert found.headers.get("x") == (None if chunked else "a, b")
    assert connection.is_open
