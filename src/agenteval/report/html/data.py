"""The data of the page of a run: a row for every case, and the full cases.

The cases are read once, in the order of the suites, and are never all in memory. They are written as chunks. A chunk
has a list of rows, which are short and which the browser reads at once, and a list of full cases, which the browser
reads when a user opens one. While chunks are written, :class:`Survey` collects the figures that the rest of the page
shows.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Final

from agenteval.core.text.escape import json_in_html
from agenteval.report.html.data_limit import DATA_LIMIT, Room, compact_json
from agenteval.report.view import view
from agenteval.report.view.groups import group_key
from agenteval.results.archive import Archive
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import ComparedCase, PoolEntry
from agenteval.results.model import Results

MOST_STATIC_ROWS = 1_000
_CHUNK_CASES = 200
_CHUNK_CHARACTERS = 1_000_000
_DECIMALS = 4

# Rows refer to these words by position; templates/html/page.js gets the lists with the data.
STATUSES: Final = ("failed", "error", "skipped", "passed", "removed")
CHANGES: Final = ("regressed", "improved", "unchanged", "changed", "new", "removed")
NOTES: Final = ("suspect", "flaky", "quarantined")
#: The result of a metric for a case: the worst over all iterations.
OUTCOMES: Final = ("none", "passed", "failed", "error")
#: Fields of a row; ``metrics`` holds ``[metric, mean score, outcome, mean score in the baseline]``.
ROW: Final = (
    "name", "id", "suite", "status", "score", "before", "change", "notes", "ms", "passes", "iterations", "tags",
    "metrics",
)  # fmt: skip

_NOT_PASSED = frozenset({"failed", "error"})


@dataclass(frozen=True)
class Chunk:
    """JSON for two script elements."""

    rows: str
    cases: str


@dataclass(frozen=True)
class StaticRow:
    """A case that did not pass, for the page without JavaScript; ``others`` have the same error of the agent."""

    name: str
    where: str
    status: str
    change: str
    score: float | None
    why: str
    others: int = 0


@dataclass
class Survey:
    """Figures about all cases; complete when every case has been read.

    Attributes:
        metrics: id of each metric → its number, in the order of the cases.
        tags: tag → its number.
        scores: the scores of each metric.
        times: the agent's times for a case, in ms, by iteration.
        thresholds: number of uses of each threshold, by metric.
        broken: number of scores that could not be computed, by metric.
        not_passed: the first cases that failed or were errors, at most :data:`MOST_STATIC_ROWS`.
        all_not_passed: the number of all these cases.
        cut: the number of cases whose texts were cut.
    """

    metrics: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    scores: dict[str, array[float]] = field(default_factory=dict)
    times: array[float] = field(default_factory=lambda: array("d"))
    thresholds: dict[str, Counter[float]] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)
    not_passed: list[StaticRow] = field(default_factory=list)
    all_not_passed: int = 0
    cut: int = 0
    # The error of a group of cases → the position of its row.
    _places: dict[frozenset[str], int] = field(default_factory=dict)

    @property
    def shown_not_passed(self) -> int:
        """The number of cases in ``not_passed``, with those that share a row."""
        return sum(1 + row.others for row in self.not_passed)

    def row(self, case: CaseResult, suite: tuple[int, SuiteResult], compared: ComparedCase | None) -> list[Any]:
        """Count a case and return its row, see :data:`ROW`."""
        found: dict[str, _MetricResult] = {}
        for score in case.scores:
            self._add(found, score)
        number, owner = suite
        taken = sum(turn.latency_ms or 0.0 for turn in case.turns)
        ms = taken / len(case.iterations) if case.iterations else 0.0
        if ms:
            self.times.append(ms)
        if case.status in _NOT_PASSED:
            self._keep(case, owner, compared)
        return [
            case.name,
            None if case.id == f"{owner.path}::{case.name}" else case.id,
            number,
            STATUSES.index(case.status),
            _short(case.score),
            _short(compared.score_before) if compared and compared.change not in {"new", "changed"} else None,
            CHANGES.index(compared.change) if compared else None,
            sum(1 << place for place, note in enumerate(NOTES) if note in compared.notes) if compared else 0,
            round(ms) if ms else None,
            [iteration.status for iteration in case.iterations].count("passed"),
            len(case.iterations),
            [self.tags.setdefault(tag, len(self.tags)) for tag in case.tags],
            _metrics(found, compared),
        ]

    def _add(self, found: dict[str, _MetricResult], score: Score) -> None:
        name, value = score.id, score.score
        result = found.get(name)
        if result is None:
            result = found[name] = _MetricResult(self.metrics.setdefault(name, len(self.metrics)))
            if name not in self.scores:
                self.scores[name], self.thresholds[name] = array("d"), Counter()
        if value is not None and isfinite(value):
            result.total += value
            result.count += 1
            self.scores[name].append(value)
            if (threshold := score.threshold) is not None:
                self.thresholds[name][threshold] += 1
        if score.status == "error":
            self.broken[name] += 1
            result.outcome = 3
        elif (passed := score.passed) is not None and result.outcome < 2:
            result.outcome = 1 if passed else 2

    def _keep(self, case: CaseResult, suite: SuiteResult, compared: ComparedCase | None) -> None:
        self.all_not_passed += 1
        key = group_key(case)
        if key in self._places:
            place = self._places[key]
            self.not_passed[place] = replace(self.not_passed[place], others=self.not_passed[place].others + 1)
        elif len(self.not_passed) < MOST_STATIC_ROWS:
            if key:
                self._places[key] = len(self.not_passed)
            self.not_passed.append(
                StaticRow(
                    name=case.name,
                    where=view.location(suite, case),
                    status=case.status,
                    change=compared.change if compared and compared.change != "unchanged" else "",
                    score=case.score,
                    why=view.why(case),
                )
            )


@dataclass(slots=True)
class _MetricResult:
    """The results of one metric for one case so far."""

    metric: int
    total: float = 0.0
    count: int = 0
    outcome: int = 0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


def _metrics(found: Mapping[str, _MetricResult], compared: ComparedCase | None) -> list[list[Any]]:
    before = {metric.id: metric.before for metric in compared.metrics} if compared else {}
    return [
        [result.metric, _short(result.mean), result.outcome, _short(before.get(name))]
        for name, result in found.items()
    ]


def chunks(results: Results, archive: Archive, survey: Survey, limit: int = DATA_LIMIT) -> Iterator[Chunk]:
    """Yield all cases; removed cases come last.

    Args:
        results: the run.
        archive: access to its full cases.
        survey: counts every case.
        limit: maximum number of characters of all cases.
    """
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    pool = earlier_pool(results)
    room = Room(limit, results.summary.cases, results.summary.cases - results.summary.passed)
    rows: list[list[Any]] = []
    cases: list[str] = []
    size = 0
    for number, suite in enumerate(results.suites):
        for case in archive.cases(suite):
            change = compared.get(case.id)
            rows.append(survey.row(case, (number, suite), change))
            cases.append(_in_full(room.fit(case), change, _history(case.id, pool)))
            size += len(cases[-1])
            if len(rows) == _CHUNK_CASES or size > _CHUNK_CHARACTERS:
                yield _chunk(rows, cases)
                rows, cases, size = [], [], 0
    survey.cut = room.cut
    for change in compared.values():
        if change.change == "removed":
            rows.append(_removed(change))
            cases.append(_in_full("null", change, "null"))
    if rows:
        yield _chunk(rows, cases)


def earlier_pool(results: Results) -> list[PoolEntry]:
    """Return the earlier runs in the pool of the results, the oldest first."""
    return [entry for entry in results.pool if entry.run_id != results.run.id]


def _chunk(rows: list[list[Any]], cases: list[str]) -> Chunk:
    return Chunk(json_in_html(_list(map(compact_json, rows))), json_in_html(_list(cases)))


def _list(values: Iterable[str]) -> str:
    # One line for each case: the search of the page filters lines before it parses them.
    return "[\n" + ",\n".join(values) + "\n]"


def _in_full(case: str, compared: ComparedCase | None, history: str) -> str:
    return f'{{"case":{case},"compared":{compact_json(compared) if compared else "null"},"pool":{history}}}'


def _history(case_id: str, pool: list[PoolEntry]) -> str:
    """Return the scores of a case in each run of the pool, by metric; ``null`` for a run without the case."""
    if not pool:
        return "null"
    scores: list[Mapping[str, list[float]] | None] = [
        entry.cases[case_id].scores if case_id in entry.cases else None for entry in pool
    ]
    return compact_json(scores) if any(scores) else "null"


def _removed(compared: ComparedCase) -> list[Any]:
    before = _short(compared.score_before)
    return [
        compared.name, compared.id, None, STATUSES.index("removed"), None, before, CHANGES.index("removed"),
        0, None, 0, 0, [], [],
    ]  # fmt: skip


def _short(value: float | None) -> float | None:
    if value is None or not isfinite(value):
        return None
    # Rounding is slow, and most scores are 0 or 1.
    return value if value % 1 == 0 else round(value, _DECIMALS)
