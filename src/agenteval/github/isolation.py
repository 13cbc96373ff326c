"""Isolates user code in the action's container from the job's secrets and the runner's files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from agenteval.core.confine import confined
from agenteval.core.files import Owner
from agenteval.core.process_groups import reap_orphans
from agenteval.core.secrets import COMMAND_FILES
from agenteval.core.shared_files import safe_directory
from agenteval.github.runner import warn
from agenteval.github.workspace import SOCKETS, owner_of

# Bytes of a configuration that are searched, and the most configurations.
_SEARCHED = 100_000
_MOST = 1000
_CONFIGS = (
    *("config", "config.worktree", "modules/*/config", "modules/*/*/config", "modules/*/modules/*/config"),
    "worktrees/*/config.worktree",
)
# Repositories are checked out in the workspace or in folders of it.
_REPOSITORIES = (".git", "*/.git", "*/*/.git")
_TOKEN = re.compile(rb"authorization\s*:\s*\S|://[^/\s@:]*:[^/\s@]+@", re.IGNORECASE)
_INCLUDED = re.compile(rb'^\s*path\s*=\s*"?([^"\r\n]+?)"?\s*$', re.MULTILINE | re.IGNORECASE)


def files_with_tokens(workspace: Path) -> list[Path]:
    """Return the configurations of git that contain a token, and the files that they include, of all checkouts."""
    return sorted({path for path in islice(_configurations(workspace), _MOST) if _TOKEN.search(_text(path))})


def _configurations(workspace: Path) -> Iterator[Path]:
    for repository in _REPOSITORIES:
        for folder in workspace.glob(repository):
            for name in _CONFIGS:
                for path in folder.glob(name):
                    yield path
                    for included in _INCLUDED.findall(_text(path)):
                        yield path.parent / os.fsdecode(included)


def _text(path: Path) -> bytes:
    with contextlib.suppress(OSError, ValueError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if stat.S_ISREG(os.fstat(opened).st_mode):
                return file.read(_SEARCHED)
    return b""


# The directory cannot be listed, and only root can replace its files (sticky bit). The runner can still create the
# files of the next step, if this process is killed; their names cannot be guessed.
_UNLISTED = 0o1733
_CLOSED = 0o600
# Everybody can create files in the temporary directory, and only root can rename what is root's.
_STICKY = 0o1777
# The runner's scripts, the credentials and the SSH keys of actions/checkout have such names in RUNNER_TEMP.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HIDDEN = "agenteval-hidden-"


@contextmanager
def hidden_files(environment: Mapping[str, str], owner: Owner) -> Iterator[None]:
    """Close the runner's files inside the block: user code can neither list, open nor replace them.

    The end of the step gives back what a killed process could not (:func:`restore_files`).
    """
    with contextlib.ExitStack() as before:
        temporary = _temporary_directory(environment)
        if temporary is not None:
            before.enter_context(_closed_temporary_directory(temporary, owner))
        for path, mode in _runner_files(environment):
            found = path.stat()
            before.callback(_change, path, found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
            _change(path, 0, 0, mode)
        yield


def restore_files(environment: Mapping[str, str]) -> None:
    """Restore the files that :func:`hidden_files` hid and a killed run did not restore; they are the workspace's."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or os.devnull)
    if os.geteuid() != 0 or not workspace.is_dir():
        return
    found = workspace.stat()
    for path, _ in _runner_files(environment):
        _change(path, found.st_uid, found.st_gid, 0o755 if path.is_dir() else 0o644)
    temporary = _temporary_directory(environment)
    for folder in _content(temporary) if temporary is not None else ():
        if temporary is not None and folder.name.startswith(_HIDDEN) and _is_of(folder, stat.S_ISDIR, {0}):
            _move_back(folder, temporary)
            _change(temporary, found.st_uid, found.st_gid, 0o755)


def _runner_files(environment: Mapping[str, str]) -> list[tuple[Path, int]]:
    """Return the directories and files to protect, each with its new permissions.

    Links are left out: the runner makes none, and root must not follow them.
    """
    named = [Path(environment[name]) for name in COMMAND_FILES if environment.get(name)]
    folders = dict.fromkeys(path.parent for path in named if path.parent.is_dir())
    event = Path(environment.get("GITHUB_EVENT_PATH") or "/")
    found: list[tuple[Path, int]] = []
    for folder in folders:
        found.append((folder, _UNLISTED))
        # The files of other steps lie beside those of this step.
        found += [(path, _CLOSED) for path in _content(folder) if path.is_file()]
    # The file is not secret, but later steps trust its content.
    found += [(event.parent, 0o755), (event, 0o644)] if event.is_file() and event.parent not in folders else []
    return [(path, mode) for path, mode in found if path.exists() and not path.is_symlink()]


def _temporary_directory(environment: Mapping[str, str]) -> Path | None:
    path = Path(environment.get("RUNNER_TEMP") or os.devnull)
    return path if path.is_dir() and not path.is_symlink() else None


@contextmanager
def _closed_temporary_directory(directory: Path, owner: Owner) -> Iterator[None]:
    """Hide scripts and credentials inside the block, and make the directory root's if it is not.

    Files are moved, not closed: git ignores an included file that is missing, but fails if it may not read the file.
    """
    found = directory.stat()
    hidden = Path(tempfile.mkdtemp(prefix=_HIDDEN, dir=directory))
    if found.st_uid != 0:
        _change(directory, 0, 0, _STICKY)
    try:
        for path in _content(directory):
            if _UUID.search(path.name) and _is_of(path, stat.S_ISREG, {0, owner.uid}):
                path.rename(hidden / path.name)
        yield
    finally:
        _move_back(hidden, directory)
        if found.st_uid != 0:
            _change(directory, found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))


def _move_back(hidden: Path, directory: Path) -> None:
    """Move files back, in the place of what user code may have made at their names."""
    for path in _content(hidden):
        there = directory / path.name
        if there.is_dir() and not there.is_symlink():
            there.rename(hidden / secrets.token_hex(8))
        path.rename(there)
    shutil.rmtree(hidden, ignore_errors=True)


def _is_of(path: Path, kind: Callable[[int], bool], users: Collection[int]) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid in users


def _content(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _change(path: Path, uid: int, gid: int, mode: int) -> None:
    with contextlib.suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.fchown(opened, uid, gid)
            os.fchmod(opened, mode)
        finally:
            os.close(opened)


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
    """
    _hide_this_process()
    if os.getpid() == 1:
        reap_orphans()
    owner = owner_of(environment.get("GITHUB_WORKSPACE", ""))
    if owner is None:
        _warn_about_tokens(Path(environment.get("GITHUB_WORKSPACE") or "."))
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
        warn(
            [
                f"the agent can open {path}, and can control this machine with it"
                for path in SOCKETS
                if can_open(owner, path)
            ]
        )
        _warn_about_tokens(Path(environment.get("GITHUB_WORKSPACE", "")))
        yield


def can_open(owner: Owner, socket: Path) -> bool:
    """Return whether a user can write to a socket and so control its server."""
    try:
        found = socket.stat()
    except OSError:
        return False
    is_owner, is_group = found.st_uid == owner.uid, found.st_gid == owner.gid
    return bool(found.st_mode & (stat.S_IWUSR if is_owner else stat.S_IWGRP if is_group else stat.S_IWOTH))


def _warn_about_tokens(workspace: Path) -> None:
    found = files_with_tokens(workspace)
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
