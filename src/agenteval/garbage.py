"""Keeps Python from looking for garbage where there is none."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def nothing_to_collect() -> Iterator[None]:
    """All that is made meanwhile stays: looking for garbage in it, now and later, takes as long as making it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
