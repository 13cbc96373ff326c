"""Excludes a second program from a report directory."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.files.writing import open_shared, remove_file

LOCK_FILE = ".agenteval.lock"
_MOST = 100  # bytes that name the holder
# Windows locks bytes, and others cannot read them: a byte behind the text.
_LOCKED_BYTE = 1 << 20


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory inside the block. The system releases the lock of a process that ends.

    Args:
        directory: the directory, which exists.

    Raises:
        InfrastructureError: another program holds the lock, or the lock file cannot be created.
    """
    descriptor = _acquired(directory)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}, since {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}".encode())
        yield
    finally:
        # Removed before it is released: a process that opens it later notices that it is gone, and creates another.
        if os.name == "posix":
            remove_file(directory, LOCK_FILE)
        os.close(descriptor)


def _acquired(directory: Path) -> int:
    while True:
        try:
            descriptor = open_shared(directory, LOCK_FILE)
        except OSError as error:
            raise InfrastructureError(f"cannot write {directory / LOCK_FILE}: {error.strerror}") from None
        try:
            _lock(descriptor)
            if _is_current(descriptor, directory / LOCK_FILE):
                return descriptor
        except (BlockingIOError, PermissionError):
            holder = _holder(descriptor)
            os.close(descriptor)
            raise InfrastructureError(
                f"another agenteval writes to {directory}{holder}; wait for it, or choose another directory"
            ) from None
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            # Some network file systems have no locks.
            return


def _is_current(descriptor: int, path: Path) -> bool:
    """Return whether the file was not removed since it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    text = ""
    with contextlib.suppress(OSError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        text = os.read(descriptor, _MOST).decode("utf-8", "replace")
    return f" ({text})" if text.isprintable() and text else ""
