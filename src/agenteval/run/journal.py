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
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TextIO

from agenteval import __version__
from agenteval.errors import InfrastructureError
from agenteval.results.model import CaseResult, CaseStatus, RunUsage, SuiteResult

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
        self._path = path
        self._keep = keep
        self._file: TextIO | None = None
        self._asked = RunUsage()

    def __enter__(self) -> Journal:
        try:
            if self._keep is not None:
                os.truncate(self._path, self._keep)
            mode: Literal["w", "a"] = "w" if self._keep is None else "a"
            self._file = self._path.open(mode, encoding="utf-8", errors="backslashreplace")
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
        """One finished case, as JSON; the byte where its line begins, for ``read_case``."""
        # Every line is flushed.
        place = os.fstat(self._file.fileno()).st_size if self._file is not None else 0
        self._write(f'{{"suite": {json.dumps(suite)}, "case": {case}}}')
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


def read_case(path: Path, place: int) -> CaseResult:
    """The case whose line begins at a byte of a journal."""
    with path.open("rb") as lines:
        lines.seek(place)
        return CaseResult.model_validate(json.loads(lines.readline())["case"])


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
