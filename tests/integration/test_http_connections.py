"""Connections of HTTP agents: kept, lost, given up, through proxies, over TLS."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.integration.certificates import localhost
from tests.support import agent_spec, request, started
from tests.tcp_server import Handler, tcp_server

from agenteval.agents.base import Agent, Reply
from agenteval.core.errors import AgentError, ConfigError, TransientAgentError

CREDENTIALS = "Basic " + base64.b64encode(b"me:secret").decode()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@dataclass
class Served:
    """A server in the loop of the test, and the heads of the requests that reached it."""

    port: int = 0
    connections: int = 0
    open_now: int = 0
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def read(self, reader: asyncio.StreamReader) -> bytes:
        """The body of the next request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        return await reader.readexactly(int(lengths[0].partition(":")[2])) if lengths else b""

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request with its input."""
        while True:
            writer.write(answer(json.loads(await self.read(reader))["input"]))


def answer(text: str, *headers: str) -> bytes:
    """A response with a text."""
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/plain", f"Content-Length: {len(text.encode())}", *headers]
    return ("\r\n".join(lines) + f"\r\n\r\n{text}").encode()


@asynccontextmanager
async def serving(
    handle: Callable[[Served], Handler] = lambda served: served.echo, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """A server whose handler has every connection for itself."""
    served = Served()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        served.open_now += 1
        try:
            await handle(served)(reader, writer)
        finally:
            served.open_now -= 1

    async with tcp_server(connected, tls=tls) as served.port:
        yield served


def answering(sent: bytes) -> Callable[[Served], Handler]:
    """What a server does that answers one request of a connection, whatever it is."""

    def handled(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await served.read(reader)
            writer.write(sent)
            await writer.drain()

        return handle

    return handled


def agent_at(url: str, directory: Path, **options: Any) -> Any:
    return started(agent_spec("http", url, directory, options=options))


async def said(agent: Agent, text: str) -> str:
    reply: Reply = await agent.session().send(request(text))
    return reply.response


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - much of it is told by nobody
            await asyncio.sleep(0.005)


# Kept and lost


def test_a_connection_is_used_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving() as served:
            async with agent_at(served.url, tmp_path) as agent:
                assert [await said(agent, text) for text in "abc"] == ["a", "b", "c"]
                assert await asyncio.gather(*(said(agent, text) for text in "defg")) == ["d", "e", "f", "g"]
                assert served.connections == 4
            await until(lambda: served.open_now == 0)

    asyncio.run(run())


def test_a_service_that_always_hangs_up_is_asked_no_more_than_twice(tmp_path: Path) -> None:
    def answers_first(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            body = json.loads(await served.read(reader))
            if len(served.heads) == 1:
                writer.write(answer(body["input"]))
                await served.read(reader)

        return handle

    async def run() -> None:
        async with serving(answers_first) as served, agent_at(served.url, tmp_path) as agent:
            assert await said(agent, "a") == "a"
            with pytest.raises(TransientAgentError, match="broke off: it closed the connection without an answer"):
                await said(agent, "b")
            assert len(served.heads) == 3

    asyncio.run(run())


def test_what_nobody_asked_for_is_no_answer_to_the_next_request(tmp_path: Path) -> None:
    def too_much(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                text = json.loads(await served.read(reader))["input"]
                writer.write(answer(text) + (answer("smuggled") if text == "a" else b""))
                await writer.drain()
                if text == "b":
                    await asyncio.sleep(0.02)
                    writer.write(answer("late"))

        return handle

    async def run() -> None:
        async with serving(too_much) as served, agent_at(served.url, tmp_path) as agent:
            assert [await said(agent, text) for text in "ab"] == ["a", "b"]
            await asyncio.sleep(0.1)
            assert await said(agent, "c") == "c"
            assert served.connections == 3

    asyncio.run(run())


# Given up


def test_a_call_that_is_given_up_takes_its_connection_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        def silent(served: Served) -> Handler:
            async def handle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
                await served.read(reader)
                await reader.read()

            return handle

        async with serving(silent) as served, agent_at(served.url, tmp_path) as agent:
            asking = [asyncio.create_task(said(agent, "?")) for _ in range(5)]
            await until(lambda: len(served.heads) == 5)
            for task in asking:
                task.cancel()
            ended = await asyncio.gather(*asking, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in ended)
            await until(lambda: served.open_now == 0)

    threads = threading.active_count()
    asyncio.run(run())
    gc.collect()
    assert threading.active_count() <= threads


# Headers and credentials


def test_user_and_password_of_the_address_are_sent_and_never_shown(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            serving() as served,
            agent_at(f"http://me:secret@127.0.0.1:{served.port}/?key=hidden", tmp_path) as agent,
        ):
            await said(agent, "a")
            assert served.heads[0].startswith("POST /?key=hidden HTTP/1.1\r\n")
            assert f"\r\nAuthorization: {CREDENTIALS}\r\n" in served.heads[0]
            assert f"\r\nHost: 127.0.0.1:{served.port}\r\n" in served.heads[0]
        async with agent_at(f"http://me:secret@127.0.0.1:{served.port}/?key=hidden", tmp_path) as agent:
            with pytest.raises(AgentError, match="cannot be reached") as caught:
                await said(agent, "a")
            assert "secret" not in str(caught.value)
            assert "hidden" not in str(caught.value)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"X Name": "a"}, "the header 'X Name' has a name that HTTP does not allow"),
        ({"": "a"}, "the header '' has a name that HTTP does not allow"),
        ({"X-Name:": "a"}, "has a name that HTTP does not allow"),
        ({"Content-Length": "3"}, "the header 'Content-Length' cannot be set"),
        ({"transfer-encoding": "chunked"}, "the header 'transfer-encoding' cannot be set"),
        ({"Authorization": "Bearer to\nken"}, "the header 'Authorization' may contain printable ASCII only"),
    ],
)
def test_a_header_that_cannot_be_sent_is_told_before_anything_runs(
    tmp_path: Path, headers: dict[str, str], said: str
) -> None:
    async def run() -> None:
        async with agent_at("http://127.0.0.1/", tmp_path, headers=headers):
            """It does not get so far."""

    with pytest.raises(ConfigError) as caught:
        asyncio.run(run())
    assert said in str(caught.value)
    assert "ken" not in str(caught.value)


# Proxies


def relaying(served: Served) -> Handler:
    """A proxy: opens tunnels, and passes on what names all of its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = await served.read(reader)
        method, target, _ = served.heads[-1].split(" ", 2)
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            there, out = await asyncio.open_connection("127.0.0.1" if host == "localhost" else host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            host, _, port = target.removeprefix("http://").partition("/")[0].partition(":")
            there, out = await asyncio.open_connection(host, int(port))
            out.write(served.heads[-1].encode() + body)
        try:
            await asyncio.gather(piped(reader, out), piped(there, writer))
        finally:
            out.transport.abort()

    return handle


async def piped(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.transport.abort()


@pytest.mark.parametrize("tls_to_the_proxy", [False, True])
def test_a_proxy_opens_a_tunnel_for_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls_to_the_proxy: bool
) -> None:
    tls = trusted_server(tmp_path, monkeypatch)

    async def run() -> None:
        async with serving(tls=tls) as served, serving(relaying, tls=tls if tls_to_the_proxy else None) as proxy:
            scheme = "https" if tls_to_the_proxy else "http"
            monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://me:secret@localhost:{proxy.port}")
            async with agent_at(f"https://localhost:{served.port}/chat", tmp_path) as agent:
                assert [await said(agent, text) for text in "ab"] == ["a", "b"]
                assert (proxy.connections, served.connections) == (1, 1)
            assert proxy.heads[0].startswith(f"CONNECT localhost:{served.port} HTTP/1.1\r\n")
            assert f"\r\nProxy-Authorization: {CREDENTIALS}\r\n" in proxy.heads[0]
            assert served.heads[0].startswith("POST /chat HTTP/1.1\r\n")
            assert "Proxy-Authorization" not in served.heads[0]
            await until(lambda: proxy.open_now == 0)

    asyncio.run(run())
    gc.collect()


@pytest.mark.parametrize(
    ("sent", "said_of_it", "is_transient"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno",
            "answered 407 Proxy Auth",
            False,
        ),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "answered 503 Busy", True),
        (b"", ": it closed the connection without an answer", True),
        (b"HTTP/1.1 200 OK\r\n\r\nno TLS at all", "cannot be reached through the proxy", True),
    ],
    ids=["407", "503", "nothing", "no-tls"],
)
def test_says_that_a_proxy_opens_no_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes, said_of_it: str, is_transient: bool
) -> None:
    async def run() -> None:
        async with serving(answering(sent)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
            async with agent_at("https://agent.example/", tmp_path) as agent:
                with pytest.raises(AgentError) as caught:
                    await said(agent, "a")
            assert "the agent at https://agent.example/ cannot be reached" in str(caught.value)
            assert f"the proxy http://127.0.0.1:{proxy.port}" in str(caught.value)
            assert said_of_it in str(caught.value)
            assert "secret" not in str(caught.value)
            assert isinstance(caught.value, TransientAgentError) == is_transient

    asyncio.run(run())
    gc.collect()


# TLS


def trusted_server(directory: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of TLS for ``localhost``, whose certificate ``SSL_CERT_FILE`` names."""
    context, authority = localhost(directory)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    return context


def test_speaks_tls_and_keeps_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = trusted_server(tmp_path, monkeypatch)

    async def run() -> None:
        async with serving(tls=tls) as served:
            async with agent_at(f"https://localhost:{served.port}/", tmp_path) as agent:
                assert [await said(agent, text) for text in "abc"] == ["a", "b", "c"]
                long = "x" * 1_000_000
                assert await said(agent, long) == long
                assert served.connections == 1
            await until(lambda: served.open_now == 0)

    asyncio.run(run())
    gc.collect()


@pytest.mark.parametrize(
    ("host", "trusted", "said_of_it"),
    [
        ("localhost", False, "certificate verify failed"),
        ("127.0.0.1", True, "certificate is not valid for '127.0.0.1'"),
    ],
)
def test_trusts_nobody_without_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool, said_of_it: str
) -> None:
    tls = trusted_server(tmp_path, monkeypatch)
    if not trusted:
        monkeypatch.delenv("SSL_CERT_FILE")

    async def run() -> None:
        async with serving(tls=tls) as served, agent_at(f"https://{host}:{served.port}/", tmp_path) as agent:
            with pytest.raises(AgentError, match="cannot be reached") as caught:
                await said(agent, "a")
            assert said_of_it in str(caught.value)
            assert served.heads == []

    asyncio.run(run())
    gc.collect()


def test_certificates_that_cannot_be_read_are_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))

    async def run(url: str) -> None:
        async with agent_at(url, tmp_path):
            """Nothing is asked."""

    # Nobody reads them where nobody needs them.
    asyncio.run(run("http://127.0.0.1/"))
    with pytest.raises(ConfigError, match=r"cannot be reached from here: SSL_CERT_FILE .*missing\.pem: "):
        asyncio.run(run("https://127.0.0.1/"))
