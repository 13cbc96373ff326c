"""An event loop whose clock runs as fast as it may."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _VirtualTime(selectors.SelectSelector):
    """Instead of waiting it moves the clock on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    """Run something that waits only for the clock."""
    selector = _VirtualTime()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return selector.now

    with asyncio.Runner(loop_factory=lambda: Loop(selector)) as runner:
        runner.run(work)
