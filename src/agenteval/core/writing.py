"""Writes the files of agenteval without following links.

A file is named by a directory and a name in it, which may contain folders. A directory outside of the boundary is
refused. Below the trusted base of the directory, ``base_of``, each folder is opened by itself, relative to the one
above it, and refused if it is a link or belongs to another user than the workspace. Files are created exclusively
under a temporary name and then renamed, so that no link, not even a hard link, is written through.

Without descriptors of directories (Windows) the same checks are made by path. They do not protect from a program that
changes a folder between check and use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from agenteval.core.errors import InfrastructureError, write_error
from agenteval.core.files import Owner, base_of, boundary, kind_of, outside_problem

# Levels of folders that change their owner; the walk opens all folders on its way, and only user code nests deeper.
_DEEPEST = 100


def change_owner_of(directory: Path, owner: Owner, of: int | None = None) -> None:
    """Give a directory and everything in it to a user; see ``change_owner``."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        change_owner(opened, owner, of)
    finally:
        os.close(opened)


def change_owner(directory: int, owner: Owner, of: int | None = None) -> None:
    """Give an open directory and everything in it to a user; links themselves, not what they name.

    A file of root with several names stays root's, because another name can be anywhere.

    Args:
        owner: the new user; a group of -1 keeps the groups.
        of: change only what belongs to this user; ``None`` for everything.
    """
    if of is None or os.fstat(directory).st_uid == of:
        os.fchown(directory, owner.uid, owner.gid)
    for path, folders, names, opened in os.fwalk(dir_fd=directory):
        for name in (*folders, *names):
            with contextlib.suppress(OSError):
                found = os.stat(name, dir_fd=opened, follow_symlinks=False)
                if of in {None, found.st_uid} and (owner.uid == 0 or not _is_named_elsewhere(found)):
                    os.chown(name, owner.uid, owner.gid, dir_fd=opened, follow_symlinks=False)
        if path.count(os.sep) >= _DEEPEST:
            folders.clear()


def _is_named_elsewhere(found: os.stat_result) -> bool:
    return found.st_uid == 0 and found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)


