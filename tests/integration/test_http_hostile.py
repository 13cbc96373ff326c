"""HTTP agents whose services send what nobody should: each is told in one line, and none keeps a run."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import agent_spec, request, started
from tests.tcp_server import tcp_server

from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError, TransientAgentError

OK = b"HTTP/1.1 200 OK\r\n"
MIB = 2**20


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def sending(pieces: Iterable[bytes], *, hang: bool = False) -> AsyncIterator[str]:
    """The address of a service that sends these bytes to everybody, and then hangs up or hangs."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if not hang:
            writer.write_eof()
        # Until the client hangs up.
        await reader.read()

    async with tcp_server(connected) as port:
        yield f"http://127.0.0.1:{port}/"


def answer(directory: Path, pieces: Iterable[bytes]) -> str:
    """The response that comes of these bytes."""

    async def run() -> Reply:
        async with (
            asyncio.timeout(20),
            sending(pieces) as url,
            started(agent_spec("http", url, directory)) as agent,
        ):
            return await agent.session().send(request())

    return asyncio.run(run()).response


def failure(directory: Path, pieces: Iterable[bytes]) -> AgentError:
    """What is said of these bytes."""
    with pytest.raises(AgentError) as caught:
        answer(directory, pieces)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\xfe garbage",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"<html>no head at all</html>\n\n",
        OK,
        OK + b"Content-Length: 10\r\n\r\nhalf",
        OK + b"Content-Length: -1\r\n\r\nbody",
        OK + b"Content-Length: +5\r\n\r\nbody",
        OK + b"Content-Length: five\r\n\r\nbody",
        OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nbody",
        OK + b"Content-Length: 5, 5\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhal",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100 + b"\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello, too long\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"X-Name : space\r\n\r\n",
        OK + b"X-Zero: \x00\r\n\r\n",
        OK + b"X" * 200_000,
        OK + b"X-Long: " + b"x" * 200_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
@pytest.mark.parametrize("byte_by_byte", [False, True], ids=["at-once", "in-pieces"])
def test_what_is_no_response_is_told_and_transient(tmp_path: Path, sent: bytes, byte_by_byte: bool) -> None:
    size = max(1, len(sent) // 20) if byte_by_byte else len(sent)
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    found = failure(tmp_path, pieces)
    assert isinstance(found, TransientAgentError)
    assert " broke off: " in str(found)


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;name=value\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n",
        OK + b"X-Name: " + b"x" * 60_000 + b"\r\nContent-Length: 5\r\n\r\nhello",
        OK + b"".join(b"X-%d: x\r\n" % number for number in range(500)) + b"Content-Length: 5\r\n\r\nhello",
        OK + b"X-Name: a\r\n  b\r\nContent-Length: 5\r\n\r\nhello",
        OK + "X-Name: Grüße\r\nContent-Length: 5\r\n\r\nhello".encode(),
    ],
)
def test_what_is_only_unusual_is_read(tmp_path: Path, sent: bytes) -> None:
    assert answer(tmp_path, [sent]) == "hello"


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://me:s3cret@elsewhere.example/login?token=s3cret#s3cret", "https://elsewhere.example/login"),
        ("//me:s3cret@elsewhere.example/", "//elsewhere.example/"),
        ("/login?next=s3cret", "/login"),
        ("/a\x1b[31mb\tc", "/ab c"),
        ("?s3cret", ""),
    ],
)
def test_the_target_of_a_redirect_is_shown_without_secrets(tmp_path: Path, location: str, shown: str) -> None:
    sent = f"HTTP/1.1 307 \x1b[1mMoved\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\nbody".encode()
    found = failure(tmp_path, [sent])
    text = str(found)
    assert "s3cret" not in text
    assert text.endswith(f"answered 307 Moved: {shown}")
    assert text.isprintable()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_header_may_hold_more_than_ascii(tmp_path: Path, encoding: str) -> None:
    sent = "HTTP/1.1 302 Found\r\nLocation: /Grüße\r\nContent-Length: 0\r\n\r\n".encode(encoding)
    assert "answered 302 Found: /Grüße" in str(failure(tmp_path, [sent]))


def chunked(chunk: bytes) -> Iterable[bytes]:
    return itertools.chain([OK + b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(chunk))


@pytest.mark.parametrize(
    "pieces",
    [
        itertools.chain([OK + b"\r\n"], itertools.repeat(b"x" * MIB)),
        chunked(b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)),
        [OK + b"Content-Length: 99999999999\r\n\r\n", *itertools.repeat(b"x" * MIB, 52)],
    ],
    ids=["body", "chunks", "length"],
)
def test_a_body_without_end_is_refused(tmp_path: Path, pieces: Iterable[bytes]) -> None:
    found = failure(tmp_path, pieces)
    assert "answered more than 50 MiB" in str(found)
    assert not isinstance(found, TransientAgentError)


@pytest.mark.parametrize(
    "pieces",
    [
        itertools.chain([OK], itertools.repeat(b"X-Name: value\r\n" * 1000)),
        itertools.chain([OK], itertools.repeat(b"x" * MIB)),
        itertools.chain(
            [OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"], itertools.repeat(b"X-Name: value\r\n" * 1000)
        ),
    ],
    ids=["headers", "one-header", "trailers"],
)
def test_a_head_without_end_is_refused(tmp_path: Path, pieces: Iterable[bytes]) -> None:
    assert " broke off: " in str(failure(tmp_path, pieces))


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [b"HTTP/1.1 200"],
        [OK + b"Content-Length: 10\r\n\r\nhalf"],
        [OK + b"\r\nhalf"],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"],
        [b"HTTP/1.1 100 Continue\r\n\r\n"],
        itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        chunked(b"1;" + b"x" * MIB),
    ],
    ids=["nothing", "status", "body", "endless", "chunks", "interim", "interims", "extension"],
)
def test_a_service_that_hangs_can_be_given_up(tmp_path: Path, sent: Iterable[bytes]) -> None:
    async def run() -> Any:
        async with sending(sent, hang=True) as url, started(agent_spec("http", url, tmp_path)) as agent:
            asking = asyncio.create_task(agent.session().send(request()))
            await asyncio.sleep(0.02)
            assert not asking.done()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(run())
