"""Servers that answer after 200 ms: ``python -m benchmarks.speed.server KIND`` prints its port, and serves.

An ``agent`` answers ``{"input": "question 7"}`` with ``{"response": "answer 7"}``. A ``judge`` has the interface of
OpenAI, and gives every answer the best score. Connections stay open.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.speed.workloads import LATENCY_S

_BACKLOG = 1024
_ROOT = Path(__file__).parents[2]

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@contextmanager
def serving(kind: str) -> Iterator[str]:
    """Start a server in a separate process; yield its address."""
    command = [sys.executable, "-m", "benchmarks.speed.server", kind]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        finally:
            server.terminate()


def _agent(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"response": request["input"].replace("question", "answer")}


def _judge(request: Mapping[str, Any]) -> Mapping[str, Any]:
    message = {"role": "assistant", "content": json.dumps({"score": 10, "reason": "It is right."})}
    return {
        "id": "chat",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


_ANSWERS: Mapping[str, Answer] = {"agent": _agent, "judge": _judge}


async def main(answer: Answer) -> None:
    """Serve on a free port."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _converse(reader, writer, answer)

    server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            request = json.loads(await reader.readexactly(_length(head)))
            await asyncio.sleep(LATENCY_S)
            body = json.dumps(answer(request)).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ConnectionError("a request without Content-Length")


if __name__ == "__main__":
    asyncio.run(main(_ANSWERS[sys.argv[1]]))
