"""The interface of importers, and what they share: values of other tools, and the suites to compare with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from agenteval.core.records import dataclass, field
from agenteval.core.text import text_of
from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, Text
from agenteval.results.model import Results, Summary
from agenteval.results.rollup import case_status, mean
from agenteval.suite.cases import PERSONA_TAG
from agenteval.suite.model import MetricKind

# A score of 1.0000000000000004 counts as 1.
_ROUNDING = 1e-6
# Larger counts of milliseconds, tokens or dollars are invalid.
_LARGEST_AMOUNT = 1e15


def finite(value: Any) -> float | None:
    """Return a number; ``None`` for everything else, including NaN and infinity."""
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _amount(value: Any, most: float = _LARGEST_AMOUNT) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= most else None


def _count(value: Any) -> int | None:
    number = _amount(value)
    return int(number) if number is not None and number == int(number) else None


_T = TypeVar("_T")

Number = Annotated[float | None, BeforeValidator(finite)]
Share = Annotated[float | None, BeforeValidator(lambda value: _amount(value, 1.0))]
Amount = Annotated[float | None, BeforeValidator(_amount)]
Count = Annotated[int | None, BeforeValidator(_count)]
AnyText = Annotated[Text, BeforeValidator(text_of)]
OptionalText = Annotated[Text | None, BeforeValidator(lambda value: None if value is None else text_of(value))]
Listed = Annotated[tuple[_T, ...], BeforeValidator(lambda value: () if value is None else value)]
Mapped = Annotated[dict[Text, _T], BeforeValidator(lambda value: {} if value is None else value)]


class ImportedShape(BaseModel):
    """Part of an imported file; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


def at(*path: str, default: Any = None) -> Any:
    """Return a field with the value at a path; the default if something on the way is missing."""
    return Field(default, validation_alias=AliasPath(*path))


@dataclass(frozen=True)
class KnownCase:
    """A case of a suite, with input and expected answer of each turn; expected answers are empty if unknown."""

    id: str
    name: str
    inputs: tuple[str, ...]
    ground_truths: tuple[str | None, ...] = ()
    persona: str | None = None


@dataclass(frozen=True)
class KnownSuite:
    """A suite whose cases the imported run may contain.

    Attributes:
        cases: empty if the run scores recorded traces, which are not cases of the suite.
        metrics: ids of the metrics that score the traces.
    """

    path: str
    name: str
    format: str
    cases: tuple[KnownCase, ...] = ()
    metrics: frozenset[str] = frozenset()

    def result(self, cases: Iterable[CaseResult], **more: Any) -> SuiteResult:
        """Return the imported results of the suite."""
        origin = {"path": self.path, "name": self.name, "format": self.format, "fingerprint": ""}
        return SuiteResult(**origin, cases=list(cases), **more)


def suites_of(results: Results) -> tuple[KnownSuite, ...]:
    """Return the suites of a run, as its results describe them."""
    return tuple(map(_known_suite, results.suites))


def _known_suite(suite: SuiteResult) -> KnownSuite:
    metrics = frozenset(score.id for case in suite.cases for score in case.scores)
    return KnownSuite(suite.path, suite.name, suite.format, tuple(map(_known_case, suite.cases)), metrics)


def _known_case(case: CaseResult) -> KnownCase:
    turns = case.iterations[0].turns if case.iterations else []
    personas = (tag.removeprefix(PERSONA_TAG) for tag in case.tags if tag.startswith(PERSONA_TAG))
    inputs, truths = tuple(turn.input for turn in turns), tuple(turn.ground_truth for turn in turns)
    return KnownCase(case.id, case.name, inputs, truths, next(personas, None))


class Repeats:
    """Makes ids unique: a second ``<id>`` becomes ``<id>#2``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def unique(self, wanted: str) -> str:
        """Return the id, with a number if it is taken."""
        self._seen[wanted] += 1
        return wanted if self._seen[wanted] == 1 else f"{wanted}#{self._seen[wanted]}"


def score_of(
    name: str,
    kind: MetricKind,
    value: float | None,
    *,
    highest: float = 1.0,
    threshold: float | None = None,
    passed: bool | None = None,
    reason: str | None = None,
    absent: str | None = None,
    error: str | None = None,
    **more: Any,
) -> Score:
    """Return a score from 0 to 1, ``absent`` if not measured. Outside its scale up to ``highest`` it is an error."""
    more |= {"id": name, "kind": kind}
    if absent is not None:
        return Score(score=None, passed=None, status="skipped", reason=absent, **more)
    if value is None:
        error = error or "the file has no number as its score"
    elif error is None and not -_ROUNDING <= value / highest <= 1 + _ROUNDING:
        error = f"the file's score of {value:g} is not between 0 and {highest:g}"
    if value is None or error is not None:
        return Score(score=None, passed=None, status="error", error=error, **more)
    needed = None if threshold is None else finite(threshold / highest)
    score = min(max(value / highest, 0.0), 1.0)
    return Score(score=score, threshold=needed, passed=passed, status="scored", reason=reason, **more)


def case_of(case_id: str, name: str, iterations: list[IterationResult], **more: Any) -> CaseResult:
    """Return a case whose status and score follow from its iterations."""
    status = case_status([iteration.status for iteration in iterations])
    score = mean(iteration.score for iteration in iterations)
    return CaseResult(id=case_id, name=name, status=status, score=score, iterations=iterations, **more)


@dataclass(frozen=True)
class ImportedRun:
    """A run of another tool, whose version may be empty.

    Attributes:
        started_at: start as written in the file; most files have either start or end, or neither.
        questions: id of a case whose question differs from the known case with this id → its question.
    """

    version: str
    suites: Sequence[SuiteResult]
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float = 0.0
    commit: str | None = None
    questions: Mapping[str, str] = field(default_factory=dict)
    summary: Summary | None = None


@dataclass(frozen=True)
class Importer:
    """A tool whose results can be read.

    Attributes:
        tool: its name in ``results.tool.name``.
        files: what is understood, for messages.
        recognises: whether JSON is a file of the tool.
        read: converts it. Parts of other types raise ``ValidationError``, suites that do not fit ``ConfigError``.
    """

    tool: str
    title: str
    files: str
    recognises: Callable[[Any], bool]
    read: Callable[[Mapping[str, Any], Sequence[KnownSuite]], ImportedRun]
