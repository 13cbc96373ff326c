"""Ends what programs leave behind: the orphans of a call, and at the end of a run everything of a user."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

# Ends a program's orphans, including those that left its process group.
#
# Linux gives orphans to the nearest subreaper (prctl(2), ``PR_SET_CHILD_SUBREAPER``). An inherited environment
# variable identifies their program, and all programs above it: a run inside an agent of a run gives its programs both
# tokens. A process that erases its variables lives until the end of the run. On other systems nothing happens.


VARIABLE = "AGENTEVAL_PROCESS"

_SELF = Path("/proc/self/task")
_PR_SET_CHILD_SUBREAPER = 36
# Rounds and pause in seconds: a killed process needs a moment to end, and its children then become orphans.
_ROUNDS, _SWEEP_PAUSE_S = 200, 0.005


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
    with contextlib.suppress(OSError, AttributeError):
        refused: int = _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return refused == 0
    return False


async def end_orphans(token: str, program: int) -> None:
    """End all orphans of a program, and their orphans in turn.

    Args:
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
            await asyncio.sleep(_SWEEP_PAUSE_S)


def _children() -> Iterator[int]:
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
    with contextlib.suppress(OSError):
        # A thread that has ended, even the first one, has none either.
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError), _rights_of(task):
                if environment := (task / "environ").read_bytes():
                    return environment
    return b""


@contextlib.contextmanager
def _rights_of(process: Path) -> Iterator[None]:
    """Read files of a process as its user: root of a container has no right to (``CAP_SYS_PTRACE``)."""
    found = process.stat()
    if os.geteuid() != 0 or found.st_uid == 0:
        yield
        return
    # Of this thread only (setfsuid(2)).
    _libc().setfsgid(found.st_gid)
    _libc().setfsuid(found.st_uid)
    try:
        yield
    finally:
        _libc().setfsuid(0)
        _libc().setfsgid(os.getegid())


def _has_ended(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)


# At the end of a run.


# Of proc(5). Line ends in a process's name are escaped.
_STATUS = re.compile(rb"(?ms)^State:\t(\S).*?^PPid:\t(\d+)$.*?^Uid:\t([\d\t]*)$.*?^Threads:\t(\d+)$")
_REAPING_INTERVAL_S = 2.0
# Time for killed processes to end; in an uninterruptible system call, a process does not end.
_LIMIT_S = 10.0
_KILL = ("/bin/sh", "-c", "kill -KILL -1")


def end_user(uid: int, as_user: Sequence[str]) -> bool:
    """Kill every process of a user, and return whether all have ended within the time limit.

    Only for a container, where nobody else's programs run as this user.

    Args:
        as_user: starts a program as the user: the system kills all of a user's processes at once, so that none
            escapes that starts others.
    """
    end = time.monotonic() + _LIMIT_S
    while True:
        # Without a look before: one that starts another one and ends can be missed.
        subprocess.run([*as_user, *_KILL], check=False, env={}, stdin=subprocess.DEVNULL, capture_output=True)
        if uid not in _living_users():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(_SWEEP_PAUSE_S)


def reap_orphans() -> None:
    """Start a thread that reaps orphans; needed if this is the first process of a container.

    Starters reap their children at once, so a child that is dead in two successive checks is an orphan.
    """
    threading.Thread(target=_reap_for_good, name="reaper", daemon=True).start()


def _reap_for_good() -> None:
    before: set[int] = set()
    while True:
        time.sleep(_REAPING_INTERVAL_S)
        dead = {pid for pid, parent, _, is_dead in _processes() if is_dead and parent == os.getpid()}
        for pid in dead & before:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        before = dead


def _living_users() -> set[int]:
    return {uid for _, _, uids, is_dead in _processes() if not is_dead for uid in uids}


def _processes() -> Iterator[tuple[int, int, set[int], bool]]:
    """Yield the id, the parent and the users of each process, and whether it is dead.

    A process lives as long as one of its threads; its first thread can end before the others, and is a zombie then.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found = _STATUS.search((process / "status").read_bytes())
            if found is not None:
                state, parent, users, threads = found.groups()
                is_dead = state in {b"Z", b"X"} and int(threads) <= 1
                yield int(process.name), int(parent), set(map(int, users.split())), is_dead
