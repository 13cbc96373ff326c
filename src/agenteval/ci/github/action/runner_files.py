"""Protects the runner's files from user code: command files, the event, and the runner's temporary directory."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.process.confinement import Owner
from agenteval.core.secrets import COMMAND_FILES

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

    Args:
        environment: environment variables of the container, as the runner set them.
        owner: the user of user code.
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


@contextmanager
def reverted_files(environment: Mapping[str, str]) -> Iterator[None]:
    """Undo at the end of the block what user code wrote to the runner's files.

    Without root's rights, the files cannot be hidden from user code, because it runs as their owner.

    Args:
        environment: environment variables of the step, as the runner set them.

    Raises:
        InfrastructureError: a file cannot be restored, for instance because user code has moved its directory; the
            others are restored.
    """
    named = (Path(environment[name]) for name in (*COMMAND_FILES, "GITHUB_EVENT_PATH") if environment.get(name))
    before = {path: path.read_bytes() for path in named if path.is_file() and not path.is_symlink()}
    try:
        yield
    finally:
        problems = [problem for path, content in before.items() if (problem := _revert(path, content))]
        if problems:
            raise InfrastructureError("\n".join(problems))


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
    folders = dict.fromkeys(path.parent for path in named)
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
    """Return the runner's temporary directory, which contains the directories of command files and event."""
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


def _revert(path: Path, content: bytes) -> str:
    """Undo changes of a file; return why that is impossible, or an empty text."""
    try:
        if not _contains(path, content):
            _replace(path, content)
    except OSError as error:
        return f"user code has changed {path}, and it cannot be restored: {error.strerror}"
    return ""


def _contains(path: Path, content: bytes) -> bool:
    """Return whether a file has a content; what is longer is never read, because a sparse file takes no space."""
    try:
        found = path.lstat()
    except OSError:
        return False
    has_its_size = stat.S_ISREG(found.st_mode) and found.st_size == len(content)
    return has_its_size and _beginning(path, found.st_size) == content


def _beginning(path: Path, size: int) -> bytes:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as file:
        return file.read(size)


def _replace(path: Path, content: bytes) -> None:
    """Write a file in the place of anything at its path."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    new.write_bytes(content)
    if path.is_dir() and not path.is_symlink():
        path.rename(new.with_name(f"{new.name}.moved"))
    new.replace(path)


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
