"""Any data from a service leads to a response or to one kind of error."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tcp_server import tcp_server

from agenteval.agents.http_client import HttpClient
from agenteval.agents.http_response import MAX_BYTES, HttpError, HttpResponse, read_address

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


def deflated(content: bytes, bits: int = zlib.MAX_WBITS) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(content) + packer.flush()


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


@settings(max_examples=20, deadline=None)
@given(st.binary())
def test_a_packed_body_is_unpacked(content: bytes) -> None:
    for packed, encoding in (
        (gzip.compress(content), "gzip"),
        (deflated(content), "deflate"),
        (deflated(content, -zlib.MAX_WBITS), "Deflate"),
    ):
        found = unpacked(packed, encoding)
        assert isinstance(found, HttpResponse), found
        assert found.content == content


@pytest.mark.parametrize("encoding", ["x-gzip", "gzip, gzip", "gzip, identity", "br", "zstd", "BR", "compress"])
def test_a_body_in_another_encoding_is_refused(encoding: str) -> None:
    found = unpacked(gzip.compress(b"42"), encoding)
    assert isinstance(found, HttpError)
    assert str(found) == (
        f"sent a body with `Content-Encoding: {encoding.lower()}`, which is not supported; "
        "it must send identity, gzip or deflate, as `Accept-Encoding` asks"
    )
    assert not found.is_transient


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=200), st.data())
def test_a_packed_body_that_is_cut_off_is_an_error(content: bytes, data: st.DataObject) -> None:
    for packed, encoding in (
        (gzip.compress(content), "gzip"),
        (gzip.compress(b"first") + gzip.compress(content), "gzip"),
        (deflated(content), "deflate"),
        (deflated(content, -zlib.MAX_WBITS), "deflate"),
    ):
        end = data.draw(st.integers(1, len(packed) - 1))
        found = unpacked(packed[:end], encoding)
        if isinstance(found, HttpResponse):
            assert packed[:end] == gzip.compress(b"first")
        else:
            assert str(found) == f"broke off: its {encoding} body is incomplete"
            assert found.is_transient


PACKED = gzip.compress(b"an answer that is long enough", mtime=0)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 10", b"half"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        (b"Transfer-Encoding: chunked", b"5\r\nhel"),
        (b"Content-Type: application/jsonl\r\nContent-Length: 20", b'{"a": 1}\n{"a": '),
        (b"Content-Encoding: gzip\r\nContent-Length: %d" % len(PACKED), PACKED[:-4]),
        (b"Content-Encoding: gzip", PACKED[:-4]),
        (b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked", b"4\r\n%s\r\n0\r\n\r\n" % PACKED[:4]),
    ],
    ids=["length", "chunks", "chunk", "json-lines", "gzip-length", "gzip-endless", "gzip-chunked"],
)
def test_a_body_that_is_cut_off_is_an_error(head: bytes, body: bytes) -> None:
    found = outcome([b"HTTP/1.1 200 OK\r\n", head, b"\r\n\r\n", body])
    assert isinstance(found, HttpError), found
    assert str(found).startswith("broke off: ")
    assert found.is_transient


def test_an_empty_body_needs_no_unpacking() -> None:
    found = unpacked(b"", "gzip")
    assert isinstance(found, HttpResponse)
    assert found.content == b""


@pytest.mark.parametrize("encoding", ["", "identity", "utf-8", "unknown"])
def test_a_body_in_an_unknown_encoding_is_left_alone(encoding: str) -> None:
    found = unpacked(b"as it is", encoding)
    assert isinstance(found, HttpResponse)
    assert found.content == b"as it is"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_cannot_be_unpacked_is_an_error(encoding: str) -> None:
    found = unpacked(b"\xffplain text", encoding)
    assert isinstance(found, HttpError)
    assert str(found).startswith(f"sent a {encoding} body that cannot be unpacked: Error -3")
    assert not found.is_transient


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, "gzip"), (deflated, "deflate")])
def test_a_body_that_grows_beyond_the_limit_is_refused(pack: object, encoding: str) -> None:
    assert callable(pack)
    bomb = pack(bytes(MAX_BYTES + 1))
    assert len(bomb) < 100_000
    found = unpacked(bomb, encoding)
    assert isinstance(found, HttpError)
    assert "answered more than 50 MiB" in str(found)
    assert not found.is_transient


# Unpacks as many bytes as a reply may have.
@pytest.mark.long
@pytest.mark.slow
def test_the_largest_body_is_taken() -> None:
    found = unpacked(gzip.compress(bytes(MAX_BYTES), 1), "gzip")
    assert isinstance(found, HttpResponse)
    assert len(found.content) == MAX_BYTES
