"""Writes finished cases to ``journal.jsonl`` immediately, so that a crash loses only unfinished ones.

The first line identifies the run and its conditions. Each further line is one of:

* ``{"suite", "case"}``: a finished case,
* ``{"suite", "of", "iteration"}``: a finished iteration of a case with several iterations,
* ``{"asked", "judged"}``: the usage of models so far, and the number of judged answers by suite,
* ``{"resumed", "active_s"}``: the run was resumed; the time of that, and the duration of the run before it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import weakref
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.errors import InfrastructureError
from agenteval.core.version import __version__
from agenteval.core.writing import create_file, remove_file, remove_regular_file, reopen_file
from agenteval.results.model import RunUsage
from agenteval.run.plan import KeptLines

ModelT = TypeVar("ModelT", bound=BaseModel)

JOURNAL_FILE = "journal.jsonl"
# The journals of the runs of a confirmation.
CONFIRMATION_FILE = re.compile(r"confirmation(-[0-9]+)?\.jsonl")
# Bytes read at once: cases finish nearly in suite order, so the next case is usually in the buffer.
_BUFFER = 1 << 16


def confirmation_file(number: int) -> str:
    """Return the name of the journal of a confirmation's request, which are counted from 1."""
    return f"confirmation-{number}.jsonl"


def remove_confirmations(directory: Path) -> None:
    """Remove the journals of the confirmation of an earlier run."""
    for name in sorted(path.name for path in directory.iterdir() if CONFIRMATION_FILE.fullmatch(path.name)):
        remove_file(directory, name)


def remove_journals(directory: Path) -> None:
    """Remove the journals of an earlier run and of its confirmation.

    Raises:
        InfrastructureError: the journal is a link or no regular file, or cannot be removed.
    """
    remove_confirmations(directory)
    remove_regular_file(directory, JOURNAL_FILE)


class PositionedFile(io.RawIOBase):
    """Reads an open file from its beginning, without moving the place where it is written.

    Args:
        descriptor: the file, which is not closed with this object.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._place = 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place, from the beginning of the file or from the current place."""
        self._place = offset + (self._place if whence == os.SEEK_CUR else 0)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        data = _read_at(self._descriptor, len(buffer), self._place)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def _check_kept(kept: KeptLines, file: PositionedFile) -> None:
    """Check that a journal begins with the lines that were read.

    Raises:
        InfrastructureError: it is another one by now.
    """
    digest, left = hashlib.sha256(), kept.size
    while left and (piece := file.read(min(left, _BUFFER))):
        digest.update(piece)
        left -= len(piece)
    if digest.digest() != kept.digest:
        raise InfrastructureError("--resume: the journal has changed since it was read; run the command again")


def _read_at(descriptor: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, place)
    # Lines are appended wherever the file's position is.
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


class Journal:
    """A journal that is open for writing.

    Args:
        keep: the beginning of the existing file to keep; ``None`` replaces the file.

    Raises:
        InfrastructureError: the file cannot be written; every method can raise it.
    """

    def __init__(self, path: Path, keep: KeptLines | None = None) -> None:
        self.path = path
        self._keep = keep
        self._descriptor: int | None = None
        self._is_writable = False
        self._size = 0
        self._asked = RunUsage()

    @property
    def is_opened(self) -> bool:
        """Whether the file was opened, perhaps for writing no more."""
        return self._descriptor is not None

    def __enter__(self) -> Journal:
        try:
            self._descriptor = self._opened()
            self._is_writable = True
        except OSError as error:
            raise self._unwritable(error) from None
        # It stays open for reading while this object lives.
        weakref.finalize(self, os.close, self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_writable = False

    def _opened(self) -> int:
        if self._keep is None:
            return create_file(self.path.parent, self.path.name)
        descriptor = reopen_file(self.path.parent, self.path.name)
        try:
            _check_kept(self._keep, PositionedFile(descriptor))
            os.ftruncate(descriptor, self._keep.size)
        except BaseException:
            os.close(descriptor)
            raise
        self._size = self._keep.size
        return descriptor

    def read(self) -> BinaryIO:
        """Return the lines for ``case_text``, from the file that was written, whatever the path names by now.

        Raises:
            InfrastructureError: the journal was never opened.
        """
        if self._descriptor is None:
            raise InfrastructureError(f"cannot read {self.path}: the run wrote no journal")
        return io.BufferedReader(PositionedFile(self._descriptor), _BUFFER)

    def begin(self, run_id: str, suites: Mapping[str, str], **more: Any) -> None:
        """Write the first line.

        Args:
            more: data that a resumed run needs, as JSON; see `run.journal.resume`.
        """
        self._write(json.dumps({"run": run_id, "version": __version__, "suites": dict(suites), **more}))

    def resume(self, resumed: float, active_s: float) -> None:
        """Record that an interrupted run is resumed.

        Args:
            resumed: time of resumption, in seconds since the epoch.
            active_s: duration of the run before the interruption, in seconds.
        """
        self._write(json.dumps({"resumed": resumed, "active_s": active_s}))

    def add(self, suite: str, case: str) -> int:
        """Write a finished case, as JSON; return the byte offset of its line, for ``case_text``."""
        place = self._size
        self._write(f"{case_start(suite)}{case}}}")
        return place

    def add_iteration(self, suite: str, case_id: str, iteration: str) -> None:
        """Write a finished iteration of a case, as JSON."""
        self._write(f'{{"suite": {json.dumps(suite)}, "of": {json.dumps(case_id)}, "iteration": {iteration}}}')

    def spend(self, asked: RunUsage, judged: Mapping[str, int]) -> None:
        """Write the usage of models so far, if it has changed."""
        if asked != self._asked:
            self._asked = asked
            self._write(f'{{"asked": {asked.model_dump_json()}, "judged": {json.dumps(dict(judged))}}}')

    def _write(self, line: str) -> None:
        if self._descriptor is None or not self._is_writable:
            return
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        self._size += len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write {self.path}: {error.strerror or error}")


@lru_cache(32)
def case_start(suite: str) -> str:
    """Return the text before the case in its line; ASCII."""
    return f'{{"suite": {json.dumps(suite)}, "case": '


def case_text(lines: BinaryIO, suite: str, place: int) -> bytes:
    """Return the JSON of the case whose line starts at a byte offset; `suite` is the path of its suite."""
    lines.seek(place)
    return case_in(lines.readline(), suite)


def case_in(line: bytes, suite: str) -> bytes:
    """Return the JSON of the case in a line, which starts with ``case_start``."""
    # Without the closing brace and the line break.
    return line[len(case_start(suite)) : -2]


def parsed(model: type[ModelT], text: bytes) -> ModelT:
    """Parse a case's JSON into a model, which may contain only some of its fields."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        # The json module accepts lone surrogates; pydantic's parser does not.
        return model.model_validate(json.loads(text))
