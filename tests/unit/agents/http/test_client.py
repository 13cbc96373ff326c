"""Any data from a service leads to a response or to one kind of error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tcp_server import tcp_server

from agenteval.agents.http_client import HttpClient
from agenteval.agents.http_response import HttpError, HttpResponse, read_address

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


def outcome(pieces: Sequence[bytes]) -> HttpResponse | HttpError:
    """The outcome of one POST to a service that sends these pieces and closes the connection."""

    async def run() -> HttpResponse | HttpError:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()

        async with tcp_server(answer) as port:
            address = read_address(f"http://127.0.0.1:{port}/")
            client = HttpClient(address, None, {})
            try:
                async with asyncio.timeout(60):
                    return await client.send("POST", address.url, b"{}")
            except HttpError as error:
                return error
            finally:
                await client.close()

    return asyncio.run(run())


def unpacked(content: bytes, encoding: str) -> HttpResponse | HttpError:
    """The outcome of a response whose body has a content encoding."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(content)}\r\n\r\n"
    return outcome([head.encode() + content])


@given(st.lists(st.one_of(PARTS, st.binary(max_size=20)), max_size=12))
def test_a_post_ends_with_a_response_or_an_error(pieces: list[bytes]) -> None:
    found = outcome(pieces)
    if isinstance(found, HttpError):
        assert "\n" not in str(found)
        assert len(str(found)) < 400
    else:
        assert 200 <= found.status <= 999


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(1, 40), st.booleans())
def test_it_does_not_matter_in_which_pieces_a_response_comes(content: bytes, size: int, chunked: bool) -> None:
    if chunked:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (content[:7], content[7:]) if part)
        sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    else:
        sent = b"HTTP/1.1 200 OK\r\nX: a\r\nX: b\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)
    found = outcome([sent[start : start + size] for start in range(0, len(sent), size)])
    assert isinstance(found, HttpResponse)
    assert (found.status, found.reason, found.content) == (200, "OK", content)
    assert found.headers.get("x") == (None if chunked else "a, b")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip", "gzip, identity", "br", "zstd", "BR", "compress"])
def test_a_body_in_another_encoding_is_refused(encoding: str) -> None:
    found = unpacked(b"42", encoding)
    assert isinstance(found, HttpError)
    assert str(found) == (
        f"sent a body with `Content-Encoding: {encoding.lower()}`, which is not supported; "
        "it must send identity, as `Accept-Encoding` asks"
    )
    assert not found.is_transient


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 10", b"half"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        (b"Transfer-Encoding: chunked", b"5\r\nhel"),
        (b"Content-Type: application/jsonl\r\nContent-Length: 20", b'{"a": 1}\n{"a": '),
    ],
    ids=["length", "chunks", "chunk", "json-lines"],
)
def test_a_body_that_is_cut_off_is_an_error(head: bytes, body: bytes) -> None:
    found = outcome([b"HTTP/1.1 200 OK\r\n", head, b"\r\n\r\n", body])
    assert isinstance(found, HttpError), found
    assert str(found).startswith("broke off: ")
    assert found.is_transient


@pytest.mark.parametrize("encoding", ["", "identity", "utf-8", "unknown"])
def test_a_body_in_an_unknown_encoding_is_left_alone(encoding: str) -> None:
    found = unpacked(b"as it is", encoding)
    assert isinstance(found, HttpResponse)
    assert found.content == b"as it is"
