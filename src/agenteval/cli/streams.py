"""Standard output and error that may be closed, full, or read by nobody: what they cannot take is dropped.

The gate decides the exit status, and the reports contain the results, so output without a reader changes neither.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The reader has ended, or there never was one.
_UNREAD = {errno.EPIPE, errno.EBADF, errno.ECONNRESET, errno.ESHUTDOWN}


class _Output(io.FileIO):
    """A file descriptor that takes any bytes; after its first error it drops them."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.problem: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write as much as the descriptor takes, or drop all; returns the number of bytes."""
        size = memoryview(data).nbytes
        if self.problem is not None:
            return size
        try:
            while (written := super().write(data)) is None:
                # Who started us made it non-blocking.
                select.select([], [self], [])
        except OSError as error:
            self.problem = error
            return size
        return written


def protect_standard_streams() -> None:
    """Make errors of standard output and error harmless, and escape characters that their encoding lacks.

    A stream that was closed at the start writes to the null device: the next file that is opened must not get its
    descriptor. Streams that a caller of :func:`agenteval.cli.main.main` put in place stay.
    """
    _open_missing_descriptors()
    sys.stdout = _protected(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _protected(sys.stderr, sys.__stderr__, 2)


def loss(stream: TextIO) -> str:
    """Flush a stream; return why text was lost, in words, or an empty text.

    A reader that ended early, as ``head`` does, wanted no more text.
    """
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    problem = raw.problem if isinstance(raw, _Output) else None
    return "" if problem is None or problem.errno in _UNREAD else str(problem.strerror)


def _open_missing_descriptors() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system gives the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _protected(stream: TextIO | None, original: TextIO | None, descriptor: int) -> TextIO:
    is_console = sys.platform == "win32" and stream is not None and stream.isatty()
    if stream is not original or is_console:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
        return stream or io.StringIO()
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor)),
        encoding=stream.encoding if stream is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=stream is None or bool(getattr(stream, "line_buffering", False)),
        write_through=descriptor == 2,
    )
