"""Isolates user code in the action's container from the job's secrets and files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path

from agenteval.ci.github.action.outputs import warn
from agenteval.core.process.confinement import Owner, confined, is_private
from agenteval.core.process.process_groups import reap_orphans

# Access to one of these sockets controls the machine that runs the container.
_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/podman/podman.sock"))
_COMMAND_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
_PR_SET_DUMPABLE = 4
_NOBODY = 65534
# Files can be opened and created by name, but the directory cannot be listed.
_UNLISTED = 0o733


@contextmanager
def isolated(environment: Mapping[str, str]) -> Iterator[None]:
    """Run user code inside the block with at most the rights of the workspace's owner.

    User code cannot read this process, open the socket of the container engine, or find the runner's files. Without
    root privileges, only this process is hidden. Secrets stay in ``os.environ`` and are removed from the initial
    environment that the kernel shows.

    Args:
        environment: environment variables of the container, as the runner set them.
    """
    _hide_this_process()
    _blank_first_variables()
    if os.getpid() == 1:
        reap_orphans()
    owner = owner_of(environment.get("GITHUB_WORKSPACE", ""))
    if owner is None:
        yield
        return
    for socket in _SOCKETS:
        if can_open(owner, socket):
            warn([f"the agent can open {socket}, and can control this machine with it"])
    with hidden_files(environment, owner), _home(environment, owner) as home:
        names = {name: environment.get(name) or "runner" for name in ("USER", "LOGNAME")}
        with confined(owner=owner, variables={"HOME": home, **names}):
            yield


def owner_of(workspace: str) -> Owner | None:
    """Return the user for user code: the owner of the workspace; ``None`` without the rights to change users.

    If the runner's group can open the container engine's socket, another group is used.
    """
    if os.geteuid() != 0 or not Path(workspace or os.devnull).is_dir():
        return None
    found = Path(workspace).stat()
    if found.st_uid == 0:
        return Owner(0, found.st_gid)
    avoided = {0, *(socket.stat().st_gid for socket in _SOCKETS if socket.exists())}
    groups = (found.st_gid, found.st_uid, _NOBODY)
    return Owner(found.st_uid, next((gid for gid in groups if gid not in avoided), _NOBODY))


def can_open(owner: Owner, socket: Path) -> bool:
    """Return whether a user can write to a socket and so control its server."""
    try:
        found = socket.stat()
    except OSError:
        return False
    bits = stat.S_IWUSR if found.st_uid == owner.uid else stat.S_IWGRP if found.st_gid == owner.gid else stat.S_IWOTH
    return bool(found.st_mode & bits)


@contextmanager
def hidden_files(environment: Mapping[str, str], owner: Owner) -> Iterator[None]:
    """Hide the runner's files inside the block: user code can neither find nor change them.

    If the process is killed, the runner can still read the files by their names, which cannot be guessed.
    """
    if owner.uid == 0:
        yield
        return
    with contextlib.ExitStack() as before:
        for path, mode in _runner_files(environment):
            found = path.stat()
            before.callback(_change, path, found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
            _change(path, 0, 0, mode)
        yield


def restore_ownership(environment: Mapping[str, str]) -> None:
    """Restore the files that :func:`hidden_files` hid and a killed run did not restore."""
    owner = owner_of(environment.get("GITHUB_WORKSPACE", ""))
    if owner is None or owner.uid == 0:
        return
    for path, _ in _runner_files(environment):
        _change(path, owner.uid, owner.gid, 0o755 if path.is_dir() else 0o644)


def _runner_files(environment: Mapping[str, str]) -> list[tuple[Path, int]]:
    """Return the directories and files to protect, each with its new permissions."""
    folders = {Path(environment[name]).parent for name in _COMMAND_FILES if environment.get(name)}
    event = Path(environment.get("GITHUB_EVENT_PATH") or "/")
    found = [(folder, _UNLISTED) for folder in sorted(folders)]
    # The file is not secret, but later steps trust its content.
    found += [(event.parent, 0o755), (event, 0o644)] if event.is_file() and event.parent not in folders else []
    return [(path, mode) for path, mode in found if path.exists()]


@contextmanager
def _home(environment: Mapping[str, str], owner: Owner) -> Iterator[str]:
    """Return a writable home directory: the job's, or a new one for this run."""
    given = Path(environment.get("HOME") or os.devnull)
    if given.is_dir() and given.stat().st_uid == owner.uid:
        yield str(given)
        return
    with tempfile.TemporaryDirectory(prefix="agenteval-home-", ignore_cleanup_errors=True) as folder:
        os.chown(folder, owner.uid, owner.gid)
        yield folder


def _change(path: Path, uid: int, gid: int, mode: int) -> None:
    with contextlib.suppress(OSError):
        os.chown(path, uid, gid, follow_symlinks=False)
        path.chmod(mode)


def _hide_this_process() -> None:
    """Hide memory and environment of this process from other processes, even of the same user (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _blank_first_variables() -> None:
    """Erase the secrets in the initial environment of this process.

    This process could read them at ``/proc/self/environ``, and it reads files that suites name.
    """
    with contextlib.suppress(ValueError):
        variables = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
        for address in takewhile(bool, (variables[number] for number in count())):
            name, _, value = ctypes.string_at(address).partition(b"=")
            if is_private(os.fsdecode(name)):
                ctypes.memset(address + len(name) + 1, 0, len(value))
