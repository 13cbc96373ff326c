"""Reads the finished cases of a run back from its journal."""

from __future__ import annotations

import hashlib
import io
import secrets
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from pydantic import BaseModel

from agenteval.core.errors import InfrastructureError
from agenteval.results.archive import Passed, agent_seconds
from agenteval.results.case import CaseResult, CaseStatus, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.rollup import total
from agenteval.run.cases.compact_scores import set_at
from agenteval.run.journal.journal import Journal, case_text, parsed


class _Brief(BaseModel):
    name: str
    status: CaseStatus


class JournalArchive:
    """Reads the cases of a run back from its journal, those of each suite in the order of their positions.

    Args:
        journal: contains the cases.
        run_id: the run.
        pool: yields the cases of the run's pool entry by case id, in batches.
    """

    def __init__(self, journal: Journal, run_id: str, pool: Callable[[], Iterator[Mapping[str, PoolCase]]]) -> None:
        self._journal = journal
        self._key = secrets.token_bytes(16)
        self._run_id = run_id
        self._pool = pool
        # By suite: its number (from 1) and the range of its positions; the ranges of confirmation runs overlap.
        self._suites: dict[str, tuple[int, range]] = {}
        self._suite_of = array("I")
        # Byte offsets in the journal; 0 is the head line, so no case starts there.
        self._places = array("Q")
        # Of the JSON of each case: what is read must be what was written.
        self._digests = array("Q")
        self._seconds = array("d")
        self._unwritten: dict[int, CaseResult] = {}
        self._counts: defaultdict[str, Counter[CaseStatus]] = defaultdict(Counter)

    def add(self, suite: str, position: int, case: CaseResult, place: int, text: str) -> None:
        """Add a case that is in the journal.

        Args:
            suite: path of its suite.
            position: its number in the run.
            case: the complete case; it is not kept in memory.
            place: byte offset of its line in the journal.
            text: its JSON in the journal.
        """
        set_at(self._places, position, place)
        set_at(self._digests, position, self._digest(text.encode("utf-8", "backslashreplace")))
        self._count(suite, position, case)

    def add_unwritten(self, suite: str, position: int, case: CaseResult) -> None:
        """Add a case that is not in the journal, and keep it in memory."""
        self._unwritten[position] = case
        self._count(suite, position, case)

    def _count(self, suite: str, position: int, case: CaseResult) -> None:
        set_at(self._seconds, position, agent_seconds(case))
        self._counts[suite][case.status] += 1
        number, known = self._suites.get(suite, (len(self._suites) + 1, range(position, position)))
        set_at(self._suite_of, position, number)
        if position not in known:
            known = (
                range(min(position, known.start), max(position + 1, known.stop))
                if known
                else range(position, position + 1)
            )
        self._suites[suite] = (number, known)

    @property
    def suites(self) -> Collection[str]:
        """Paths of the suites with a case."""
        return self._suites

    def positions(self, suite: str) -> Iterator[int]:
        """Yield the positions of a suite's cases, in order."""
        number, positions = self._suites.get(suite, (0, range(0)))
        return (position for position in positions if self._suite_of[position] == number)

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Yield every case of a suite, complete."""
        for _, text in self._read(suite.path):
            yield parsed(CaseResult, text)

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Yield every case of a suite as JSON in one line."""
        for _, text in self._read(suite.path):
            yield text.decode()

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """Yield the cases of a suite; those that did not pass are complete, with the agent's seconds."""
        for position, text in self._read(suite.path):
            seconds = self._seconds[position]
            brief = parsed(_Brief, text)
            yield Passed(brief.name, seconds) if brief.status == "passed" else (parsed(CaseResult, text), seconds)

    def pooled(self, entry: PoolEntry) -> Iterator[Mapping[str, PoolCase]]:
        """Yield the cases of a pool entry by case id, in batches."""
        return self._pool() if entry.run_id == self._run_id else iter((entry.cases,))

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's total time for the cases of a suite, in seconds."""
        return total(array("d", (self._seconds[position] for position in self.positions(suite.path))))

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        return self._counts.get(suite.path, Counter())

    def _read(self, suite: str) -> Iterator[tuple[int, bytes]]:
        """Yield the position and the JSON of every case of a suite."""
        try:
            # A run that was interrupted before its first case has no journal.
            with self._journal.read() if self._places else io.BytesIO() as lines:
                for position in self.positions(suite):
                    if position in self._unwritten:
                        yield (
                            position,
                            self._unwritten[position].model_dump_json().encode("utf-8", "backslashreplace"),
                        )
                    else:
                        text = case_text(lines, suite, self._places[position])
                        if self._digest(text) != self._digests[position]:
                            raise InfrastructureError(
                                f"{self._journal.path} was changed during the run, so its results are not reported; "
                                "find what writes to the report directory"
                            )
                        yield position, text
        except OSError as error:
            raise InfrastructureError(f"cannot read {self._journal.path}: {error.strerror}") from None

    def _digest(self, text: bytes) -> int:
        # With a secret key, nobody else can find another text with the same digest.
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self._key).digest())
