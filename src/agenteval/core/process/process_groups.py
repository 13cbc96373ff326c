"""Finds every process that a program started, wherever it hid: by a group that it inherits and cannot leave.

A process can leave its process group, its session and its parent. What it cannot do without rights is to lay down a
supplementary group, so each program of users gets a number of its own there.
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
# Numbers that no group of people has: systemd keeps them for users that come and go.
_FIRST, _LAST = 61184, 65519
_ROUNDS, _PAUSE_S = 200, 0.001
_REAPING_INTERVAL_S = 2.0

# Another run on this machine begins elsewhere.
_numbers = count(secrets.randbelow(_LAST - _FIRST + 1))
_taken: set[int] = set()


@dataclass(frozen=True)
class Process:
    """What the kernel says about a process."""

    pid: int
    parent: int
    is_dead: bool
    groups: frozenset[int]


def new_mark() -> int:
    """The number of a group that no process of users has; it is taken until :func:`free_mark`."""
    numbers = (_FIRST + number % (_LAST - _FIRST + 1) for number in _numbers)
    in_use = _taken.union(*(process.groups for process in processes()))
    mark = next(number for number in numbers if number not in in_use)
    _taken.add(mark)
    return mark


def free_mark(mark: int) -> None:
    """Give a number back: nothing has it any more."""
    _taken.discard(mark)


def kill_marked(mark: int, own_child: int | None) -> None:
    """End every process with a mark; those that nobody waits for any more are waited for.

    Args:
        mark: the group.
        own_child: a process that somebody waits for.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        if not _kill_group(mark, own_child, ended):
            return
        time.sleep(_PAUSE_S)


def processes() -> Iterator[Process]:
    """Every process that is visible here."""
    for pid in _pids():
        process = _look_at(pid)
        if process is not None:
            yield process


def reap(pid: int) -> None:
    """Take notice of the end of a child that nobody waits for."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def reap_orphans() -> None:
    """As the first process of a container, take notice of the ends of all that is left to it; from now on.

    Whoever started a child waits for it at once, so that one that is still dead at the second look is an orphan.
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
    """Kill what has a mark, the newest first; whether there may be more.

    What starts the next one and ends is dead or gone when it is looked at, and the next one is not in the list.

    Args:
        mark: the group.
        own_child: a process that somebody waits for.
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
    """What the kernel says; ``None`` if the process is gone."""
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
