"""Ends what a program left behind, also where it left the program's process group.

Linux hands orphans to the nearest ancestor that asks for them (prctl(2), ``PR_SET_CHILD_SUBREAPER``); a variable in
the environment, which children inherit, tells whose they are. Elsewhere nothing happens.
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
# A process that was killed takes a moment to end, and then leaves its own children.
_ROUNDS, _PAUSE_S = 200, 0.005


def new_token() -> str:
    """What marks a program's environment, and is in no other one."""
    adopt_orphans()
    return uuid.uuid4().hex


@cache
def adopt_orphans() -> bool:
    """Make this process the parent of what its children leave behind; whether that is possible here."""
    if not _SELF.is_dir():
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        refused: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return refused == 0
    return False


async def end_orphans(token: str, program: int) -> None:
    """End every process that a program left to us, and what those leave in turn.

    Args:
        token: of the program.
        program: its process id, which is its process group's too; it has ended.
    """
    known: set[int] = set()
    for _ in range(_ROUNDS):
        known |= {pid for pid in _children() if pid != program and _belongs(pid, token, program)}
        known = {pid for pid in known if not _has_ended(pid)}
        if not known:
            return
        await asyncio.sleep(_PAUSE_S)


def _children() -> Iterator[int]:
    """Our children, those that we adopted included."""
    with contextlib.suppress(OSError):
        for task in _SELF.iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_text(encoding="ascii").split())


def _belongs(pid: int, token: str, group: int) -> bool:
    """Whether a child of ours comes from a program; one that has ended has no environment any more."""
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == group:
            return True
        return f"{VARIABLE}={token}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False


def _has_ended(pid: int) -> bool:
    """Kill a child; whether that was done before and is over."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
