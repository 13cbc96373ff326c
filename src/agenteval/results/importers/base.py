"""What the importers share: values of other tools, the suites to compare with, and the conversion to results."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, Text
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import Results, Run, Summary, Tool
from agenteval.results.rollup import summarise, turn_means
from agenteval.suite.cases import PERSONA_TAG
from agenteval.suite.model import OVERALL, MetricKind

# A score of 1.0000000000000004 counts as 1.
_ROUNDING = 1e-6
# Larger counts of milliseconds, tokens or dollars are invalid.
_LARGEST_AMOUNT = 1e15
_SCALE = re.compile(r"\s*(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|\.\.|to)\s*(?P<high>\d+(?:\.\d+)?)\s*")


def finite(value: Any) -> float | None:
    """Return a number; ``None`` for everything else, including NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _amount(value: Any) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= _LARGEST_AMOUNT else None


def _count(value: Any) -> int | None:
    number = _amount(value)
    return int(number) if number is not None and number == int(number) else None


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _optional_text(value: Any) -> str | None:
    return None if value is None else text_of(value)


_T = TypeVar("_T")

Number = Annotated[float | None, BeforeValidator(finite)]
Amount = Annotated[float | None, BeforeValidator(_amount)]
Count = Annotated[int | None, BeforeValidator(_count)]
AnyText = Annotated[Text, BeforeValidator(text_of)]
OptionalText = Annotated[Text | None, BeforeValidator(_optional_text)]
Listed = Annotated[tuple[_T, ...], BeforeValidator(lambda value: () if value is None else value)]
Mapped = Annotated[dict[Text, _T], BeforeValidator(lambda value: {} if value is None else value)]


class ImportedShape(BaseModel):
    """Part of an imported file; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def loads(text: str) -> Any:
    """Parse JSON; NaN, infinity and numbers like ``1e999`` become ``None``.

    Raises:
        ValueError: the text is not JSON, or contains a number of thousands of digits.
        RecursionError: the JSON is nested too deeply.
    """
    return json.loads(text, parse_constant=lambda _: None, parse_float=lambda digits: finite(float(digits)))


@dataclass(frozen=True, slots=True)
class ImportedScore:
    """A score on the scale of its metric.

    Attributes:
        highest: the best score of the scale, above 0.
    """

    id: str
    kind: MetricKind
    value: float | None
    highest: float = 1.0
    threshold: float | None = None
    passed: bool | None = None
    reason: str | None = None
    absent: str | None = None
    error: str | None = None
    model: str | None = None
    duration_ms: float | None = None

    @property
    def score(self) -> Score:
        """The score from 0 to 1. A score outside its scale is an error."""
        common: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "model": self.model,
            "duration_ms": self.duration_ms,
        }
        if self.absent is not None:
            return Score(score=None, passed=None, status="skipped", reason=self.absent, **common)
        if self.error is not None or self.value is None:
            why = self.error or "the file has no number as its score"
            return Score(score=None, passed=None, status="error", error=why, **common)
        value = self.value / self.highest
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            why = f"the file's score of {self.value:g} is not between 0 and {self.highest:g}"
            return Score(score=None, passed=None, status="error", error=why, **common)
        return Score(
            score=min(max(value, 0.0), 1.0),
            threshold=None if self.threshold is None else finite(self.threshold / self.highest),
            passed=self.passed,
            status="scored",
            reason=self.reason,
            **common,
        )


def highest_of(scale: str | None) -> float:
    """Return the upper end of a scale like ``0-10``; 1 without an end."""
    found = _SCALE.fullmatch(scale or "")
    return (float(found["high"]) if found else 0.0) or 1.0


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case of a suite.

    Attributes:
        ground_truths: the expected answer of each turn; empty if unknown.
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


_DIGITS = 16


@dataclass(frozen=True)
class ImportedRun:
    """A run of another tool.

    Attributes:
        version: version of the tool; empty if unknown.
        started_at: start as written in the file; most files have either start or end, or neither.
        questions: id of a case whose question differs from the known case with this id → its question.
    """

    tool: str
    version: str
    suites: Sequence[SuiteResult]
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float = 0.0
    commit: str | None = None
    questions: Mapping[str, str] = field(default_factory=dict)
    summary: Summary | None = None


def results_of(recording: ImportedRun, digest: str, modified: datetime) -> Results:
    """Return the run as results.

    Args:
        digest: hash of the files' content; it becomes the run's id, so that one file is one run.
        modified: time when the file was written; used if the file contains no time.
    """
    started, finished = _period(recording, modified)
    run = Run(
        id=f"{recording.tool}-{digest[:_DIGITS]}",
        started_at=_timestamp(started),
        finished_at=_timestamp(finished),
        duration_s=round((finished - started).total_seconds(), 3),
        complete=True,
        commit=recording.commit,
    )
    cases = [case for suite in recording.suites for case in suite.cases]
    return Results(
        tool=Tool(name=recording.tool, version=recording.version),
        run=run,
        summary=recording.summary or summarise(cases),
        suites=list(recording.suites),
        pool=[_pool_entry(recording, run)],
    )


def _pool_entry(recording: ImportedRun, run: Run) -> PoolEntry:
    """Return the pool entry. Only cases with another question have a fingerprint: the metrics are unknown."""
    return PoolEntry(
        commit=run.commit,
        run_id=run.id,
        created_at=run.started_at,
        cases={
            case.id: PoolCase(
                fingerprint=_fingerprint(recording.questions.get(case.id)), scores=_pool_scores(suite, case)
            )
            for suite in recording.suites
            for case in suite.cases
        },
    )


def _fingerprint(question: str | None) -> str:
    if question is None:
        return ""
    # The question differs, so this value differs from the fingerprints of all known cases.
    return f"asked:{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def _pool_scores(suite: SuiteResult, case: CaseResult) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for iteration in case.iterations:
        for name, score in _iteration_scores(suite, iteration).items():
            found.setdefault(name, []).append(score)
    return found


def _iteration_scores(suite: SuiteResult, iteration: IterationResult) -> dict[str, float]:
    overall = {OVERALL: iteration.score} if suite.threshold is not None and iteration.score is not None else {}
    return turn_means(iteration.turns) | overall


def _period(recording: ImportedRun, modified: datetime) -> tuple[datetime, datetime]:
    started, finished = _time(recording.started_at), _time(recording.finished_at)
    try:
        duration = timedelta(seconds=recording.duration_s)
        if started is not None:
            return started, started + duration
        finished = finished or modified
        return finished - duration, finished
    except OverflowError:
        # The duration exceeds the range of dates. The file is wrong, but its scores may be right.
        return modified, modified


def _time(written: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(written or "")
    except ValueError:
        return None
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError:
        return None


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
