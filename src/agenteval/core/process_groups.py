"""Finds and ends every descendant of a program."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import secrets
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from pathlib import Path

from agenteval.core.records import dataclass

# Finds every descendant of a program by a supplementary group, which a process cannot leave.
#
# A process can leave its process group, its session and its parent. An unprivileged process cannot drop a
# supplementary group, so each user program gets a unique one.


_PROC = "/proc"
# Of proc(5). Line ends in a process's name are escaped.
_STATUS = re.compile(rb"(?ms)^State:\t(\S).*?^PPid:\t(\d+)$.*?^Groups:\t?([\d ]*)$.*?^Threads:\t(\d+)$")
# Group ids that systemd reserves for dynamic users.
_FIRST, _LAST = 61184, 65519
_MARKS = _LAST - _FIRST + 1
_PAUSE_S = 0.001
# Time for killed processes to end; in an uninterruptible system call, a process does not end.
_LIMIT_S = 10.0
# Time without a process of a program, after which it has ended, although other processes of the machine ended.
_QUIET_S = 1.0
_REAPING_INTERVAL_S = 2.0

# A random start, because other runs on this machine use the same range.
_numbers = count(secrets.randbelow(_MARKS))
# Each is reserved for this process by the name of a socket, which the kernel gives to one process only. ``None`` if a
# program that is no run has the name.
_taken: dict[int, socket.socket | None] = {}


@dataclass(frozen=True)
class Process:
    """The kernel's information about a process.

    A process lives as long as one of its threads; its first thread can end before the others, and is a zombie then.
    """

    pid: int
    parent: int
    is_dead: bool
    groups: frozenset[int]


def new_mark() -> int:
    """Return an unused group id, and reserve it until its processes have ended (:func:`end_marked`).

    Raises:
        OSError: all group ids are in use.
    """
    numbers = (_FIRST + number % _MARKS for number in islice(_numbers, _MARKS))
    in_use = set(_taken).union(*(process.groups for process in processes()))
    free = None
    for mark in (number for number in numbers if number not in in_use):
        reserved = _reserved(mark)
        if reserved is not None:
            _taken[mark] = reserved
            return mark
        free = mark
    if free is None:
        raise OSError(errno.EAGAIN, "too many programs are running")
    _taken[free] = None
    return free


def _reserved(mark: int) -> socket.socket | None:
    """Reserve a mark among all runs of the machine, before a process has it; ``None`` if another run did."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0agenteval-mark-{mark}")
    except OSError:
        name.close()
        return None
    return name


def free_mark(mark: int) -> None:
    """Release a group id that no process has."""
    reserved = _taken.pop(mark, None)
    if reserved is not None:
        reserved.close()


def kill_marked(mark: int, own_child: int | None) -> None:
    """Kill every process with a mark, without waiting for their end; new ones may have started meanwhile."""
    _kill_group(frozenset({mark}), own_child, set())


def end_marked(mark: int, own_child: int | None) -> bool:
    """Kill every process with a mark until none is left, reap orphans among them, and release the mark.

    Returns:
        Whether all have ended within the time limit. If not, the mark stays reserved, and
        :func:`end_all_marked` tries again.
    """
    return _ended(frozenset({mark}), own_child)


def end_all_marked() -> bool:
    """End every process of user code that is left; return whether all have ended."""
    return _ended(frozenset(_taken), None) if _taken else True


def processes() -> Iterator[Process]:
    """Yield every visible process."""
    for pid in _pids():
        process = _look_at(pid)
        if process is not None:
            yield process


def reap(pid: int) -> None:
    """Reap a child, if it has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def reap_orphans() -> None:
    """Start a thread that reaps orphans; needed if this is the first process of a container.

    Starters reap their children at once, so a child that is dead in two successive checks is an orphan.
    """
    threading.Thread(target=_reap_for_good, name="reaper", daemon=True).start()


def _reap_for_good() -> None:
    before: set[int] = set()
    while True:
        time.sleep(_REAPING_INTERVAL_S)
        dead = {process.pid for process in processes() if process.is_dead and process.parent == os.getpid()}
        for pid in dead & before:
            reap(pid)
        before = dead


def _ended(marks: frozenset[int], own_child: int | None) -> bool:
    """Kill all processes with one of the marks and release the marks; return whether they ended in time."""
    ended: set[int] = set()
    last_found = began = time.monotonic()
    while (sweep := _kill_group(marks, own_child, ended)).may_be_more:
        now = time.monotonic()
        last_found = now if sweep.found else last_found
        if now - last_found > _QUIET_S:
            # Processes of other programs start and end all the time.
            break
        if now - began > _LIMIT_S:
            return False
        time.sleep(_PAUSE_S)
    for mark in marks:
        free_mark(mark)
    return True


@dataclass(frozen=True)
class _Sweep:
    """One look at all processes: whether living ones with a mark were found, and whether any ended meanwhile."""

    found: bool
    vanished: bool

    @property
    def may_be_more(self) -> bool:
        return self.found or self.vanished


def _kill_group(marks: frozenset[int], own_child: int | None, ended: set[int]) -> _Sweep:
    """Kill the processes with one of the marks, newest first.

    A process that starts another one and ends is dead or gone by then, and the new one is not in the list.

    Args:
        ended: processes that were dead before; those that are dead now are added.
    """
    found = vanished = False
    for pid in sorted(_pids(), reverse=True):
        process = _look_at(pid)
        if process is None:
            vanished = True
        elif marks & process.groups:
            found = found or pid not in ended or not process.is_dead
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            if not process.is_dead:
                continue
            ended.add(pid)
            if process.parent == os.getpid() and pid != own_child:
                reap(pid)
    return _Sweep(found, vanished)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - the names are enough


def _look_at(pid: int) -> Process | None:
    """Return the kernel's information; ``None`` if the process no longer exists."""
    # A call of an agent reads this several times for each process of the machine: pathlib and text take too long.
    try:
        with open(f"{_PROC}/{pid}/status", "rb", buffering=0) as file:  # noqa: PTH123
            status = file.read()
    except OSError:
        return None
    found = _STATUS.search(status)
    if found is None:
        raise OSError(errno.EPROTO, f"{_PROC}/{pid}/status is not as proc(5) describes it")
    state, parent, groups, threads = found.groups()
    return Process(
        pid=pid,
        parent=int(parent),
        is_dead=state in {b"Z", b"X"} and int(threads) <= 1,
        groups=frozenset(map(int, groups.split())),
    )


# Ends a program's orphans, including those that left its process group.
#
# Linux gives orphans to the nearest subreaper (prctl(2), ``PR_SET_CHILD_SUBREAPER``). An inherited environment
# variable identifies their program, and all programs above it: a run inside an agent of a run gives its programs both
# tokens. On other systems nothing happens.


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
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        refused: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
