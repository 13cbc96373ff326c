"""Writes every finished case to ``journal.jsonl`` at once, so that a crash loses only cases in flight."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from agenteval import __version__
from agenteval.errors import InfrastructureError
from agenteval.results.model import CaseResult, CaseStatus, SuiteResult

JOURNAL_FILE = "journal.jsonl"
# Of the runs that confirm what looks worse.
CONFIRMATION_FILE = "confirmation.jsonl"


class Journal:
    """One JSON line about the run, then one per finished case: ``{"suite", "case"}``.

    Raises:
        InfrastructureError: from every method, where the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Journal:
        try:
            self._file = self._path.open("w", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise self._unwritable(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            # Every line is flushed; after an error, closing would only try the same write again.
            with contextlib.suppress(OSError):
                self._file.close()

    def begin(self, run_id: str, suites: dict[str, str]) -> None:
        """The first line: which run, and path and fingerprint of each suite."""
        self._write(json.dumps({"run": run_id, "version": __version__, "suites": suites}))

    def add(self, suite: str, case: CaseResult) -> None:
        """One finished case."""
        self._write(f'{{"suite": {json.dumps(suite)}, "case": {case.model_dump_json()}}}')

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write {self._path}: {error.strerror or error}")


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a journal; a line cut short by a crash is left out."""
    lines = []
    # Not splitlines(): a JSON text may hold other characters that end a line, such as U+2028.
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


class JournalArchive:
    """The cases of a run as its journal has them, for runs too long to be held in memory.

    They come in the order in which they were written.

    Args:
        path: the journal.
        seconds: the agent's time in all cases, by suite path.
        counts: how many cases ended how, by suite path.
    """

    def __init__(self, path: Path, seconds: Mapping[str, float], counts: Mapping[str, Counter[CaseStatus]]) -> None:
        self._path = path
        self._seconds = seconds
        self._counts = counts

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Every case of a suite in full."""
        prefix = f'{{"suite": {json.dumps(suite.path)}, "case": '
        with self._path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if line.startswith(prefix):
                    yield CaseResult.model_validate_json(line.rstrip("\n")[len(prefix) : -1])

    def seconds(self, suite: SuiteResult) -> float:
        """The agent's time in all cases of a suite."""
        return self._seconds.get(suite.path, 0.0)

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """How many cases of a suite ended how."""
        return self._counts.get(suite.path, Counter())
