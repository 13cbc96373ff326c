"""Where the cases of a run are in full; in memory, long runs keep only their outlines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from agenteval.results.model import CaseResult, CaseStatus, SuiteResult


class Archive(Protocol):
    """Gives the cases of a suite in full, in the order of the suite."""

    def cases(self, suite: SuiteResult) -> Iterable[CaseResult]:
        """Every case of a suite."""
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

    def seconds(self, suite: SuiteResult) -> float:
        """How long the agent took over all cases of a suite."""
        turns = (turn for case in suite.cases for iteration in case.iterations for turn in iteration.turns)
        return sum(turn.latency_ms or 0.0 for turn in turns) / 1000

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """How many cases of a suite ended how."""
        return Counter(case.status for case in suite.cases)


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
