"""Divides a run into parts that several machines can run: every case belongs to exactly one of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.results.model import Criterion, Results
from agenteval.suite.evaluation import Aggregate, Analyses
from agenteval.suite.model import Suite

MOST_SHARDS = 1000
# More make no number that is worth reading.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the parts, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``I/N`` with 1 ≤ I ≤ N ≤ 1000.

        Raises:
            ValueError: it is anything else.
        """
        index, _, count = text.partition("/")
        if not (_is_number(index) and _is_number(count)):
            raise ValueError(f"{text!r} is not of the form I/N, as in 2/5")
        shard = cls(int(index), int(count))
        if not 1 <= shard.count <= MOST_SHARDS:
            raise ValueError(f"{text!r} asks for {shard.count} shards; allowed are 1 to {MOST_SHARDS}")
        if not 1 <= shard.index <= shard.count:
            raise ValueError(f"{text!r} asks for shard {shard.index}; there are shards 1 to {shard.count}")
        return shard

    def cases(self, case_ids: Collection[str], durations: Mapping[str, float]) -> frozenset[str]:
        """The ids of the cases that belong to this part; see `divide`."""
        return divide(case_ids, self.count, durations)[self.index - 1]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def divide(case_ids: Collection[str], count: int, durations: Mapping[str, float]) -> tuple[frozenset[str], ...]:
    """Share out cases so that all parts take about as long.

    The longest case comes first, and each goes to the part that has the least to do so far (Graham 1969, "Bounds on
    multiprocessing timing anomalies": no part takes more than 4/3 of what the best division would). Without any
    duration the ids take turns, so that the parts differ by one case at most, and the cases of a suite are spread.
    Neither depends on the order of the ids.

    Args:
        case_ids: of all parts.
        count: parts.
        durations: of a run of the cases, in any unit; one that is not known is taken for the mean of the others.
    """
    ordered = sorted(case_ids)
    known = [durations[case_id] for case_id in ordered if case_id in durations]
    if not any(known):
        return tuple(frozenset(ordered[number::count]) for number in range(count))
    usual = sum(known) / len(known)
    times = {case_id: durations.get(case_id, usual) for case_id in ordered}
    parts: list[list[str]] = [[] for _ in range(count)]
    # Time so far, cases so far, number of the part.
    loads = [(0.0, 0, number) for number in range(count)]
    for case_id in sorted(ordered, key=lambda case_id: (-times[case_id], case_id)):
        time, cases, number = loads[0]
        parts[number].append(case_id)
        heapq.heapreplace(loads, (time + times[case_id], cases + 1, number))
    return tuple(map(frozenset, parts))


def durations_of(results: Results) -> dict[str, float]:
    """How long the agent took over each case of a run, all iterations together, in milliseconds.

    Cases without any latency, or with one that cannot be, are left out.
    """
    found: dict[str, float] = {}
    for _, case in results.cases():
        turns = (turn for iteration in case.iterations for turn in iteration.turns)
        latencies = [turn.latency_ms for turn in turns if turn.latency_ms is not None]
        total = sum(latencies)
        if latencies and math.isfinite(total) and min(latencies) >= 0:
            found[case.id] = total
    return found


def with_open_criteria(suites: Sequence[Suite], results: Results) -> Results:
    """The results of a part with the criteria of its suites, undecided: they are about the run as a whole."""
    criteria = {suite.path: _criteria(suite) for suite in suites}
    with_criteria = [suite.model_copy(update={"criteria": criteria[suite.path]}) for suite in results.suites]
    return results.model_copy(update={"suites": with_criteria})


def _criteria(suite: Suite) -> list[Criterion]:
    """What a suite asks for, as it looks without any answer."""
    if suite.evaluation is None:
        return []
    from agenteval.results.analysis.evaluate import evaluate

    asked = replace(suite.evaluation, analyses=Analyses())
    return evaluate((), asked, suite.aggregate or Aggregate()).criteria