_BUFFER = 1 << 18  # in bytes
_BY_DESCRIPTOR = {os.open, os.mkdir, os.stat, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _SAFE
_REMOVE = "remove it, or name another directory"


class _Folder:
    """An open directory.

    Args:
        descriptor: its descriptor; ``None`` without support of the system.
    """

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self.descriptor = descriptor

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def name(self, name: str) -> str:
        """Return the path of an entry for a system call with ``descriptor``."""
        return name if self.descriptor is not None else str(self.path / name)

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of an entry, of a link itself; ``None`` if it does not exist."""
        try:
            return os.stat(self.name(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def check_file(self, name: str) -> os.stat_result | None:
        """Check that an entry is a regular file, or does not exist."""
        found = self.status(name)
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise _refused(self.path / name, f"it is {kind_of(found.st_mode)}, not a regular file")
        return found

    def open(self, name: str, flags: int) -> int:
        """Return the descriptor of a regular file that has one name; ``flags`` are those of ``os.open``."""
        self.check_file(name)
        descriptor = os.open(self.name(name), flags | _SAFE | _BINARY, 0o644, dir_fd=self.descriptor)
        return _checked(descriptor, self.path / name)

    def enter(self, name: str) -> _Folder:
        path = self.path / name
        found = self.status(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not stat.S_ISDIR(found.st_mode) or _is_junction(path):
            kind = "a link" if stat.S_ISDIR(found.st_mode) else kind_of(found.st_mode)
            raise _refused(path, f"it is {kind}, not a directory")
        opened = None if self.descriptor is None else os.open(name, _FOLDER, dir_fd=self.descriptor)
        folder, owner = _Folder(path, opened), boundary().owner
        uid = found.st_uid if opened is None else os.fstat(opened).st_uid
        if owner is not None and uid not in {0, os.geteuid(), owner.uid}:
            folder.close()
            raise _refused(path, f"it belongs to another user (id {uid}) than the workspace (id {owner.uid})")
        return folder

    def make(self, name: str) -> _Folder:
        """Open a folder in this one; create it for the owner of the workspace if it does not exist."""
        try:
            os.mkdir(self.name(name), dir_fd=self.descriptor)
        except FileExistsError:
            return self.enter(name)
        folder, owner = self.enter(name), boundary().owner
        if owner is not None and folder.descriptor is not None:
            os.fchown(folder.descriptor, owner.uid, owner.gid)
        return folder


def make_directory(directory: Path) -> None:
    """Create a directory and those above it, and check that files can be written to it."""
    try:
        with _folder(directory, _Folder.make):
            pass
    except OSError as error:
        raise write_error(f"cannot create the directory {directory}", directory, error) from None
    if not os.access(directory, os.W_OK):
        raise InfrastructureError(f"cannot write to the directory {directory}: permission denied")


def write_file(directory: Path, name: str, content: str | bytes | Iterable[str]) -> None:
    """Write a file atomically, and create the folders of its name."""
    path = directory / name
    try:
        with _parent(directory, name) as folder:
            _replace(folder, path.name, [content] if isinstance(content, str) else content)
    except OSError as error:
        raise write_error(f"cannot write {path}", path.parent, error) from None


def create_file(directory: Path, name: str) -> int:
    """Return the descriptor of a new file, for reading and appending; an old file is removed before."""
    with _parent(directory, name) as folder:
        last = PurePath(name).name
        if folder.check_file(last) is not None:
            os.unlink(folder.name(last), dir_fd=folder.descriptor)
        return folder.open(last, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)


def open_file(directory: Path, name: str, flags: int) -> int:
    """Return the descriptor of a file, for reading and writing.

    Args:
        flags: further flags of ``os.open``: ``O_CREAT`` creates a file that does not exist.

    Raises:
        OSError: it cannot be opened.
        InfrastructureError: a part of its path is refused, or it has a second name.
    """
    with _parent(directory, name) as folder:
        return folder.open(PurePath(name).name, os.O_RDWR | flags)


def append_file(path: Path, data: bytes) -> None:
    """Append bytes to a file of the runner, and create it if it does not exist; links are not followed.

    Raises:
        OSError: it cannot be written.
        InfrastructureError: it is not a regular file, or has a second name.
    """
    # The runner's files are outside of the boundary.
    folder = _Folder(path.parent, _open_directory(path.parent))
    try:
        descriptor = folder.open(path.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    finally:
        folder.close()
    with os.fdopen(descriptor, "ab") as stream:
        stream.write(data)


def write_new_file(directory: Path, name: str, data: bytes) -> None:
    """Write a file that does not exist yet, and create the folders of its name."""
    with _parent(directory, name) as folder:
        last = PurePath(name).name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE | _BINARY
        descriptor = os.open(folder.name(last), flags, 0o666, dir_fd=folder.descriptor)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
        except OSError:
            # Part of a file is worse than none.
            os.unlink(folder.name(last), dir_fd=folder.descriptor)
            raise


def remove_file(directory: Path, name: str) -> None:
    """Remove a file, or a link itself, if it exists; a directory stays."""
    with contextlib.suppress(OSError, InfrastructureError), _parent(directory, name) as folder:
        os.unlink(folder.name(PurePath(name).name), dir_fd=folder.descriptor)


def remove_regular_file(directory: Path, name: str) -> None:
    """Remove a file if it exists."""
    path = directory / name
    try:
        with _parent(directory, name) as folder:
            if folder.check_file(path.name) is not None:
                os.unlink(folder.name(path.name), dir_fd=folder.descriptor)
    except OSError as error:
        raise write_error(f"cannot remove {path}", path.parent, error) from None


def give_to_owner(directory: Path) -> None:
    """Give a directory with everything in it to the owner of the workspace; links themselves, not what they name."""
    owner = boundary().owner
    if owner is None or not _BY_DESCRIPTOR:
        return
    with contextlib.suppress(OSError, InfrastructureError), _folder(directory) as opened:
        if opened.descriptor is None:
            return
        change_owner(opened.descriptor, owner)


@contextmanager
def _folder(directory: Path, step: Callable[[_Folder, str], _Folder] = _Folder.enter) -> Iterator[_Folder]:
    """Open a directory, with a step for each folder below its trusted base.

    Raises:
        InfrastructureError: it is outside of the boundary, or a part of its path is refused.
    """
    if problem := outside_problem(directory):
        raise InfrastructureError(problem)
    # Not resolved, because links must be seen.
    absolute = Path(os.path.abspath(directory))  # noqa: PTH100
    base = base_of(absolute)
    if step is _Folder.make:
        _make_base(base)
    folder = _Folder(base, _open_directory(base))
    try:
        for name in absolute.relative_to(base).parts:
            inner = step(folder, name)
            folder.close()
            folder = inner
        # Messages name it as its user does.
        folder.path = directory
        yield folder
    finally:
        folder.close()


def _make_base(base: Path) -> None:
    """Create a trusted base and what is missing above it, for the owner of the workspace."""
    missing = [folder for folder in (base, *base.parents) if not os.path.lexists(folder)]
    base.mkdir(parents=True, exist_ok=True)
    owner = boundary().owner
    if owner is None or not hasattr(os, "chown"):
        return
    for folder in missing:
        os.chown(folder, owner.uid, owner.gid, follow_symlinks=False)


@contextmanager
def _parent(directory: Path, name: str) -> Iterator[_Folder]:
    """Open the folder that contains a file; create the folders of its name."""
    with _folder(directory) as folder, contextlib.ExitStack() as opened:
        for part in PurePath(name).parent.parts:
            folder = folder.make(part)  # noqa: PLW2901
            opened.callback(folder.close)
        yield folder


def _open_directory(path: Path) -> int | None:
    return os.open(path, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0)) if _BY_DESCRIPTOR else None


def _replace(folder: _Folder, name: str, content: bytes | Iterable[str]) -> None:
    folder.check_file(name)
    temporary = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE | _BINARY
    descriptor = os.open(folder.name(temporary), flags, 0o600, dir_fd=folder.descriptor)
    try:
        with os.fdopen(descriptor, "wb", buffering=_BUFFER) as file:
            pieces = [content] if isinstance(content, bytes) else (_encoded(piece) for piece in content)
            file.writelines(pieces)
            if hasattr(os, "fchmod"):
                # Reports are for everyone, whatever the process's mask of permissions.
                os.fchmod(file.fileno(), 0o644)
            owner = boundary().owner
            if owner is not None and hasattr(os, "fchown"):
                os.fchown(file.fileno(), owner.uid, owner.gid)
        at = folder.descriptor
        os.replace(folder.name(temporary), folder.name(name), src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        # Also if producing the text failed, or after Ctrl-C.
        with contextlib.suppress(OSError):
            os.unlink(folder.name(temporary), dir_fd=folder.descriptor)
        raise


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _checked(descriptor: int, path: Path) -> int:
    found = os.fstat(descriptor)
    try:
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, f"it is {kind_of(found.st_mode)}, not a regular file")
        if found.st_nlink > 1:
            raise _refused(path, "it is a hard link, a second name of another file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refused(path: Path, why: str) -> InfrastructureError:
    return InfrastructureError(f"{path}: {why}; {_REMOVE}")


def _is_junction(path: Path) -> bool:
    """Return whether a path is a junction, the link to a directory of Windows."""
    return os.name == "nt" and path.resolve() != path.parent.resolve() / path.name
