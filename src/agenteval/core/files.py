"""Opens the files that others name: suites, configurations, recordings, options."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace


@dataclass(frozen=True)
class Owner:
    """A user and group: of files, or that user code runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Boundary:
    """The limits of all file access.

    Attributes:
        roots: directories that contain every file that others name or that is written; empty for everywhere.
        owner: the user of the workspace; folders that agenteval makes are given to this user, and folders of other
            users are refused, and so are files that this user may not read. ``None`` for the current user, without
            that check.
        own: directories of agenteval, whose files need not be readable by the owner.
    """

    roots: tuple[Path, ...] = ()
    owner: Owner | None = None
    own: tuple[Path, ...] = ()

    def contains(self, path: Path) -> bool:
        """Return whether a path without links is inside."""
        return not self.roots or any(path.is_relative_to(root) for root in self.roots)


# Of the whole process, because files are also read in threads, which do not inherit context variables.
_in_force = Boundary()


def boundary() -> Boundary:
    """Return the limits in force."""
    return _in_force


@contextmanager
def bounded(roots: Sequence[Path], owner: Owner | None) -> Iterator[None]:
    """Limit file access of the process inside the block; see ``Boundary``."""
    with _boundary_in_force(Boundary(tuple(root.resolve() for root in roots), owner)):
        yield


@contextmanager
def also_inside(root: Path) -> Iterator[None]:
    """Allow files of another directory inside the block, if there are limits.

    A directory whose path is inside already adds nothing: there, a link must not lead out.
    """
    named = _absolute(root)
    now = replace(_in_force, own=(*_in_force.own, named, root.resolve()))
    with _boundary_in_force(
        now if now.contains(named) else replace(now, roots=tuple(dict.fromkeys((*now.roots, named, root.resolve()))))
    ):
        yield


def outside_problem(path: Path) -> str:
    """Return why a path may not be written to; empty if it is inside.

    Args:
        path: the path as it was named. Links on it are not followed, because writing refuses them.
    """
    if _in_force.contains(_absolute(path)):
        return ""
    allowed = " and ".join(map(str, _in_force.roots[:2]))
    return f"{path} is outside of the directories that may be written ({allowed}); name a path in the workspace"


def outside_reading(path: Path) -> str:
    """Return why a file may not be read; empty if it is inside."""
    if _in_force.contains(path):
        return ""
    allowed = " and ".join(map(str, _in_force.roots))
    return f"it is outside of the directories that may be read ({allowed})"


def _absolute(path: Path) -> Path:
    # Not resolved, because links must be seen.
    return Path(os.path.abspath(path))  # noqa: PTH100


@contextmanager
def _boundary_in_force(new: Boundary) -> Iterator[None]:
    global _in_force  # noqa: PLW0603 - one limit for all threads
    before, _in_force = _in_force, new
    try:
        yield
    finally:
        _in_force = before


def base_of(path: Path) -> Path:
    """Return the nearest directory above an absolute path whose own place is trusted.

    Below it, every folder is checked for links. With a boundary, this is the root that contains the path, which must
    be inside. Without one, it is the repository or working directory that contains the path, else the path itself:
    its user named it.
    """
    roots = _in_force.roots
    if roots:
        inside = [root for root in roots if path.is_relative_to(root)]
        return max(inside, key=lambda root: len(root.parts))
    here = Path.cwd()
    project = next((folder for folder in (here, *here.parents) if os.path.lexists(folder / ".git")), here)
    return project if path.is_relative_to(project) else path


# Opens the files that a suite, a configuration, a recording or an option names.
#
# Every such file must be a regular file with a limited size, outside of the kernel's file systems and inside the
# boundary of the process. Opening never waits; opening a pipe, terminal or device could block for ever.


# Bytes of a text that is parsed as a whole.
LARGEST_TEXT = 200_000_000
# Bytes of a file that is read line by line, such as a recording, also after unpacking.
LARGEST_RECORDING = 20_000_000_000
# Bytes of a file that belongs to a case.
LARGEST_ATTACHMENT = 500_000_000
# Bytes of a results file.
LARGEST_RESULTS = 4_000_000_000

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KERNEL = tuple(map(Path, ("/proc", "/sys", "/dev")))
# Memory that programs share, as ordinary files.
_ORDINARY = Path("/dev/shm")  # noqa: S108 - only a name
_DESCRIPTORS = Path("/proc/self/fd")
_MOST_LINKS = 40
# The most files and folders that a search below a folder looks at.
MOST_ENTRIES = 200_000


