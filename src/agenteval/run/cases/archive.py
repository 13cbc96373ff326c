"""The cases of a run as its journal has them, for runs too long to be held in memory."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from agenteval.core.errors import InfrastructureError
from agenteval.results.archive import Passed, agent_seconds
from agenteval.results.model import CaseResult, CaseStatus, PoolCase, PoolEntry, SuiteResult
from agenteval.results.rollup import total
from agenteval.run.cases.compact_scores import set_at
from agenteval.run.journal.journal import case_text, parsed

# Cases end nearly in the order of their suite: what is read with one is wanted soon. In bytes.
_BUFFER = 1 << 16


class OwnPool(Protocol):
    """The run's own entry of its pool."""

    def cases(self) -> Iterator[Mapping[str, PoolCase]]:
        """Its cases by their ids, some at a time."""
        ...


class _Brief(BaseModel):
    name: str
    status: CaseStatus


class JournalArchive:
    """Gives the cases of each suite in the order of their positions.

    Args:
        journal: where they are written.
        pool: the run's own entry of its pool, where the results have one without cases.
    """

    def __init__(self, journal: Path, pool: OwnPool | None = None) -> None:
        self._journal = journal
        self._pool = pool
        self._positions: dict[str, range] = {}
        # Bytes of the journal; at 0 no case begins.
        self._places = array("Q")
        self._seconds = array("d")
        self._unwritten: dict[int, CaseResult] = {}
        self._counts: defaultdict[str, Counter[CaseStatus]] = defaultdict(Counter)

    def add(self, suite: str, position: int, case: CaseResult, place: int) -> None:
        """A case that is in the journal.

        Args:
            suite: path of its suite.
            position: its number in the run, in which the cases of a suite come one after the other.
            case: itself; it is not held.
            place: byte of the journal where its line begins.
        """
        set_at(self._places, position, place)
        self._count(suite, position, case)

    def add_unwritten(self, suite: str, position: int, case: CaseResult) -> None:
        """A case that is not in the journal, and is held."""
        self._unwritten[position] = case
        self._count(suite, position, case)

    def _count(self, suite: str, position: int, case: CaseResult) -> None:
        set_at(self._seconds, position, agent_seconds(case))
        self._counts[suite][case.status] += 1
        known = self._positions.get(suite, range(position, position))
        if position not in known:
            self._positions[suite] = range(min(position, known.start), max(position + 1, known.stop))

    @property
    def suites(self) -> Collection[str]:
        """Paths of the suites with a case."""
        return self._positions

    def positions(self, suite: str) -> range:
        """Where the cases of a suite are in the run; some of them may be missing."""
        return self._positions.get(suite, range(0))

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Every case of a suite in full."""
        for _, text in self._read(suite.path):
            yield parsed(CaseResult, text)

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Every case of a suite as JSON in one line."""
        for _, text in self._read(suite.path):
            yield text.decode()

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """The cases that did not pass, each with the agent's seconds; in their places among them those that did."""
        for position, text in self._read(suite.path):
            seconds = self._seconds[position]
            brief = parsed(_Brief, text)
            yield Passed(brief.name, seconds) if brief.status == "passed" else (parsed(CaseResult, text), seconds)

    def pooled(self, entry: PoolEntry) -> Iterator[Mapping[str, PoolCase]]:
        """The cases of an entry of the results' pool, by their ids, some at a time."""
        return iter((entry.cases,)) if entry.cases or self._pool is None else self._pool.cases()

    def seconds(self, suite: SuiteResult) -> float:
        """How long the agent took over all cases of a suite."""
        positions = self.positions(suite.path)
        return total(self._seconds[positions.start : positions.stop])

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """How many cases of a suite ended how."""
        return self._counts.get(suite.path, Counter())

    def _read(self, suite: str) -> Iterator[tuple[int, bytes]]:
        """The JSON of every case of a suite with its position, from one open file."""
        positions = self.positions(suite)
        if not positions:
            # A run that was interrupted before it began has no journal.
            return
        try:
            with self._journal.open("rb", buffering=_BUFFER) as lines:
                for position in positions:
                    place = self._places[position] if position < len(self._places) else 0
                    if place:
                        yield position, case_text(lines, suite, place)
                    elif position in self._unwritten:
                        text = self._unwritten[position].model_dump_json()
                        yield position, text.encode("utf-8", "backslashreplace")
        except OSError as error:
            raise InfrastructureError(f"cannot read {self._journal}: {error.strerror}") from None
