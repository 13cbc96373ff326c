"""What the process of a Python agent or a grader writes to its pipe. AgentError, or the process is given up."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from agenteval.agents.base import reply_from_json
from agenteval.agents.worker.pool import _CallError, _Worker
from agenteval.core.errors import AgentError


def target(data: bytes) -> None:
    loop = asyncio.new_event_loop()
    try:
        worker = _Worker("python")
        waiting = worker._pending = {number: loop.create_future() for number in range(3)}
        # In two pieces, as pipes deliver.
        worker._lines.add(data[: len(data) // 2])
        worker._lines.add(data[len(data) // 2 :] + b"\n")
        for future in waiting.values():
            if future.done():
                with suppress(_CallError, AgentError):
                    reply_from_json(future.result()).response.encode()
    finally:
        loop.close()
