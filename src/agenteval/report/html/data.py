"""The data of the page of a run: a row for every case, and the full cases.

The cases are read once, in the order of the suites, and are never all in memory. They are written as chunks. A chunk
has a list of rows, which are short and which the browser reads at once, and a list of full cases, which the browser
reads when a user opens one. While chunks are written, a :class:`~agenteval.report.html.survey.Survey` collects the
figures that the rest of the page shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.core.text.escape import json_in_html
from agenteval.report.html.data_limit import DATA_LIMIT, Room, compact_json
from agenteval.report.html.survey import Survey
from agenteval.results.archive import Archive
from agenteval.results.comparison import ComparedCase, PoolEntry
from agenteval.results.model import Results

_CHUNK_CASES = 200
_CHUNK_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class Chunk:
    """JSON for two script elements."""

    rows: str
    cases: str


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
            rows.append(survey.removed(change))
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
