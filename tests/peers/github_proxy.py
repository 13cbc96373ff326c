"""A reverse proxy in front of the emulated GitHub: records, breaks things, and serves what the emulator lacks."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.peers.openapi import Request

from agenteval.github.client import USER_AGENT

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})
_UPSTREAM_S = 30
_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What goes back to the client."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, status: int = 200, **headers: str) -> Answer:
        return cls(status, json.dumps(value).encode(), {"Content-Type": _JSON, **headers})

    @classmethod
    def message(cls, status: int, text: str, **headers: str) -> Answer:
        """A failure in GitHub's shape."""
        said = {"message": text, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
        return cls.json(said, status, **headers)


@dataclass(frozen=True)
class Incoming:
    """One request as it arrived. ``headers`` have lower-case names.

    The token is in ``authorization`` only, which is ``***`` in what is recorded, and empty without one.
    """

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    authorization: str = field(repr=False)

    @property
    def route(self) -> str:
        """The path without the query."""
        return urlsplit(self.path).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))

    @property
    def host(self) -> str:
        """The host name that the client asked for, without the port."""
        return self.headers.get("host", "").rpartition(":")[0]

    def as_request(self, base_url: str) -> Request:
        """The same for GitHub's description."""
        return Request(self.method, f"{base_url}{self.path}", self.body.decode() or None)


#: Answers in place of the emulator; ``None`` passes the request on to it.
Handler = Callable[[Incoming, re.Match[str]], Answer | None]


@dataclass
class Fault:
    """One thing that goes wrong, a number of times. See :meth:`GithubProxy.fail`.

    ``dripped`` counts the bytes that were sent one by one.
    """

    method: str
    path: re.Pattern[str]
    times: int
    answer: Answer | None
    delay_s: float
    after_write: bool
    reset: bool
    truncate: bool
    drip_s: float
    dripped: int = 0

    def concerns(self, request: Incoming) -> bool:
        return self.times > 0 and self.method in {request.method, "*"} and bool(self.path.search(request.path))


