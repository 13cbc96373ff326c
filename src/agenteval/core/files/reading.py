"""Opens the files that a suite, a configuration, a recording or an option names.

Every such file must be a regular file with a limited size, outside of the kernel's file systems and inside the
boundary of the process. Opening never waits; opening a pipe, terminal or device could block for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path

from agenteval.core.files.boundary import outside_reading

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
_opened_files: ContextVar[set[Path] | None] = ContextVar("opened_files", default=None)


@contextmanager
def noting_reads() -> Iterator[set[Path]]:
    """Yield a set that receives the real path of each file that the block opens."""
    opened: set[Path] = set()
    outer = _opened_files.get()
    token = _opened_files.set(opened)
    try:
        yield opened
    finally:
        _opened_files.reset(token)
        if outer is not None:
            outer |= opened


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
        if (noted := _opened_files.get()) is not None:
            noted.add(real)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, *, limit: int) -> bytes:
    """Read a regular file as a whole; see ``open_regular``.

    Raises:
        OSError: also if the file changed while it was read.
        ValueError: the path is invalid.
    """
    with open_regular(path, limit=limit) as file:
        before = os.fstat(file.fileno())
        # One more byte, to notice that the file has grown.
        content = file.read(before.st_size + 1)
        after = os.fstat(file.fileno())
    if len(content) != after.st_size or _changed(before) != _changed(after):
        raise OSError(errno.EBUSY, "it changed while it was read")
    return content


def is_stream(path: Path) -> bool:
    """Return whether a path names a pipe or an open descriptor, such as standard input, which is read only once."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode) or path.is_relative_to("/dev") or path.is_relative_to("/proc")
    except (OSError, ValueError):
        return False


def below(directory: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk a directory like ``os.walk``, without links to folders, and in the order of names.

    Raises:
        OSError: there are too many entries.
    """
    seen = 0
    for folder, folders, names in os.walk(directory):
        seen += len(folders) + len(names)
        if seen > MOST_ENTRIES:
            raise OSError(errno.EFBIG, f"has more than {MOST_ENTRIES:,} files and folders; name a smaller folder")
        folders.sort()
        yield Path(folder), folders, sorted(names)


def _check(found: os.stat_result, limit: int) -> None:
    """Check the kind and size of a file."""
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
    """Check the place of an opened file."""
    _refuse_kernel(path)
    if outside := outside_reading(path):
        raise OSError(errno.EINVAL, outside)


def _refuse_kernel(path: Path) -> None:
    if any(path.is_relative_to(root) for root in _KERNEL) and not path.is_relative_to(_ORDINARY):
        raise OSError(errno.EINVAL, "it belongs to the kernel, and is not a regular file")


def _opened(descriptor: int, path: Path) -> Path:
    """Return the place of an opened file."""
    try:
        # The path could have been changed since.
        return (_DESCRIPTORS / str(descriptor)).readlink()
    except OSError:
        return path.resolve()


def _changed(found: os.stat_result) -> tuple[int, int]:
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
