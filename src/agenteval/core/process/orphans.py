"""Ends a program's orphans, including those that left its process group.

Linux gives orphans to the nearest subreaper (prctl(2), ``PR_SET_CHILD_SUBREAPER``). An inherited environment variable
identifies their program, and all programs above it: a run inside an agent of a run gives its programs both tokens. On
other systems nothing happens.
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
    above = os.environ.get(VARIABLE)
    return f"{above},{uuid.uuid4().hex}" if above else uuid.uuid4().hex


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
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found, newly_ended = set(), set()
        for pid in set(_children()) - {program}:
            environment = _environment(pid)
            if pid in known or _belongs(pid, environment, token, program):
                found.add(pid)
            elif not environment and pid not in ended:
                newly_ended.add(pid)
        if not found and not newly_ended:
            return
        known = {pid for pid in found if not _has_ended(pid)}
        # One that ended may have started another one, which became a child of this process after the look.
        ended |= newly_ended
        if known:
            await asyncio.sleep(_PAUSE_S)


def _children() -> Iterator[int]:
    """Yield the process ids of this process's children, including adopted ones."""
    with contextlib.suppress(OSError):
        for task in _SELF.iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_text(encoding="ascii").split())


def _belongs(pid: int, environment: bytes, token: str, group: int) -> bool:
    """Return whether a child belongs to a program, or to a program below it."""
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == group:
            return True
    marked = f"{VARIABLE}={token}".encode()
    return any(variable == marked or variable.startswith(marked + b",") for variable in environment.split(b"\0"))


def _environment(pid: int) -> bytes:
    """Return the environment variables; a process that has ended has none."""
    with contextlib.suppress(OSError):
        # A thread that has ended, even the first one, has none either.
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                if environment := (task / "environ").read_bytes():
                    return environment
    return b""


def _has_ended(pid: int) -> bool:
    """Kill a child, and return whether it has ended."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