class GithubProxy:
    """Sits between the code under test and the emulator.

    Only requests with agenteval's user agent are recorded and broken; tests use the same address for what
    they prepare and look up themselves.

    Attributes:
        url: what the code under test is given as GitHub's API; the emulator has to call itself the same.
        requests: the requests so far, oldest first.
    """

    def __init__(self) -> None:
        self.requests: list[Incoming] = []
        self._faults: list[Fault] = []
        self._handlers: list[tuple[str, re.Pattern[str], Handler]] = []
        self._lock = threading.Lock()
        self._upstream = 0
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.proxy = self
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self, upstream_port: int) -> Iterator[GithubProxy]:
        """Serves for the length of the block."""
        self._upstream = upstream_port
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()

    def serve(self, method: str, path: str, handler: Handler) -> None:
        """Answers requests whose path without query matches the whole pattern; the latest handler comes first."""
        self._handlers.insert(0, (method, re.compile(path), handler))

    def fail(
        self,
        method: str,
        path: str,
        *,
        times: int = 1,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        delay_s: float = 0.0,
        after_write: bool = False,
        reset: bool = False,
        truncate: bool = False,
        drip_s: float = 0.0,
    ) -> Fault:
        """Breaks the next requests that match; faults are used up in the order they were added.

        Args:
            method: HTTP method, or ``*``.
            path: regular expression, found anywhere in path and query.
            times: how many requests it breaks.
            status: answer with this status. Not given: the true answer, changed by what follows.
            headers: of that answer.
            body: of that answer: bytes, or a value for JSON; GitHub's usual shape if not given.
            delay_s: seconds of silence first.
            after_write: let the emulator act before failing, so that only the answer is lost; 502 if
                neither ``status`` nor ``reset`` say otherwise.
            reset: close the connection instead of answering.
            truncate: promise the whole body and send the first half.
            drip_s: seconds between single bytes of the body, whose length is not told beforehand.
        """
        if status is None and after_write and not reset:
            status = 502
        fault = Fault(
            method,
            re.compile(path),
            times,
            None if status is None else _answer(status, headers or {}, body),
            delay_s,
            after_write,
            reset,
            truncate,
            drip_s,
        )
        self._faults.append(fault)
        return fault

    def refuse(self, path: str = "", *, method: str = "*", times: int = 10_000) -> Fault:
        """Answers as GitHub does when the token lacks a permission."""
        text = "Resource not accessible by integration"
        return self.fail(method, path, times=times, status=403, body={"message": text, "status": "403"})

    def called(self, method: str, path: str) -> list[Incoming]:
        """The recorded requests with this method whose path and query match."""
        return [request for request in self.requests if request.method == method and re.search(path, request.path)]

    def lose(self, method: str, path: str, failure: str, *, arrives: bool) -> None:
        """Loses the answer to the next request that matches in a way, after or before it has arrived."""
        match failure:
            case "silence" if arrives:
                # Longer between two bytes than the client waits.
                self.fail(method, path, drip_s=1.5)
            case "silence":
                self.fail(method, path, status=504, delay_s=1.5)
            case "half an answer":
                self.fail(method, path, truncate=True, status=None if arrives else 200)
            case "a page":
                self.fail(method, path, status=200, body=b"<html>Sorry</html>", after_write=arrives)
            case "reset":
                self.fail(method, path, reset=True, after_write=arrives)
            case _:
                self.fail(method, path, status=int(failure), after_write=arrives)

    def writes(self) -> list[str]:
        """The methods of the recorded requests that change something."""
        return [item.method for item in self.requests if item.method != "GET" and item.route != "/graphql"]

    def forget(self) -> None:
        """Forgets the requests and faults so far."""
        with self._lock:
            self.requests.clear()
            self._faults.clear()

    def answer(self, request: Incoming) -> tuple[Answer | None, Fault | None]:
        """The answer, ``None`` for a connection that is to be closed, and how to garble it."""
        fault = None
        if request.headers.get("user-agent", "").startswith(USER_AGENT):
            with self._lock:
                self.requests.append(replace(request, authorization="***" if request.authorization else ""))
                fault = next((fault for fault in self._faults if fault.concerns(request)), None)
                if fault:
                    fault.times -= 1
        if fault is None:
            return self.true_answer(request), None
        self.closing.wait(fault.delay_s)
        if fault.after_write:
            self.true_answer(request)
        if fault.reset:
            return None, fault
        return fault.answer or self.true_answer(request), fault

    def true_answer(self, request: Incoming) -> Answer:
        """What GitHub would say, by a handler or the emulator."""
        for method, path, handler in self._handlers:
            found = path.fullmatch(request.route)
            if method == request.method and found and (answer := handler(request, found)) is not None:
                return answer
        return self.forward(request.method, request.path, request.body, request.headers, request.authorization)

    def forward(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        authorization: str = "",
    ) -> Answer:
        """Asks the emulator. It builds the addresses in ``Link`` from the ``Host`` header, which is kept."""
        connection = HTTPConnection("127.0.0.1", self._upstream, timeout=_UPSTREAM_S)
        kept = {
            name: value for name, value in (headers or {}).items() if name not in _HOP_BY_HOP | {"accept-encoding"}
        }
        kept |= {"host": f"127.0.0.1:{self.port}"}
        try:
            connection.request(
                method, path, body or None, kept | ({"authorization": authorization} if authorization else {})
            )
            response = connection.getresponse()
            passed = {name: value for name, value in response.getheaders() if name.lower() not in _HOP_BY_HOP}
            return Answer(response.status, response.read(), passed)
        finally:
            connection.close()


def _answer(status: int, headers: Mapping[str, str], body: Any) -> Answer:
    if body is None:
        return Answer.message(status, "Fault of the test", **headers)
    if isinstance(body, bytes):
        return Answer(status, body, headers)
    return Answer.json(body, status, **headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: GithubProxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that gave up waiting are part of the tests."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise every answer waits for the client to acknowledge its headers.
    disable_nagle_algorithm = True
    server: _Server

    def _handle(self) -> None:
        proxy = self.server.proxy
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        authorization = headers.pop("authorization", "")
        request = Incoming(self.command, self.path, self.rfile.read(length), headers, authorization)
        try:
            answer, fault = proxy.answer(request)
        except OSError as error:
            answer, fault = Answer.message(502, f"the emulator does not answer: {error}"), None
        if answer is None:
            self._reset()
            return
        with suppress(OSError):
            self._send(answer, fault)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815 - the library's names

    def _send(self, answer: Answer, fault: Fault | None) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if fault and fault.drip_s:
            self.send_header("Connection", "close")
        elif answer.status not in {204, 304}:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault and fault.drip_s:
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                fault.dripped += 1
                if self.server.proxy.closing.wait(fault.drip_s):
                    break
            self.close_connection = True
        elif fault and fault.truncate:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(answer.body)

    def _reset(self) -> None:
        # Without lingering, closing sends RST.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name is the library's
        """Nothing: what matters is recorded."""
