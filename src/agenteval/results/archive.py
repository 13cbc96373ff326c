"""Where the cases of a run are in full; in memory, long runs keep only what reports show of single cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from agenteval.results.model import CaseResult, CaseStatus, PoolCase, PoolEntry, Results, SuiteResult
from agenteval.results.rollup import total


@dataclass(frozen=True, slots=True)
class Passed:
    """All there is to say of most cases; the agent's time over all turns and iterations is in seconds."""

    name: str
    seconds: float


class Archive(Protocol):
    """Gives the cases of a suite in full, in the order of the suite."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Every case of a suite."""
        ...

    def texts(self, suite: SuiteResult) -> Iterable[str]:
        """Every case of a suite as JSON in one line."""
        ...

    def findings(self, suite: SuiteResult) -> Iterable[tuple[CaseResult, float] | Passed]:
        """The cases that did not pass, each with the agent's seconds; in their places among them those that did."""
        ...

    def pooled(self, entry: PoolEntry) -> Iterable[Mapping[str, PoolCase]]:
        """The cases of an entry of the results' pool, by their ids, some at a time."""
        ...

    def seconds(self, suite: SuiteResult) -> float:
        """How long the agent took over all cases of a suite."""
        ...

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """How many cases of a suite ended how."""
        ...


class InMemory:
    """The results themselves hold everything."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Every case of a suite."""
        return suite.cases

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Every case of a suite as JSON in one line."""
        return (case.model_dump_json() for case in self.cases(suite))

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """The cases that did not pass, each with the agent's seconds; in their places among them those that did."""
        for case in self.cases(suite):
            seconds = agent_seconds(case)
            yield Passed(case.name, seconds) if case.status == "passed" else (case, seconds)

    def pooled(self, entry: PoolEntry) -> tuple[Mapping[str, PoolCase]]:
        """The cases of an entry of the results' pool, by their ids."""
        return (entry.cases,)

    def seconds(self, suite: SuiteResult) -> float:
        """How long the agent took over all cases of a suite."""
        return total([agent_seconds(case) for case in suite.cases])

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """How many cases of a suite ended how."""
        return Counter(case.status for case in suite.cases)


def in_full(results: Results, archive: Archive) -> Results:
    """Return results with every case and every entry of the pool in full.

    Args:
        results: a run; a long one holds only what reports show.
        archive: where the rest is.
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
    """How long the agent took over all turns and iterations of a case."""
    return sum([turn.latency_ms or 0.0 for iteration in case.iterations for turn in iteration.turns]) / 1000


def outline(case: CaseResult) -> CaseResult:
    """A case without its iterations: what it is called and how it ended."""
    return case.model_copy(update={"iterations": []})


def without_texts(case: CaseResult) -> CaseResult:
    """A case with its scores, but without what was asked and answered."""
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
