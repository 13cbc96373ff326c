"""Writes finished cases to ``journal.jsonl`` immediately, so that a crash loses only unfinished ones.

The first line identifies the run and its conditions. Each further line is one of:

* ``{"suite", "case"}``: a finished case,
* ``{"suite", "of", "iteration"}``: a finished iteration of a case with several iterations,
* ``{"asked", "judged"}``: the usage of models so far, and the number of judged answers by suite,
* ``{"resumed", "active_s"}``: the run was resumed; the time of that, and the duration of the run before it.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.errors import InfrastructureError
from agenteval.core.version import __version__
from agenteval.core.writing import create_file, open_file, remove_file, remove_regular_file
from agenteval.results.model import RunUsage

ModelT = TypeVar("ModelT", bound=BaseModel)

JOURNAL_FILE = "journal.jsonl"
# The journals of the runs of a confirmation.
CONFIRMATION_FILE = re.compile(r"confirmation(-[0-9]+)?\.jsonl")


def confirmation_file(number: int) -> str:
    """Return the name of the journal of a confirmation's request, which are counted from 1."""
    return f"confirmation-{number}.jsonl"


def remove_confirmations(directory: Path) -> None:
    """Remove the journals of the confirmation of an earlier run."""
    for name in sorted(path.name for path in directory.iterdir() if CONFIRMATION_FILE.fullmatch(path.name)):
        remove_file(directory, name)


def remove_journals(directory: Path) -> None:
    """Remove the journals of an earlier run and of its confirmation."""
    remove_confirmations(directory)
    remove_regular_file(directory, JOURNAL_FILE)


class Journal:
    """A journal that is open for writing.

    Args:
        keep: bytes of the existing file to keep, from its beginning; ``None`` replaces the file.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
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
        descriptor = open_file(self.path.parent, self.path.name, os.O_APPEND)
        try:
            os.ftruncate(descriptor, self._keep)
        except BaseException:
            os.close(descriptor)
            raise
        self._size = self._keep
        return descriptor

    def read(self, place: int, size: int) -> bytes:
        """Return bytes of the file that was written, whatever the path names by now."""
        if self._descriptor is None:
            raise InfrastructureError(f"cannot read {self.path}: the run wrote no journal")
        try:
            return _read_at(self._descriptor, size, place)
        except OSError as error:
            raise InfrastructureError(f"cannot read {self.path}: {error.strerror}") from None

    def begin(self, run_id: str, suites: Mapping[str, str], **more: Any) -> None:
        """Write the first line."""
        self._write_line(json.dumps({"run": run_id, "version": __version__, "suites": dict(suites), **more}))

    def resume(self, resumed: float, active_s: float) -> None:
        """Record that an interrupted run is resumed."""
        self._write_line(json.dumps({"resumed": resumed, "active_s": active_s}))

    def add(self, suite: str, case: bytes) -> int:
        """Write a finished case, as JSON; return the byte offset of the JSON, for ``read``."""
        start = case_start(suite)
        place = self._size + len(start)
        self._write(b"".join((start, case, CASE_END)))
        return place

    def add_iteration(self, suite: str, case_id: str, iteration: str) -> None:
        """Write a finished iteration of a case, as JSON."""
        self._write_line(f'{{"suite": {json.dumps(suite)}, "of": {json.dumps(case_id)}, "iteration": {iteration}}}')

    def spend(self, asked: RunUsage, judged: Mapping[str, int]) -> None:
        """Write the usage of models so far, if it has changed."""
        if asked != self._asked:
            self._asked = asked
            self._write_line(f'{{"asked": {asked.model_dump_json()}, "judged": {json.dumps(dict(judged))}}}')

    def _write_line(self, line: str) -> None:
        self._write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def _write(self, data: bytes) -> None:
        if self._descriptor is None or not self._is_writable:
            return
        self._size += len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write {self.path}: {error.strerror or error}")


def _read_at(descriptor: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, place)
    # Lines are appended wherever the file's position is.
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


@lru_cache(32)
def case_start(suite: str) -> bytes:
    """Return what precedes the case in its line."""
    return f'{{"suite": {json.dumps(suite)}, "case": '.encode()


#: What follows the case in its line.
CASE_END = b"}\n"


def parsed(model: type[ModelT], text: bytes) -> ModelT:
    """Parse a case's JSON into a model, which may contain only some of its fields."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        # The json module accepts lone surrogates; pydantic's parser does not.
        return model.model_validate(json.loads(text))
