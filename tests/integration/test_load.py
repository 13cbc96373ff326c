"""Five hundred calls at once to a service that errs, hangs, hangs up and asks to wait."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from tests.support import agenteval, case, results_in, write_suite

CASES, AT_ONCE, RETRIES = 1000, 500, 3
# Of every hundred cases these: what the service does with them, always or the first time only.
ERRS, HANGS, HANGS_UP_ONCE = (13, 57), (91,), (5, 35)
BUSY = range(200, 400)


@dataclass
class Troubled:
    """An HTTP service of its own thread, for very many connections."""

    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    _at_once: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes over one connection."""
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length:"))
                body = json.loads(await reader.readexactly(int(length.partition(":")[2])))
                if not await self._answered(body, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            """The client has gone."""
        finally:
            writer.close()

    async def _answered(self, body: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        name = body["case"]
        self.asked[name] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(0.2)
            number, first = int(name), self.asked[name] == 1
            if number % 100 in HANGS:
                await asyncio.sleep(1000)
            if number % 100 in HANGS_UP_ONCE and first:
                return False
            status, more, text = "200 OK", "", body["input"]
            if number % 100 in ERRS:
                status, text = "500 Internal Server Error", "no model"
            elif number in BUSY and first:
                status, more = "429 Too Many Requests", "Retry-After: 1\r\n"
            content = json.dumps({"response": text}).encode()
            head = (
                f"HTTP/1.1 {status}\r\n{more}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content)
            await writer.drain()
            return True
        finally:
            self._at_once -= 1


@contextmanager
def troubled() -> Iterator[Troubled]:
    """The service, while it runs."""
    service, loop, ready = Troubled(), asyncio.new_event_loop(), threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(service.serve, "127.0.0.1", 0, backlog=2 * AT_ONCE)
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        ready.set()
        async with server:
            await server.serve_forever()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner, suppress(asyncio.CancelledError):
            runner.run(run())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield service
    finally:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join()


@pytest.mark.long
def test_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    names = [str(number) for number in range(CASES)]
    write_suite(tmp_path, [case(name) for name in names])
    with troubled() as service:
        # Patient with the machine that runs the tests, and not for ever.
        agent = {"http": service.url, "timeout": 10, "retries": RETRIES}
        (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump({"agents": {"default": agent}}), encoding="utf-8")
        ended = agenteval("run", "--concurrency", str(AT_ONCE), cwd=tmp_path)
    assert ended.status in {1, 3}, ended.text

    def outcome(name: str) -> tuple[str, int]:
        number = int(name)
        if number % 100 in (*ERRS, *HANGS):
            return "error", RETRIES if number % 100 in ERRS else 0
        return "passed", int(number % 100 in HANGS_UP_ONCE or number in BUSY)

    results = results_in(tmp_path)
    found = [(item.name, (item.status, item.iterations[0].turns[0].retries)) for _, item in results.cases()]
    assert found == [(name, outcome(name)) for name in names]
    assert service.asked == {name: 1 + outcome(name)[1] for name in names}
    assert 1 < service.most_at_once <= AT_ONCE
    retried = [outcome(name) for name in names if outcome(name)[1]]
    answered = sum(status == "passed" for status, _ in retried)
    said = f"{len(retried)} turns were retried after a transient failure ({sum(more for _, more in retried)} retries)"
    assert f"{said}; {answered} got an answer" in ended.out
