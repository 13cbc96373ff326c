"""Ends a program's orphans, including those that left its process group.

Linux gives orphans to the nearest subreaper (prctl(2), ``PR_SET_CHILD_SUBREAPER``). An inherited environment variable
identifies their program. On other systems nothing happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VARIABLE = "AGENTEVAL_PROCESS"

_SELF = Path("/proc/self/task")
_PR_SET_CHILD_SUBREAPER = 36
# Rounds and pause in seconds: a killed process needs a moment to end, and its children then become orphans.
_ROUNDS, _PAUSE_S = 200, 0.005


def new_token() -> str:
    """Return a unique value for a program's environment variable."""
    adopt_orphans()
    return uuid.uuid4().hex


@cache
def adopt_orphans() -> bool:
    """Make this process a subreaper, and return whether the system supports it."""
    if not _SELF.is_dir():
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        refused: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return refused == 0
    return False


async def end_orphans(token: str, program: int) -> None:
    """End all orphans of a program, and their orphans in turn.

    Args:
        token: the value of the program's environment variable.
        program: the process id and process group id of the program, which has ended.
    """
    known: set[int] = set()
    for _ in range(_ROUNDS):
        known |= {pid for pid in _children() if pid != program and _belongs(pid, token, program)}
        known = {pid for pid in known if not _has_ended(pid)}
        if not known:
            return
        await asyncio.sleep(_PAUSE_S)


def _children() -> Iterator[int]:
    """Yield the process ids of this process's children, including adopted ones."""
    with contextlib.suppress(OSError):
        for task in _SELF.iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_text(encoding="ascii").split())


def _belongs(pid: int, token: str, group: int) -> bool:
    """Return whether a child belongs to a program; an ended child has no environment that could be checked."""
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == group:
            return True
        return any(f"{VARIABLE}={token}".encode() in variables for variables in _environments(pid))
    return False


def _environments(pid: int) -> Iterator[list[bytes]]:
    """Yield the environment variables of each thread; a thread that has ended, even the first one, has none."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            yield (task / "environ").read_bytes().split(b"\0")


def _has_ended(pid: int) -> bool:
    """Kill a child, and return whether it has ended."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