def open_regular(path: Path, *, limit: int) -> BufferedReader:
    """Open a regular file for reading.

    Args:
        path: the file; links are followed.
        limit: maximum size in bytes.

    Raises:
        OSError: it cannot be opened, or is not a file that may be read; ``strerror`` explains why.
        ValueError: the path is invalid, for instance because of a null byte.
    """
    # First by name, because opening a device can have effects.
    _check(path.stat(), limit)
    _check_way(path)
    descriptor = os.open(path, _FLAGS)
    try:
        _check(os.fstat(descriptor), limit)
        real = _opened(descriptor, path)
        _check_place(real)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, *, limit: int) -> bytes:
    """Read a regular file as a whole; see ``open_regular``.

    Raises:
        OSError: also if the file changed while it was read.
    """
    with open_regular(path, limit=limit) as file:
        before = os.fstat(file.fileno())
        # One more byte, to notice that the file has grown.
        content = file.read(before.st_size + 1)
        after = os.fstat(file.fileno())
    if len(content) != after.st_size or _version_of(before) != _version_of(after):
        raise OSError(errno.EBUSY, "it changed while it was read")
    return content


def below(directory: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk a directory like ``os.walk``, without links to folders, and in the order of names."""
    seen = 0
    for folder, folders, names in os.walk(directory):
        seen += len(folders) + len(names)
        if seen > MOST_ENTRIES:
            raise OSError(errno.EFBIG, f"has more than {MOST_ENTRIES:,} files and folders; name a smaller folder")
        folders.sort()
        yield Path(folder), folders, sorted(names)


def _check(found: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"it is {kind_of(found.st_mode)}, not a regular file")
    if found.st_size > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")


def _check_way(path: Path) -> None:
    """Check that neither the path nor a link on the way leads through a file system of the kernel.

    A link in ``/proc`` can lead to any open file, so the place where a path ends does not show it.
    """
    for _ in range(_MOST_LINKS):
        path = Path(os.path.realpath(path.parent), path.name)
        _refuse_kernel(path)
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
        # Not resolved, which would follow a link in `/proc`.
        _refuse_kernel(Path(os.path.abspath(path)))  # noqa: PTH100


def _check_place(path: Path) -> None:
    _refuse_kernel(path)
    if outside := outside_reading(path):
        raise OSError(errno.EINVAL, outside)
    owner = _in_force.owner
    if owner is None or any(path.is_relative_to(root) for root in _in_force.own):
        return
    root = next((root for root in _in_force.roots if path.is_relative_to(root)), path.parent)
    folders = [folder for folder in path.parents if folder.is_relative_to(root)]
    may_read = _may(path.stat(), owner, stat.S_IROTH)
    if not may_read or not all(_may(folder.stat(), owner, stat.S_IXOTH) for folder in folders):
        raise PermissionError(errno.EACCES, "the owner of the workspace may not read it")


def _may(found: os.stat_result, owner: Owner, right: int) -> bool:
    """Return whether a user has a right, which is named as that of all others."""
    if found.st_uid == owner.uid:
        return bool(found.st_mode & right << 6)
    return bool(found.st_mode & (right << 3 if found.st_gid == owner.gid else right))


def _refuse_kernel(path: Path) -> None:
    if any(path.is_relative_to(root) for root in _KERNEL) and not path.is_relative_to(_ORDINARY):
        raise OSError(errno.EINVAL, "it belongs to the kernel, and is not a regular file")


def _opened(descriptor: int, path: Path) -> Path:
    try:
        # The path could have been changed since.
        return (_DESCRIPTORS / str(descriptor)).readlink()
    except OSError:
        return path.resolve()


def _version_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def kind_of(mode: int) -> str:
    """Return the kind of a file for messages, by the mode of its status."""
    kinds = (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "a file")


_GZIP = b"\x1f\x8b"
_SKIPPED_AT_ONCE = 1 << 16


def read_lines(file: Path, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield every line of a file with its number from 1; ``None`` for an overlong line.

    Only a line feed ends a line. A byte order mark is removed.

    Args:
        longest: maximum length of a line in bytes.
    """
    try:
        with _unpacked(file) as source:
            yield from _lines(source, longest)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(Problem(f"broken gzip data: {error}", file=str(file), kind=Kind.FILE)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file), kind=Kind.FILE)) from None


def read_head(file: Path, size: int) -> bytes:
    """Return the first bytes of a file, unpacked; empty if the file is unreadable or can be read only once."""
    try:
        with _unpacked(file) as source:
            return source.read(size).removeprefix(codecs.BOM_UTF8)
    except (EOFError, zlib.error, OSError):
        return b""


@contextmanager
def _unpacked(file: Path) -> Iterator[BinaryIO]:
    with open_regular(file, limit=LARGEST_RECORDING) as source:
        is_gzip = source.read(len(_GZIP)) == _GZIP
        source.seek(0)
        if not is_gzip:
            yield source
            return
        with gzip.open(source) as unpacked:
            yield cast("BinaryIO", unpacked)


def _lines(source: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | None]]:
    number = size = 0
    while line := source.readline(longest + 1):
        number += 1
        size = _within_limit(size + len(line))
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) <= longest or line.endswith(b"\n"):
            yield number, line
            continue
        del line
        while (piece := source.readline(_SKIPPED_AT_ONCE)) and not piece.endswith(b"\n"):
            size = _within_limit(size + len(piece))
        yield number, None


def _within_limit(size: int) -> int:
    """Return a number of bytes; a packed file can contain far more than its own size."""
    if size > LARGEST_RECORDING:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST_RECORDING:,} bytes")
    return size
