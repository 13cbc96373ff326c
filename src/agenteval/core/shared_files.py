"""Files that other programs use too: caches, a locked report directory, temporary directories."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agenteval.core.errors import ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.records import dataclass, field
from agenteval.core.writing import make_directory, open_file, remove_file, write_file

# Not from the environment: the job could name a directory that user code can rename.
_TEMPORARY = tuple(map(Path, ("/var/tmp", "/tmp", "/run")))  # noqa: S108 - checked before use


def safe_directory() -> Path:
    """Return a directory in which no other user can rename the folders of root."""
    for path in _TEMPORARY:
        with contextlib.suppress(OSError):
            found = path.lstat()
            others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            is_safe = stat.S_ISDIR(found.st_mode) and found.st_uid == 0
            if is_safe and (not others_write or found.st_mode & stat.S_ISVTX):
                return path
    raise InfrastructureError(
        f"no directory for private files; one of {', '.join(map(str, _TEMPORARY))} must be root's"
    )


# Proves that a cache entry was written by a run with the same key.
#
# User code can write to many places where caches live, and it can compute the name of an entry, because agenteval is
# readable. Every entry of a cache that outlives a case therefore carries an HMAC-SHA256 of its key and its content.
# An entry without a valid code counts as missing.


CACHE_KEY = "AGENTEVAL_CACHE_KEY"
# Codes can be read, so a short key could be found by trying all.
SHORTEST_KEY = 16


@dataclass(frozen=True)
class Seal:
    """Makes and checks the codes of entries.

    Attributes:
        key: the secret; ``None`` makes no codes and believes every entry.
    """

    key: str | None = field(default=None, repr=False)

    def code(self, *parts: str) -> str | None:
        """Return the code of an entry; ``None`` without a key.

        Args:
            *parts: the cache's name, then the entry's key and content.
        """
        if self.key is None:
            return None
        # JSON, so that different parts never give the same bytes.
        return hmac.new(
            self.key.encode("utf-8", "surrogateescape"), json.dumps(parts).encode(), hashlib.sha256
        ).hexdigest()

    def confirms(self, code: object, *parts: str) -> bool:
        """Return whether an entry can be believed: its code is valid, or there is no key.

        Args:
            code: as stored; any JSON value.
        """
        expected = self.code(*parts)
        return expected is None or (
            isinstance(code, str) and hmac.compare_digest(expected.encode(), code.encode("utf-8", "replace"))
        )


def seal() -> Seal:
    """Return the seal of ``AGENTEVAL_CACHE_KEY``."""
    key = os.environ.get(CACHE_KEY, "").strip()
    problem = key_problem(key)
    if problem:
        raise ConfigError(Problem(problem, path=CACHE_KEY, kind=Kind.VARIABLE))
    return Seal(key or None)


def key_problem(key: str) -> str | None:
    """Return the problem of a key; ``None`` if the key is empty or long enough."""
    if 0 < len(key) < SHORTEST_KEY:
        return (
            f"the key has {len(key)} characters; use {SHORTEST_KEY} or more, such as those of `openssl rand -hex 32`"
        )
    return None


# Larger files are not of a cache.
_MOST_BYTES = 64 * 2**20
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_cache_file(path: Path, limit: int = _MOST_BYTES) -> bytes | None:
    """Return the content of a file; ``None`` if it is missing, larger than the limit, or not a regular file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not _fits(found, limit):
        return None
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit) if _fits(os.fstat(descriptor), limit) else None


def write_cache_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, and create its directories, which belong to the owner of the workspace.

    Raises:
        OSError: it cannot be written.
    """
    try:
        make_directory(path.parent)
        write_file(path.parent, path.name, content)
    except InfrastructureError as error:
        raise OSError(str(error)) from None


def _fits(found: os.stat_result, limit: int) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_size <= limit


LOCK_FILE = ".agenteval.lock"
_MOST = 100  # bytes that name the holder
# Windows locks bytes, and others cannot read them: a byte behind the text.
_LOCKED_BYTE = 1 << 20


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory inside the block. The system releases the lock of a process that ends."""
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
            descriptor = open_file(directory, LOCK_FILE, os.O_CREAT)
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
