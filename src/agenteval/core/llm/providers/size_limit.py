"""Limits the size of replies, which the providers' libraries read into memory completely."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from agenteval.core.llm.errors import LlmError

# The longest answers and vectors of today's models have less than 1 MB.
MAX_BYTES = 8_000_000


def limit_hooks(label: str) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Return the hooks with which a client refuses replies of more than ``MAX_BYTES`` after decompression.

    They are the ``event_hooks`` of ``AsyncClient`` of httpx, and of its successor httpx2: the providers' libraries
    use one or the other. Reading a reply that is too large raises ``LlmError``, which is not transient.
    """

    async def limit(response: Any) -> None:
        kind = type(response)
        received = kind(response.status_code, headers=response.headers, stream=response.stream)
        response.stream = kind(response.status_code, content=_limited(received, label)).stream
        # The new stream is decompressed.
        response.headers.pop("content-encoding", None)

    return {"response": [limit]}


async def _limited(response: Any, label: str) -> AsyncIterator[bytes]:
    size = 0
    try:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MAX_BYTES:
                raise LlmError(f"{label} sent a reply of more than {MAX_BYTES // 10**6} MB")
            yield chunk
    finally:
        await response.aclose()
