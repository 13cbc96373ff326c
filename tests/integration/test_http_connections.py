"""Connections of HTTP agents: kept, lost, given up, through proxies, over TLS."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
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


def test_a_connection_that_the_service_closed_meanwhile_is_not_used(tmp_path: Path) -> None:
    def once(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(json.loads(await served.read(reader))["input"]))
            await writer.drain()

        return handle

    async def run() -> None:
        async with serving(once) as served, agent_at(served.url, tmp_path) as agent:
            for text in "abc":
                assert await said(agent, text) == text
                await until(lambda: served.open_now == 0)
            assert (served.connections, len(served.heads)) == (3, 3)

    asyncio.run(run())


def test_a_connection_that_ends_with_the_next_request_makes_no_error(tmp_path: Path) -> None:
    def lives_for_one(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(json.loads(await served.read(reader))["input"]))
            await served.read(reader)

        return handle

    async def run() -> None:
        async with serving(lives_for_one) as served, agent_at(served.url, tmp_path) as agent:
            assert [await said(agent, text) for text in "abc"] == ["a", "b", "c"]
            assert served.connections == 3

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


@pytest.mark.parametrize(
    "closing", [answer("a", "Connection: close"), b"HTTP/1.0 200 OK\r\n\r\na", b"HTTP/1.1 200\r\n\r\na"]
)
def test_a_service_may_want_a_new_connection_each_time(tmp_path: Path, closing: bytes) -> None:
    async def run() -> None:
        async with serving(answering(closing)) as served, agent_at(served.url, tmp_path) as agent:
            for _ in range(3):
                assert await said(agent, "?") == "a"
            assert served.connections == 3

    asyncio.run(run())


def test_a_body_may_come_in_pieces(tmp_path: Path) -> None:
    text = "Grüße " * 1000
    sent = text.encode()
    pieces = [sent[start : start + 7] for start in range(0, len(sent), 7)]

    def handled(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await served.read(reader)
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            for part in (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", head):
                writer.write(part)
                await asyncio.sleep(0.001)
            writer.write(b"".join(b"%x;name=value\r\n%s\r\n" % (len(piece), piece) for piece in pieces))
            writer.write(b"0\r\nTrailer: x\r\n\r\n")
            await served.read(reader)

        return handle

    async def run() -> None:
        async with serving(handled) as served, agent_at(served.url, tmp_path) as agent:
            assert await said(agent, "?") == text
            assert "accept-encoding: identity" in served.heads[0].lower()

    asyncio.run(run())


def test_a_service_may_answer_before_it_has_read_the_request(tmp_path: Path) -> None:
    def hasty(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
            await asyncio.sleep(30)

        return handle

    async def run() -> None:
        async with serving(hasty) as served, agent_at(served.url, tmp_path) as agent:
            for _ in range(2):
                with pytest.raises(AgentError, match="answered 413 Content Too Large: no"):
                    await said(agent, "x" * 20_000_000)
            # What is left of the request would be taken for the next one.
            assert served.connections == 2

    asyncio.run(run())


@pytest.mark.parametrize("own", [{"Connection": "close"}, {"connection": "close, x"}])
def test_the_definition_may_want_a_new_connection_each_time(tmp_path: Path, own: dict[str, str]) -> None:
    async def run() -> None:
        async with serving() as served, agent_at(served.url, tmp_path, headers=own) as agent:
            assert [await said(agent, text) for text in "ab"] == ["a", "b"]
            assert served.connections == 2

    asyncio.run(run())


def test_no_other_protocol_is_spoken(tmp_path: Path) -> None:
    def changing(served: Served) -> Handler:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await served.read(reader)
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
            await reader.read()

        return handle

    async def run() -> None:
        own = {"Upgrade": "websocket", "Connection": "upgrade"}
        async with serving(changing) as served, agent_at(served.url, tmp_path, headers=own) as agent:
            with pytest.raises(AgentError, match="broke off: it changed to another protocol"):
                await said(agent, "a")

    asyncio.run(run())


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine speaks no IPv6")
def test_reaches_an_address_of_ipv6(tmp_path: Path) -> None:
    async def run() -> None:
        served = Served()
        async with AsyncExitStack() as stack:
            try:
                served.port = await stack.enter_async_context(tcp_server(served.echo, "::1"))
            except OSError:
                pytest.skip("this machine has no IPv6 address")
            agent = await stack.enter_async_context(agent_at(f"http://[::1]:{served.port}/", tmp_path))
            assert await said(agent, "a") == "a"
        assert f"\r\nHost: [::1]:{served.port}\r\n" in served.heads[0]

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


def test_a_call_can_be_given_up_while_it_connects(tmp_path: Path) -> None:
    async def run(port: int) -> None:
        async with agent_at(f"http://127.0.0.1:{port}/", tmp_path) as agent:
            asking = [asyncio.create_task(said(agent, "?")) for _ in range(4)]
            await asyncio.sleep(0.05)
            for task in asking:
                task.cancel()
            ended = await asyncio.gather(*asking, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in ended)

    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        # Nobody accepts, and more than one or two do not fit.
        full.listen(0)
        asyncio.run(run(full.getsockname()[1]))
    gc.collect()


def test_a_look_up_that_hangs_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, looked_up = threading.Event(), []
    real = socket.getaddrinfo

    def slow(host: str | bytes, *args: Any, **kwargs: Any) -> Any:
        if host == b"agent.example":
            if kwargs.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "not a number")
            looked_up.append(host)
            release.wait(timeout=30)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run() -> None:
        async with agent_at("http://agent.example/", tmp_path) as agent:
            asking = [asyncio.create_task(said(agent, "?")) for _ in range(3)]
            await until(lambda: bool(looked_up))
            asking[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking[0]
            assert not any(task.done() for task in asking[1:])
            asking[1].cancel()
            await asyncio.wait(asking[1:2])
            asking[2].cancel()
            await asyncio.wait(asking[2:])

    try:
        asyncio.run(run())
        # One for all, and the loop has ended before it.
        assert looked_up == [b"agent.example"]
    finally:
        release.set()


def test_says_that_a_name_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: Any, **_kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    async def run() -> None:
        async with agent_at("http://agent.invalid/", tmp_path) as agent:
            failures = await asyncio.gather(*(said(agent, "?") for _ in range(3)), return_exceptions=True)
        for failure in failures:
            assert isinstance(failure, TransientAgentError)
            assert "the agent at http://agent.invalid/ cannot be reached: " in str(failure)
            assert "Name or service not known" in str(failure)

    asyncio.run(run())


def test_an_address_that_does_not_answer_is_overtaken_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with serving() as served:
            with socket.socket() as full, socket.socket() as first, socket.socket() as second:
                full.bind(("127.0.0.1", 0))
                full.listen(0)
                for waiting in (first, second):
                    waiting.setblocking(False)
                    waiting.connect_ex(full.getsockname())
                monkeypatch.setattr(socket, "getaddrinfo", places(full.getsockname()[1], served.port))
                async with agent_at("http://agent.example/", tmp_path) as agent:
                    assert await said(agent, "a") == "a"

    asyncio.run(run())
    gc.collect()


def test_an_address_that_refuses_is_followed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]

    async def run() -> None:
        async with serving() as served:
            monkeypatch.setattr(socket, "getaddrinfo", places(closed, closed, served.port))
            async with agent_at("http://agent.example/", tmp_path) as agent:
                assert await said(agent, "a") == "a"
            monkeypatch.setattr(socket, "getaddrinfo", places(closed, closed))
            async with agent_at("http://agent.example/", tmp_path) as agent:
                with pytest.raises(TransientAgentError, match=r"cannot be reached: .*(failed|nothing listens)"):
                    await said(agent, "a")

    asyncio.run(run())


def places(*ports: int) -> Callable[..., Any]:
    """A look-up that finds these ports of this machine."""

    def found(*_args: Any, flags: int = 0, **_kwargs: Any) -> Any:
        if flags:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

    return found


# Headers and credentials


def test_the_headers_of_the_definition_win(tmp_path: Path) -> None:
    own = {"content-type": "application/vnd.chat+json", "HOST": "chat.example", "User-Agent": "me/1"}

    async def run() -> None:
        async with serving() as served, agent_at(served.url, tmp_path, headers=own) as agent:
            await said(agent, "a")
            lines = served.heads[0].strip().split("\r\n")
            sent = sorted(
                line for line in lines[1:] if line.partition(":")[0].lower() in {name.lower() for name in own}
            )
            assert sent == sorted(f"{name}: {value}" for name, value in own.items())

    asyncio.run(run())


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


def test_a_proxy_passes_plain_requests_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with serving() as served, serving(relaying) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
            async with agent_at(served.url, tmp_path) as agent:
                assert [await said(agent, text) for text in "ab"] == ["a", "b"]
            assert proxy.connections == 1
            assert proxy.heads[0].startswith(f"POST {served.url} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n")
            assert f"\r\nProxy-Authorization: {CREDENTIALS}\r\n" in proxy.heads[0]

    asyncio.run(run())


def test_no_proxy_means_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with serving() as served:
            monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
            monkeypatch.setenv("NO_PROXY", "example.com, 127.0.0.1")
            async with agent_at(served.url, tmp_path) as agent:
                assert await said(agent, "a") == "a"

    asyncio.run(run())


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


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTP_PROXY"])
def test_a_socks_proxy_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "socks5://me:secret@proxy:1080")

    async def run() -> None:
        async with agent_at("http://agent.example/", tmp_path):
            """It does not get so far."""

    with pytest.raises(ConfigError, match=r"SOCKS proxies .* are not supported") as caught:
        asyncio.run(run())
    assert "secret" not in str(caught.value)


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


def test_says_that_the_service_speaks_no_tls(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving() as served, agent_at(f"https://127.0.0.1:{served.port}/", tmp_path) as agent:
            asking = asyncio.create_task(said(agent, "a"))
            await until(lambda: served.connections == 1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

        def hanging_up(_served: Served) -> Handler:
            async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                await writer.drain()

            return handle

        async with serving(hanging_up) as served, agent_at(f"https://127.0.0.1:{served.port}/", tmp_path) as agent:
            with pytest.raises(TransientAgentError, match="cannot be reached"):
                await said(agent, "a")

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
