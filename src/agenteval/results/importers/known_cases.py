"""The suites and cases that an imported run is compared with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.model import Results
from agenteval.suite.case_ids import PERSONA_TAG


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case of a suite.

    Attributes:
        inputs: the input of each turn.
        ground_truths: the expected answer of each turn; empty if unknown.
        persona: the persona that asks.
    """

    id: str
    name: str
    inputs: tuple[str, ...]
    ground_truths: tuple[str | None, ...] = ()
    persona: str | None = None


@dataclass(frozen=True, slots=True)
class KnownSuite:
    """A suite whose cases the imported run may contain.

    Attributes:
        path: prefix of its case ids.
        cases: empty if the run scores recorded traces, which are not cases of the suite.
        metrics: ids of the metrics that score the traces.
    """

    path: str
    name: str
    format: str
    cases: tuple[KnownCase, ...] = ()
    metrics: frozenset[str] = frozenset()


def suites_of(results: Results) -> tuple[KnownSuite, ...]:
    """Return the suites of a run, as its results describe them."""
    return tuple(_suite(suite) for suite in results.suites)


def _suite(suite: SuiteResult) -> KnownSuite:
    return KnownSuite(
        path=suite.path,
        name=suite.name,
        format=suite.format,
        cases=tuple(map(_case, suite.cases)),
        metrics=frozenset(score.id for case in suite.cases for score in case.scores),
    )


def _case(case: CaseResult) -> KnownCase:
    turns = case.iterations[0].turns if case.iterations else []
    personas = (tag.removeprefix(PERSONA_TAG) for tag in case.tags if tag.startswith(PERSONA_TAG))
    return KnownCase(
        id=case.id,
        name=case.name,
        inputs=tuple(turn.input for turn in turns),
        ground_truths=tuple(turn.ground_truth for turn in turns),
        persona=next(personas, None),
    )


class Repeats:
    """Makes ids unique: a second ``<id>`` becomes ``<id>#2``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def unique(self, wanted: str) -> str:
        """Return the id, with a number if it is taken."""
        self._seen[wanted] += 1
        return wanted if self._seen[wanted] == 1 else f"{wanted}#{self._seen[wanted]}"
