"""The data in report.html: the table of cases, and the details as far as they have room."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from agenteval.core.escape import json_in_html
from agenteval.core.records import dataclass, field, replace
from agenteval.report import words
from agenteval.report.cases import KINDS, NOT_PASSED, Kinds
from agenteval.report.causes import CaseChange, by_cause, finding, removed
from agenteval.report.facts import ReportSource
from agenteval.report.stories import CaseRow
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import BaselineRun, ComparedCase, ComparedMetric, Proof

#: Maximum number of characters of data in a report; larger reports open slowly.
DATA_LIMIT = 80_000_000
_TEXT_LIMITS = (20_000, 4_000, 1_000, 200)


class Room:
    """Distributes the characters of the limit over the cases.

    A case gets the characters that it needs while a share remains for each following case. All cases share a quarter
    of the limit, and the cases that did not pass share another quarter.

    Args:
        not_passed: number of cases that did not pass.
    """

    def __init__(self, limit: int, cases: int, not_passed: int) -> None:
        self._left = limit
        self._to_come, self._not_passed_to_come = cases, not_passed
        self._share = limit // (4 * max(1, cases))
        self._further_share = limit // (4 * max(1, not_passed))
        self.cut = 0

    def fit(self, case: CaseResult) -> str:
        """Return the JSON of a case, with its texts cut if necessary; ``cut`` counts the cut cases."""
        share = self._share
        self._to_come -= 1
        if case.status != "passed":
            share += self._further_share
            self._not_passed_to_come -= 1
        reserved = self._share * max(0, self._to_come) + self._further_share * max(0, self._not_passed_to_come)
        allowed = max(share, self._left - reserved)
        text = compact_json(case)
        if len(text) > allowed:
            self.cut += 1
            text = _shortened(case, allowed)
        self._left -= len(text)
        return text


def compact_json(value: Any) -> str:
    """Return the JSON of a model without its ``None`` fields, or of lists and mappings."""
    try:
        return to_json(value, exclude_none=True, inf_nan_mode="null").decode()
    except PydanticSerializationError:
        # A lone surrogate in a name; the writer of the file replaces it.
        return _dumped(_cut(value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value))


def _shortened(case: CaseResult, allowed: int) -> str:
    value = case.model_dump(exclude_none=True)
    for limit in _TEXT_LIMITS:
        text = _dumped(_cut(value, limit))
        if len(text) <= allowed:
            return text
    # There are so many turns or calls that even short texts exceed the limit, so only the row is kept.
    return _dumped(_cut({key: value[key] for key in ("id", "name", "status")} | {"iterations": []}, _TEXT_LIMITS[-1]))


def _cut(value: Any, limit: int = sys.maxsize) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]}… ({len(value) - limit:,} more characters in results.json)"
    if isinstance(value, dict):
        return {_cut(key, limit): _cut(item, limit) for key, item in value.items()}
    return [_cut(item, limit) for item in value] if isinstance(value, list) else value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


MOST_STATIC_ROWS = 1_000
_DECIMALS = 4

# Rows refer to these words by position; the files of templates/html/script get the lists with the data.
STATUSES: Final = ("failed", "error", "skipped", "passed", "removed")
CHANGES: Final = ("broke", "repaired", "same", "changed", "new", "removed")
NOTES: Final = ("suspicious", "flaky", "quarantined", "accepted")
#: The result of a metric for a case: the worst over all iterations.
OUTCOMES: Final = ("none", "passed", "failed", "error")
#: Fields of a row. ``ms`` and ``cost`` are of one iteration. ``kind``: ``None`` for a case that passed as before.
#: ``was``: passed and all iterations of the other side; ``passes`` and ``iterations`` are those of this side.
#: ``metrics`` holds ``[metric, mean score, outcome, mean score in the baseline]``.
ROW: Final = (
    "name", "id", "suite", "status", "score", "before", "change", "notes", "ms", "cost", "passes", "iterations",
    "was", "kind", "tags", "metrics",
)  # fmt: skip

KIND_NAMES: Final = tuple(KINDS)


@dataclass
class RunTable:
    """Figures about all cases; complete when every case has been read.

    Attributes:
        kinds: of the cases of the run; ``proofs``: what their re-runs found; ``fallen``: the metrics whose mean fell.
        answers: number of answers; ``calls`` and ``retries``: tool calls and retries of all of them.
        not_passed: the first cases that failed or were errors, at most :data:`MOST_STATIC_ROWS`.
    """

    kinds: Kinds = field(default_factory=Kinds)
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    fallen: Sequence[ComparedMetric] = ()
    metrics: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    answers: int = 0
    calls: int = 0
    retries: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    not_passed: list[CaseRow] = field(default_factory=list)
    all_not_passed: int = 0
    cut: int = 0
    _cases: int = 0
    # The findings with the positions of their cases.
    _findings: list[CaseChange] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)
    # The error of several cases → the position of their row in ``not_passed``.
    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def shown_not_passed(self) -> int:
        """The number of cases in ``not_passed``, with those that share a row."""
        return sum(1 + row.others for row in self.not_passed)

    def row(self, case: CaseResult, suite: tuple[int, SuiteResult], compared: ComparedCase | None) -> list[Any]:
        """Count a case and return its row, see :data:`ROW`."""
        found: dict[str, _MetricResult] = {}
        ms, cost = self._count(case, found)
        number, owner = suite
        told = finding(case, owner, compared, self.kinds, self.proofs.get(case.id))
        if case.status in NOT_PASSED:
            self._keep(case, owner, compared, told.error if told else ("", ""))
        row = [
            case.name,
            None if case.id == f"{owner.path}::{case.name}" else case.id,
            number,
            STATUSES.index(case.status),
            short(case.score),
            short(compared.score_before) if compared and compared.change not in {"new", "changed"} else None,
            CHANGES.index(compared.change) if compared else None,
            sum(1 << place for place, note in enumerate(NOTES) if note in compared.notes) if compared else 0,
            round(ms) if ms else None,
            short(cost) or None,
            told.now.passed if told and told.now else [item.status for item in case.iterations].count("passed"),
            told.now.of if told and told.now else len(case.iterations),
            [told.before.passed, told.before.of] if told and told.before else None,
            self._note(told),
            [self.tags.setdefault(tag, len(self.tags)) for tag in case.tags],
            self._metrics(found, compared),
        ]
        self._cases += 1
        return row

    def removed(self, compared: ComparedCase) -> list[Any]:
        """Count a case that only the baseline has and return its row."""
        told = removed(compared)
        row = [
            compared.name, compared.id, None, STATUSES.index("removed"), None, short(compared.score_before),
            CHANGES.index("removed"), 0, None, None, 0, 0,
            [told.before.passed, told.before.of] if told.before else None, self._note(told), [], [],
        ]  # fmt: skip
        self._cases += 1
        return row

    def _note(self, told: CaseChange | None) -> int | None:
        if told is None:
            return None
        self._findings.append(told)
        self._positions[told.id] = self._cases
        return KIND_NAMES.index(told.kind)

    def _count(self, case: CaseResult, found: dict[str, _MetricResult]) -> tuple[float, float]:
        ms = cost = 0.0
        # One pass, because there may be hundreds of thousands of scores.
        for turn in case.turns:
            ms += turn.latency_ms or 0.0
            if turn.usage is not None:
                cost += turn.usage.cost_usd or 0.0
            self.answers += 1
            self.calls += len(turn.tool_calls)
            self.retries += turn.retries
            for score in turn.scores:
                cost += score.cost_usd or 0.0
                self._add(found, score)
        of = len(case.iterations) or 1
        return ms / of, cost / of

    def _add(self, found: dict[str, _MetricResult], score: Score) -> None:
        name, value = score.id, score.score
        result = found.get(name)
        if result is None:
            result = found[name] = _MetricResult(self.metrics.setdefault(name, len(self.metrics)))
        if value is not None and isfinite(value):
            result.total += value
            result.count += 1
        if score.status == "error":
            self.broken[name] += 1
            result.outcome = 3
        elif (passed := score.passed) is not None and result.outcome < 2:
            result.outcome = 1 if passed else 2

    @staticmethod
    def _metrics(found: Mapping[str, _MetricResult], compared: ComparedCase | None) -> list[list[Any]]:
        before = {metric.id: metric.before for metric in compared.metrics} if compared else {}
        return [
            [result.metric, short(result.mean), result.outcome, short(before.get(name))]
            for name, result in found.items()
        ]

    @property
    def causes(self) -> list[tuple[str, list[int]]]:
        """What went wrong first, and the positions of its cases."""
        return [
            ("; ".join(filter(None, (cause.text, cause.answer))), [self._positions[told.id] for told in cause.cases])
            for cause in by_cause(self._findings, self.fallen)
            if cause.by != "kind" and cause.cases
        ]

    def _keep(
        self, case: CaseResult, suite: SuiteResult, compared: ComparedCase | None, error: tuple[str, str]
    ) -> None:
        self.all_not_passed += 1
        if error in self._places:
            place = self._places[error]
            self.not_passed[place] = replace(self.not_passed[place], others=self.not_passed[place].others + 1)
        elif len(self.not_passed) < MOST_STATIC_ROWS:
            if error[0]:
                self._places[error] = len(self.not_passed)
            self.not_passed.append(
                CaseRow(
                    case.status,
                    case.name,
                    case.score,
                    why=words.why(case),
                    where=words.location(suite, case),
                    change=compared.change if compared and compared.change != "same" else "",
                )
            )


@dataclass
class _MetricResult:
    metric: int
    total: float = 0.0
    count: int = 0
    outcome: int = 0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


def short(value: float | None) -> float | None:
    """Round a number for a row; ``None`` for numbers that JSON does not have."""
    if value is None or not isfinite(value):
        return None
    # Rounding is slow, and most scores are 0 or 1.
    return value if value % 1 == 0 else round(value, _DECIMALS)


# The data of the page of a run: a row for every case, and the full cases.
#
# The cases are read once, in the order of the suites, and are never all in memory. They are written as chunks. A
# chunk has a list of rows, which are short and which the browser reads at once, and a list of full cases, which the
# browser reads when a user opens one. While chunks are written, a :class:`~agenteval.report.html_data.RunTable`
# collects the figures that the rest of the page shows.


_CHUNK_CASES = 200
_CHUNK_CHARACTERS = 1_000_000


def chunks(source: ReportSource, survey: RunTable, limit: int = DATA_LIMIT) -> Iterator[tuple[str, str]]:
    """Yield the JSON of all rows and cases, for two script elements each time; removed cases come last."""
    results, earlier = source.results, source.earlier
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    room = Room(limit, results.summary.cases, results.summary.cases - results.summary.passed)
    rows: list[list[Any]] = []
    cases: list[str] = []
    size = 0
    for number, suite in enumerate(results.suites):
        for case in source.archive.cases(suite):
            change = compared.get(case.id)
            rows.append(survey.row(case, (number, suite), change))
            cases.append(_in_full(room.fit(case), change, _history(case.id, earlier)))
            size += len(cases[-1])
            if len(rows) == _CHUNK_CASES or size > _CHUNK_CHARACTERS:
                yield _chunk(rows, cases)
                rows, cases, size = [], [], 0
    survey.cut = room.cut
    for change in compared.values():
        if change.change == "removed":
            rows.append(survey.removed(change))
            cases.append(_in_full("null", change, "null"))
    if rows:
        yield _chunk(rows, cases)


def _chunk(rows: list[list[Any]], cases: list[str]) -> tuple[str, str]:
    return (json_in_html(_list(map(compact_json, rows))), json_in_html(_list(cases)))


def _list(values: Iterable[str]) -> str:
    # One line for each case: the search of the page filters lines before it parses them.
    return "[\n" + ",\n".join(values) + "\n]"


def _in_full(case: str, compared: ComparedCase | None, history: str) -> str:
    return f'{{"case":{case},"compared":{compact_json(compared) if compared else "null"},"earlier":{history}}}'


def _history(case_id: str, earlier: Sequence[BaselineRun]) -> str:
    if not earlier:
        return "null"
    scores: list[Mapping[str, list[float]] | None] = [
        entry.cases[case_id].scores if case_id in entry.cases else None for entry in earlier
    ]
    return compact_json(scores) if any(scores) else "null"
