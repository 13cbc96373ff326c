"""The agent behind HTTP: ``python -m benchmarks.speed.server`` prints its port, then answers until it is ended.

Every ``POST`` of ``{"input": "question 7"}`` gets ``{"response": "answer 7"}`` after 200 ms; connections stay
open.
"""

from __future__ import annotations

import asyncio
import json

from benchmarks.speed.workloads import LATENCY_S

_BACKLOG = 1024


async def main() -> None:
    """Serve on a free port."""
    server = await asyncio.start_server(_converse, "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            request = json.loads(await reader.readexactly(_length(head)))
            await asyncio.sleep(LATENCY_S)
            body = json.dumps({"response": request["input"].replace("question", "answer")}).encode()
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
    asyncio.run(main())
