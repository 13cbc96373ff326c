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

from agenteval.ci.github.action.checkout import allows, files_with_tokens
from agenteval.ci.github.action.outputs import warn
from agenteval.ci.github.action.runner_files import hidden_files
from agenteval.ci.github.action.workspace import SOCKETS, owner_of
from agenteval.core.files.safe_directory import safe_directory
from agenteval.core.process.confinement import Owner, confined, is_private
from agenteval.core.process.process_groups import reap_orphans

# Directories in the home directory, unless the job names others.
_FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_PR_SET_DUMPABLE = 4


@contextmanager
def isolated(environment: Mapping[str, str]) -> Iterator[None]:
    """Run user code inside the block with at most the rights of the workspace's owner.

    User code cannot read this process or its home directory, open the socket of the container engine, or find the
    runner's files. Without root privileges, only this process is hidden. Secrets stay in ``os.environ`` and are
    removed from the initial environment that the kernel shows.

    Args:
        environment: environment variables of the container, as the runner set them.
    """
    _hide_this_process()
    _blank_first_variables()
    if os.getpid() == 1:
        reap_orphans()
    owner = owner_of(environment.get("GITHUB_WORKSPACE", ""))
    if owner is None:
        _warn_about_tokens(Path(environment.get("GITHUB_WORKSPACE") or "."), Owner(os.getuid(), os.getgid()))
        yield
        return
    names = {name: environment.get(name) or "runner" for name in ("USER", "LOGNAME")}
    folders = {name: environment[name] for name in (*_FOLDERS, *_TEMPORARY) if name in environment}
    with (
        hidden_files(environment, owner),
        _private_home(),
        _home(environment, owner) as home,
        confined(owner=owner, variables={**folders, "HOME": home, **names}),
    ):
        _warn_about_access(Path(environment.get("GITHUB_WORKSPACE", "")), owner)
        yield


def can_open(owner: Owner, socket: Path) -> bool:
    """Return whether a user can write to a socket and so control its server."""
    try:
        return allows(socket.stat(), owner, stat.S_IWUSR, stat.S_IWGRP, stat.S_IWOTH)
    except OSError:
        return False


def _warn_about_access(workspace: Path, owner: Owner) -> None:
    """Warn if user code can control the machine, or read credentials of git."""
    for socket in SOCKETS:
        if can_open(owner, socket):
            warn([f"the agent can open {socket}, and can control this machine with it"])
    _warn_about_tokens(workspace, owner)


def _warn_about_tokens(workspace: Path, owner: Owner) -> None:
    found = files_with_tokens(workspace, owner)
    if found:
        first = found[0].relative_to(workspace) if found[0].is_relative_to(workspace) else found[0]
        more = f" and {len(found) - 1} more files" if len(found) > 1 else ""
        warn([f"the agent can read a token in {first}{more}; set persist-credentials: false for actions/checkout"])


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


@contextmanager
def _private_home() -> Iterator[None]:
    """Give this process a home directory that user code cannot enter, and a safe place for temporary files.

    agenteval and its libraries keep caches at home, and read settings and data from there. ``TMPDIR`` of the job can
    be a directory in which user code renames the folders of others.
    """
    names = ("HOME", *_FOLDERS, *_TEMPORARY)
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    given, tempfile.tempdir = tempfile.tempdir, str(safe_directory())
    try:
        with tempfile.TemporaryDirectory(prefix="agenteval-private-", ignore_cleanup_errors=True) as folder:
            os.environ["HOME"] = folder
            try:
                yield
            finally:
                del os.environ["HOME"]
    finally:
        tempfile.tempdir = given
        os.environ.update(before)


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
