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
from agenteval.suite.cases import PERSONA_TAG, excerpt, turns_id
from agenteval.suite.model import MetricKind

# A score of 1.0000000000000004 counts as 1.
_ROUNDING = 1e-6
#: Of promptfoo: who compares or replays such a file must choose.
SEVERAL = (
    "has answers of several providers or prompts to the same cases ({}), and a run is compared with one; "
    "keep one with --filter-providers or --filter-prompts of promptfoo"
)
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


def at(first: str, *rest: str | int, default: Any = None) -> Any:
    """Return a field with the value at a path; the default if something on the way is missing."""
    return Field(default, validation_alias=AliasPath(first, *rest))


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


class KnownCases:
    """The cases of suites, to which those of a file are assigned by name, else by question; each at most once."""

    def __init__(self, suites: Iterable[KnownSuite]) -> None:
        self._taken: set[str] = set()
        self._by_text: dict[str | None, list[tuple[str, KnownCase]]] = {}
        for suite in suites:
            for case in suite.cases:
                for text in {case.name, *(case.inputs if len(case.inputs) == 1 else ())}:
                    self._by_text.setdefault(text, []).append((suite.path, case))

    def take(self, title: str | None, texts: Iterable[str]) -> tuple[str, KnownCase] | None:
        """Take the case with a name, else the one that asks one of the texts, with the path of its suite."""
        candidates = (self._by_text.get(title, []), [one for text in texts for one in self._by_text.get(text, [])])
        same = next((each[0] for each in candidates if len(each) == 1 and each[0][1].id not in self._taken), None)
        if same is not None:
            self._taken.add(same[1].id)
        return same


def suites_with(
    found: Iterable[tuple[str, CaseResult]], suites: Iterable[KnownSuite], format_name: str
) -> list[SuiteResult]:
    """Return cases as results of the suites with these paths; a suite that is not known is named by its path."""
    known, groups = {suite.path: suite for suite in suites}, dict[str, list[CaseResult]]()
    for path, case in found:
        groups.setdefault(path, []).append(case)
    return [known.get(path, KnownSuite(path, path, format_name)).result(cases) for path, cases in groups.items()]


@dataclass(frozen=True)
class FoundTest:
    """A test of another tool with the answers to it.

    Attributes:
        path: the suite to which it belongs if no known suite has it.
        title: its name, which may be that of several tests; ``None`` if the tool numbers its tests.
        inputs: the question of each turn.
    """

    path: str
    title: str | None
    inputs: tuple[str, ...]
    iteration: IterationResult


def run_of(tests: Iterable[FoundTest], suites: Sequence[KnownSuite], format_name: str, **more: Any) -> ImportedRun:
    """Return a run whose cases are those of the suites, by name or question; an equal test is an iteration."""
    repeated: dict[tuple[str, str | None, tuple[str, ...]], list[FoundTest]] = {}
    for test in tests:
        repeated.setdefault((test.path, test.title, test.inputs), []).append(test)
    titles = Counter((path, title) for path, title, _ in repeated)
    known, repeats = KnownCases(suites), Repeats()
    found: list[tuple[str, CaseResult]] = []
    questions: dict[str, str] = {}
    for (path, title, inputs), answers in repeated.items():
        iterations = [test.iteration.model_copy(update={"index": index}) for index, test in enumerate(answers)]
        single = title if titles[path, title] == 1 else None
        same = known.take(single, filter(None, inputs if len(inputs) == 1 else ()))
        if same is not None:
            suite, case = same
            found.append((suite, case_of(case.id, case.name, iterations)))
            if any(inputs) and any(case.inputs) and inputs != case.inputs:
                questions[case.id] = "\x1f".join(inputs)
            continue
        own = single or " ".join(filter(None, (title, turns_id(inputs))))
        name = single or excerpt(inputs[0]) or own
        found.append((path, case_of(repeats.unique(f"{path}::{own}"), name, iterations)))
    return ImportedRun(suites=suites_with(found, suites, format_name), questions=questions, **more)


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
