"""Access to the full cases of a run; for large runs, memory contains only the data that reports show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agenteval.results.case import CaseResult, CaseStatus, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results
from agenteval.results.rollup import total


@dataclass(frozen=True, slots=True)
class Passed:
    """The essential data of a passed case; the agent's time over all turns and iterations is in seconds."""

    name: str
    seconds: float


class Archive(Protocol):
    """Access to the full cases of a suite, in suite order."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Yield every case of a suite."""
        ...

    def texts(self, suite: SuiteResult) -> Iterable[str]:
        """Yield every case of a suite as one line of JSON."""
        ...

    def findings(self, suite: SuiteResult) -> Iterable[tuple[CaseResult, float] | Passed]:
        """Yield the cases that did not pass, each with the agent's seconds, and the passed ones, in suite order."""
        ...

    def pooled(self, entry: PoolEntry) -> Iterable[Mapping[str, PoolCase]]:
        """Yield the cases of an entry of the results' pool by id, in batches."""
        ...

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's time over all cases of a suite, in seconds."""
        ...

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        ...


class InMemory:
    """An archive of results that contain all cases in full."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Yield every case of a suite."""
        return suite.cases

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Yield every case of a suite as one line of JSON."""
        return (case.model_dump_json() for case in self.cases(suite))

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """Yield the cases that did not pass, each with the agent's seconds, and the passed ones, in suite order."""
        for case in self.cases(suite):
            seconds = agent_seconds(case)
            yield Passed(case.name, seconds) if case.status == "passed" else (case, seconds)

    def pooled(self, entry: PoolEntry) -> tuple[Mapping[str, PoolCase]]:
        """Yield the cases of an entry of the results' pool by id."""
        return (entry.cases,)

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's time over all cases of a suite, in seconds."""
        return total([agent_seconds(case) for case in suite.cases])

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        return Counter(case.status for case in suite.cases)


IN_MEMORY: Final = InMemory()


def in_full(results: Results, archive: Archive) -> Results:
    """Return results with every case and every entry of the pool in full.

    Args:
        results: a run; for a large run, only the data that reports show.
        archive: access to the full cases.
    """
    suites = [suite.model_copy(update={"cases": list(archive.cases(suite))}) for suite in results.suites]
    pool = [
        entry.model_copy(
            update={"cases": {id_: case for part in archive.pooled(entry) for id_, case in part.items()}}
        )
        for entry in results.pool
    ]
    return results.model_copy(update={"suites": suites, "pool": pool})


def agent_seconds(case: CaseResult) -> float:
    """Return the agent's time over all turns and iterations of a case, in seconds."""
    return sum([turn.latency_ms or 0.0 for turn in case.turns]) / 1000


def outline(case: CaseResult) -> CaseResult:
    """Return a case without its iterations: its name and result."""
    return case.model_copy(update={"iterations": []})


def without_texts(case: CaseResult) -> CaseResult:
    """Return a case with its scores, but without inputs and answers."""
    iterations = [
        iteration.model_copy(
            update={
                "turns": [
                    turn.model_copy(
                        update={
                            "input": "",
                            "ground_truth": None,
                            "response": None,
                            "tool_calls": [],
                            "retrieval_context": [],
                            "scores": [
                                score.model_copy(update={"reason": None, "details": None}) for score in turn.scores
                            ],
                        }
                    )
                    for turn in iteration.turns
                ]
            }
        )
        for iteration in case.iterations
    ]
    return case.model_copy(update={"iterations": iterations})
