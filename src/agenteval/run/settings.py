"""What the caller asked for; one shard of a run is a part of it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.gate.verdict import FailOn
from agenteval.results.case import Criterion
from agenteval.results.model import Results
from agenteval.suite.evaluation import Aggregate, Analyses
from agenteval.suite.model import AgentSpec, MetricConfig, Suite

MOST_SHARDS = 1000
# The maximum number of shards.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the shards, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse ``I/N`` with 1 ≤ I ≤ N ≤ 1000.

        Raises:
            ValueError: the text has another form or range.
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
        """Return the ids of the cases in this shard; see `divide`."""
        return divide(case_ids, self.count, durations)[self.index - 1]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def divide(case_ids: Collection[str], count: int, durations: Mapping[str, float]) -> tuple[frozenset[str], ...]:
    """Divide cases so that all shards take about the same time.

    The longest case comes first, and each goes to the shard with the least time so far (Graham 1969, "Bounds on
    multiprocessing timing anomalies": no shard takes more than 4/3 of the optimum). Without any
    duration the ids alternate, so that the shards differ by one case at most, and the cases of a suite are spread.
    The result does not depend on the order of the ids.

    Args:
        durations: of the cases in a run, in any unit; unknown ones count as the mean of the others.
    """
    ordered = sorted(case_ids)
    known = [durations[case_id] for case_id in ordered if case_id in durations]
    if not any(known):
        return tuple(frozenset(ordered[number::count]) for number in range(count))
    usual = sum(known) / len(known)
    times = {case_id: durations.get(case_id, usual) for case_id in ordered}
    parts: list[list[str]] = [[] for _ in range(count)]
    # Time so far, cases so far, index of the shard.
    loads = [(0.0, 0, number) for number in range(count)]
    for case_id in sorted(ordered, key=lambda case_id: (-times[case_id], case_id)):
        time, cases, number = loads[0]
        parts[number].append(case_id)
        heapq.heapreplace(loads, (time + times[case_id], cases + 1, number))
    return tuple(map(frozenset, parts))


def durations_of(results: Results) -> dict[str, float]:
    """Return the agent's time for each case of a run over all iterations, in milliseconds.

    Cases without a latency, or with an impossible one, are omitted.
    """
    found: dict[str, float] = {}
    for _, case in results.cases():
        latencies = [turn.latency_ms for turn in case.turns if turn.latency_ms is not None]
        total = sum(latencies)
        if latencies and math.isfinite(total) and min(latencies) >= 0:
            found[case.id] = total
    return found


def with_open_criteria(suites: Sequence[Suite], results: Results) -> Results:
    """Return the results of a shard with its suites' criteria undecided, as they concern the whole run."""
    criteria = {suite.path: _criteria(suite) for suite in suites}
    with_criteria = [suite.model_copy(update={"criteria": criteria[suite.path]}) for suite in results.suites]
    return results.model_copy(update={"suites": with_criteria})


def _criteria(suite: Suite) -> list[Criterion]:
    if suite.evaluation is None:
        return []
    from agenteval.results.analysis.evaluate import evaluate

    asked = replace(suite.evaluation, analyses=Analyses())
    return evaluate((), asked, suite.aggregate or Aggregate()).criteria


@dataclass(frozen=True)
class Settings:
    """Settings of a run, a merge or a command on saved results; ``None`` means the default of the files.

    Attributes:
        suites: files, directories, or suites that the caller has built.
        out: the directory of the reports; ``None`` writes none.
        cases: names or ids of the cases to run; empty: all.
        failed_in: results of an earlier run; only its cases that did not pass run.
        needs_baseline: whether a run that is compared with nothing fails.
        prove: whether an improvement of a change is proven too, as on the base branch.
        is_whole: every case runs all its iterations, whatever ``gate.first`` says.
    """

    suites: tuple[Path | Suite, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None
    baseline: Path | None = None
    out: Path | None = Path("agenteval-report")
    metrics: tuple[MetricConfig, ...] = ()
    iterations: int | None = None
    concurrency: int | None = None
    filter: str | None = None
    tags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    failed_in: Path | None = None
    shard: Shard | None = None
    fail_on: frozenset[FailOn] | None = None
    needs_baseline: bool = False
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    time_limit_s: float | None = None
    seed: int | None = None
    prove: bool = False
    is_whole: bool = False
    resume: bool = False
    use_cache: bool = True
    quiet: bool = False
    verbosity: int = 0
    traces: Path | None = None
    keep_going: bool = False
    control: str | None = None
    history: Path | None = None
    comment_template: Path | None = None
    summary_template: Path | None = None
