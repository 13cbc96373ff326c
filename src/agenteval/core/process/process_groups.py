"""Finds every descendant of a program by a supplementary group, which a process cannot leave.

A process can leave its process group, its session and its parent. Without rights it cannot drop a supplementary
group, so each user program receives a unique one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_PROC = Path("/proc")
# Group ids that systemd reserves for dynamic users.
_FIRST, _LAST = 61184, 65519
_ROUNDS, _PAUSE_S = 200, 0.001
_REAPING_INTERVAL_S = 2.0

# A random start, since other runs on this machine use the same range.
_numbers = count(secrets.randbelow(_LAST - _FIRST + 1))
_taken: set[int] = set()


@dataclass(frozen=True)
class Process:
    """The kernel's data about a process."""

    pid: int
    parent: int
    is_dead: bool
    groups: frozenset[int]


def new_mark() -> int:
    """Return an unused group id, and reserve it until :func:`free_mark`."""
    numbers = (_FIRST + number % (_LAST - _FIRST + 1) for number in _numbers)
    in_use = _taken.union(*(process.groups for process in processes()))
    mark = next(number for number in numbers if number not in in_use)
    _taken.add(mark)
    return mark


def free_mark(mark: int) -> None:
    """Release a group id that no process has."""
    _taken.discard(mark)


def kill_marked(mark: int, own_child: int | None) -> None:
    """Kill every process with a mark, and reap orphans among them.

    Args:
        mark: the group.
        own_child: a child that the caller reaps.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        if not _kill_group(mark, own_child, ended):
            return
        time.sleep(_PAUSE_S)


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
    """Start a thread that reaps orphans, for the first process of a container.

    Children are reaped at once by their starter, so a child that is dead in two successive checks is an orphan.
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


def _kill_group(mark: int, own_child: int | None, ended: set[int]) -> bool:
    """Kill the processes with a mark, newest first, and return whether there may be more.

    A process that starts another and ends is dead or gone by then, and the new one is not in the list.

    Args:
        mark: the group.
        own_child: a child that the caller reaps.
        ended: processes that were dead before; those that are dead now are added.
    """
    may_be_more = False
    for pid in sorted(_pids(), reverse=True):
        process = _look_at(pid)
        if process is None:
            may_be_more = True
        elif mark in process.groups:
            may_be_more = may_be_more or pid not in ended
            if not process.is_dead:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                continue
            ended.add(pid)
            if process.parent == os.getpid() and pid != own_child:
                reap(pid)
    return may_be_more


def _pids() -> list[int]:
    return [int(folder.name) for folder in _PROC.iterdir() if folder.name.isdigit()]


def _look_at(pid: int) -> Process | None:
    """Return the kernel's data; ``None`` if the process is gone."""
    try:
        status = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Process(
        pid=pid,
        parent=int(fields["PPid"]),
        is_dead=fields["State"].split()[0] in {"Z", "X"},
        groups=frozenset(map(int, fields["Groups"].split())),
    )
