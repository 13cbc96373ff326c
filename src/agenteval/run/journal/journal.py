"""Writes what finishes to ``journal.jsonl`` at once, so that a crash loses only what was under way.

The first line says which run it is and under which conditions it runs; then come, one a line,

* ``{"suite", "case"}``: a finished case,
* ``{"suite", "of", "iteration"}``: a finished iteration of a case that has several,
* ``{"asked", "judged"}``: what asking models took so far, and how many answers of judges that were,
* ``{"resumed", "active_s"}``: the run was interrupted and goes on, since when, and how long it had run before.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.errors import InfrastructureError
from agenteval.core.version import __version__
from agenteval.results.model import RunUsage

ModelT = TypeVar("ModelT", bound=BaseModel)

JOURNAL_FILE = "journal.jsonl"
# Of the runs that confirm what looks worse.
CONFIRMATION_FILE = "confirmation.jsonl"


class Journal:
    """The file, open for writing.

    Args:
        path: where.
        keep: so many bytes of what is there stay, and the rest goes; ``None`` starts anew.

    Raises:
        InfrastructureError: from every method, where the file cannot be written.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        self._keep = keep
        self._file: FileIO | None = None
        self._size = 0
        self._asked = RunUsage()

    def __enter__(self) -> Journal:
        try:
            if self._keep is not None:
                os.truncate(self.path, self._keep)
            # Each line is one write of its own: what is written stays if the program is killed.
            self._file = self.path.open("wb" if self._keep is None else "ab", buffering=0)
            self._size = self._keep or 0
        except OSError as error:
            raise self._unwritable(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def begin(self, run_id: str, suites: Mapping[str, str], **more: Any) -> None:
        """The first line.

        Args:
            run_id: which run.
            suites: path and fingerprint of each suite.
            more: what the run must know of itself to be finished later, as JSON; see `run.resume`.
        """
        self._write(json.dumps({"run": run_id, "version": __version__, "suites": dict(suites), **more}))

    def go_on(self, resumed: float, active_s: float) -> None:
        """An interrupted run goes on.

        Args:
            resumed: since when, in seconds since the epoch.
            active_s: how long it had run before, in seconds.
        """
        self._write(json.dumps({"resumed": resumed, "active_s": active_s}))

    def add(self, suite: str, case: str) -> int:
        """One finished case, as JSON; the byte where its line begins, for ``case_text``."""
        place = self._size
        self._write(f"{case_start(suite)}{case}}}")
        return place

    def add_iteration(self, suite: str, case_id: str, iteration: str) -> None:
        """One finished iteration of a case, as JSON."""
        self._write(f'{{"suite": {json.dumps(suite)}, "of": {json.dumps(case_id)}, "iteration": {iteration}}}')

    def spend(self, asked: RunUsage, judged: Mapping[str, int]) -> None:
        """What asking models took so far, where that has changed."""
        if asked != self._asked:
            self._asked = asked
            self._write(f'{{"asked": {asked.model_dump_json()}, "judged": {json.dumps(dict(judged))}}}')

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        self._size += len(data)
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write {self.path}: {error.strerror or error}")


@lru_cache(32)
def case_start(suite: str) -> str:
    """What stands before a case in its line; ASCII."""
    return f'{{"suite": {json.dumps(suite)}, "case": '


def case_text(lines: BinaryIO, suite: str, place: int) -> bytes:
    """The JSON of the case whose line begins at a byte of a journal; `suite` is the path of its suite."""
    lines.seek(place)
    # Without the brace and the end of the line.
    return lines.readline()[len(case_start(suite)) : -2]


def parsed(model: type[ModelT], text: bytes) -> ModelT:
    """As much of a case's JSON as a model holds."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        # The parser of Python's own takes lone surrogates.
        return model.model_validate(json.loads(text))
