"""The suites and cases that an imported run is compared with."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.results.model import CaseResult, Results, SuiteResult

_NAME_LENGTH = 60
_DIGITS = 12
_PERSONA = "persona:"


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
    turns = (turn for case in suite.cases for iteration in case.iterations for turn in iteration.turns)
    return KnownSuite(
        path=suite.path,
        name=suite.name,
        format=suite.format,
        cases=tuple(map(_case, suite.cases)),
        metrics=frozenset(score.id for turn in turns for score in turn.scores),
    )


def _case(case: CaseResult) -> KnownCase:
    turns = case.iterations[0].turns if case.iterations else []
    personas = (tag.removeprefix(_PERSONA) for tag in case.tags if tag.startswith(_PERSONA))
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


def persona_tag(persona: str) -> str:
    """The tag of cases that a persona asks."""
    return f"{_PERSONA}{persona}"


# Loaders of suites make names the same way; results know nothing of suites, so it stands here again.


def excerpt(text: str) -> str:
    """A text as a name: one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"


def content_id(asked: Any) -> str:
    """The id of a case without a name, from what it asks."""
    return _digest(json.dumps(asked, sort_keys=True, ensure_ascii=False, default=str))


def turns_id(inputs: Sequence[str]) -> str:
    """The id of a HoloDeck case without a name, from what its turns ask."""
    return _digest("\x1f".join(inputs))


def _digest(text: str) -> str:
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"
