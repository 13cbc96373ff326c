"""Data of a run: what is planned, what each of several machines does, and what was executed."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agenteval.agents.base import Agent
from agenteval.core.confine import UserCodeRules
from agenteval.core.errors import Kind, Problem
from agenteval.core.llm.gateway import Gateway
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.metrics.resources import RunResources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.case import CaseResult, Criterion, IterationResult
from agenteval.results.masking import MAX_ANSWER_BYTES
from agenteval.results.model import Results, RunUsage, Summary, UsedPlugin
from agenteval.results.rollup import CaseTally, has_weight
from agenteval.results.store import IN_MEMORY, Archive
from agenteval.run.progress import Progress
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite

if TYPE_CHECKING:
    from agenteval.agents.recorded_cases import RecordedAnswer
    from agenteval.core.llm.models import NotAskedError
    from agenteval.results.analysis.answers import EvaluatedAnswer


@dataclass(frozen=True)
class SuitePlan:
    """What the cases of a suite share in a run; suites with the same configuration share it too.

    Attributes:
        rules: variables and limits of their agents and tools.
        case_s: limit for the conversation of one iteration, in seconds; ``None`` is no limit.
    """

    catalog: MetricCatalog
    rules: UserCodeRules = field(default_factory=UserCodeRules)
    case_s: float | None = None


@dataclass
class ResumedRun:
    """The content of an interrupted run's journal; the line of a complete case replaces those of its iterations.

    Cases with calls that the budget left out are not complete, so they run again.

    Attributes:
        since: when the run, or its last resumption, began; in seconds since the epoch.
        kept: bytes of the journal that the resumed run keeps.
        active_s: duration of the run so far, in seconds.
        complete: byte offset and length of the cases that had finished all iterations, by suite path and case id.
        numbers: their numbers of iterations.
        iterations: finished iterations of the other cases, by case id and index.
        shortened: ids of the cases with answers that the journal contains only the beginning of.
    """

    run_id: str
    since: float
    kept: int
    active_s: float = 0.0
    complete: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    iterations: dict[str, dict[int, IterationResult]] = field(default_factory=dict)
    asked: RunUsage = field(default_factory=RunUsage)
    judged: dict[str, int] = field(default_factory=dict)
    shortened: set[str] = field(default_factory=set)

    @property
    def done(self) -> int:
        """The number of finished iterations."""
        return sum(self.numbers.values()) + sum(map(len, self.iterations.values()))


@dataclass(frozen=True)
class RunLimits:
    """Limits of concurrency, time and size; ``None`` is no limit.

    Attributes:
        concurrency: number of iterations at the same time, over all agents.
        run_s: limit for the whole run, in seconds; 0 or less leaves no time.
        max_answer_bytes: bytes of one text of an answer that results keep.
    """

    concurrency: int
    run_s: float | None = None
    max_answer_bytes: int = MAX_ANSWER_BYTES

    def minus(self, seconds: float) -> RunLimits:
        """Return the remaining limits after a time in seconds."""
        return self if self.run_s is None else replace(self, run_s=self.run_s - seconds)

    @property
    def time_limit_reached(self) -> bool:
        """Whether the time limit is reached."""
        return self.run_s is not None and self.run_s <= 0


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case with its agent and its iterations.

    Attributes:
        follow_recording: run as many iterations as a replay agent has recorded, because no number was requested.
        recorded: the answer of the trace that the case was made from; the agent is not called.
    """

    suite: Suite
    case: Case
    agent: AgentSpec
    iterations: int
    follow_recording: bool = False
    recorded: RecordedAnswer | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Job:
    """A planned case with its started agent.

    Attributes:
        done: iterations that an interrupted run had finished.
        unjudged: why judges do not score the case, if the suite's limits leave it out.
    """

    item: PlannedCase
    plan: SuitePlan
    agent: Agent
    done: tuple[IterationResult, ...] = ()
    position: int = 0
    unjudged: NotAskedError | None = None

    @property
    def left(self) -> Sequence[int]:
        """The numbers of the iterations that have not run."""
        wanted = range(self.item.iterations)
        done = {iteration.index for iteration in self.done}
        return [index for index in wanted if index not in done] if done else wanted


def needs_whole_answers(suite: Suite, case: Case) -> bool:
    """Return whether a metric of the whole case, or the suite's analysis, reads answers of finished iterations."""
    return bool(case.metrics) or suite.evaluation is not None


class CaseSource(Protocol):
    """A source of cases that are planned lazily, one by one; each iteration over it starts at the first case."""

    def __iter__(self) -> Iterator[PlannedCase]: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about what the last iteration left out."""
        ...


#: The cases so far, each with the path of its suite → whether the run may end.
MayStop = Callable[[Sequence[tuple[str, CaseResult]]], bool]


@dataclass(frozen=True)
class Plan:
    """The cases of a run, with all the data that the runner needs.

    Attributes:
        seed: the random seed; ``None`` for a random one.
        compared: keep all cases in memory, because they are compared with a baseline.
        is_quarantined_by_name: returns whether the quarantine names a case; reports list it with any status. ``None``
            without a quarantine.
        conditions: what must be the same for the run to be resumed; ``None`` for its inputs.
        replaced: directories with files of an earlier run, which are removed when this run begins.
        baseline: the file of the baseline that the caller named; empty without one.
        measured: what cases take that the baseline keeps: ``latency``, ``cost``, ``tokens``.
        may_stop: returns whether a first run may end after a pass, by the iterations so far of each case, with the
            path of its suite; ``None`` if it always makes all iterations.
    """

    run_id: str
    cases: Sequence[PlannedCase] | CaseSource
    suites: Mapping[str, SuitePlan]
    limits: RunLimits
    resources: RunResources
    journal: Path
    redact: Redactor = field(repr=False)
    progress: Progress
    compared: bool
    is_quarantined_by_name: Callable[[CaseResult], bool] | None
    seed: int | None = None
    earlier: ResumedRun | None = None
    conditions: Mapping[str, str] | None = None
    replaced: tuple[Path, ...] = ()
    baseline: str = ""
    measured: Collection[str] = ()
    may_stop: MayStop | None = None

    @property
    def known_cases(self) -> Sequence[PlannedCase] | None:
        """All cases, if they are known before the run; ``None`` if a source plans them one by one."""
        return self.cases if isinstance(self.cases, Sequence) else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the source of the cases left out."""
        return () if isinstance(self.cases, Sequence) else self.cases.warnings


#: Environment variable of agents; it has another value in each run, and for each side of a confirmation.
SESSION = "AGENTEVAL_SESSION"


def with_session(agent: AgentSpec, session: str) -> AgentSpec:
    """Return an agent whose processes get the name of a session, unless its definition or caller has set one."""
    return replace(agent, env={SESSION: session, **agent.env})


@dataclass(frozen=True)
class RunExecution:
    """The finished cases of a run; without cases that a signal interrupted.

    Attributes:
        cases: cases by suite path, in suite order; large runs keep only what reports show.
        tallies: the counts of each suite's cases, by suite path.
        is_baseline_run: whether the run gets an entry in its baseline, for later statistical comparisons.
        answers: the answers that analyses need, by path of each suite that defines an analysis.
        earlier_s: the part of the duration before the run was interrupted, in seconds.
        without_calls: sentences about agents that never return the tool calls that cases expect.
        dead: why agents and judges failed in every case.
    """

    run_id: str
    started: float
    duration_s: float
    cases: Mapping[str, Sequence[CaseResult]]
    summary: Summary
    asked: RunUsage
    total: int
    is_baseline_run: bool = True
    earlier_s: float = 0.0
    answers: Mapping[str, Sequence[EvaluatedAnswer]] = field(default_factory=dict)
    tallies: Mapping[str, CaseTally] = field(default_factory=dict)
    archive: Archive = IN_MEMORY
    signal: int | None = None
    unfinished: int = 0
    refused_calls: int = 0
    nothing_to_check: bool = False
    warnings: tuple[str, ...] = ()
    without_calls: tuple[str, ...] = ()
    plugins: tuple[UsedPlugin, ...] = ()
    dead: tuple[Problem, ...] = ()
    agent_errors: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Results) -> RunExecution:
        """Return what a finished run executed."""
        return cls(
            run_id=results.run.id,
            started=datetime.fromisoformat(results.run.started_at).timestamp(),
            duration_s=results.run.duration_s,
            cases={suite.path: suite.cases for suite in results.suites},
            summary=results.summary,
            asked=RunUsage(),
            total=results.summary.cases,
        )

    @property
    def complete(self) -> bool:
        """Whether every case finished."""
        return self.signal is None and not self.unfinished


def budget_warnings(gateway: Gateway) -> tuple[str, ...]:
    """Return warnings about a budget that is exhausted or cannot be enforced."""
    warnings = []
    refused = gateway.budget.refused
    if refused:
        warnings.append(
            f"the LLM budget is exhausted: {'1 call was' if refused == 1 else f'{refused} calls were'} not made; "
            "affected metrics are skipped; model-agent turns become errors"
        )
    if gateway.unpriced and gateway.budget.limits.max_cost_usd is not None:
        names = ", ".join(sorted(gateway.unpriced))
        warnings.append(f"max_cost_usd does not limit {names}: the price is not known")
    return tuple(warnings)


#: The maximum number of shards.
MOST_SHARDS = 1000
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the shards, counted from 1; those with more cases have a larger share, if their sizes are known."""

    index: int
    count: int
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse ``I/N`` with 1 ≤ I ≤ N ≤ 1000."""
        index, _, count = text.partition("/")
        if not (_is_number(index) and _is_number(count)):
            raise ValueError(f"{text!r} is not of the form I/N, as in 2/5")
        shard = cls(int(index), int(count))
        if not 1 <= shard.count <= MOST_SHARDS:
            raise ValueError(f"{text!r} asks for {shard.count} shards; allowed are 1 to {MOST_SHARDS}")
        if not 1 <= shard.index <= shard.count:
            raise ValueError(f"{text!r} asks for shard {shard.index}; there are shards 1 to {shard.count}")
        return shard

    def share(self, number: int) -> int:
        """Return this shard's share of a number; those of all shards add up to it."""
        sizes = self.sizes or (1,) * self.count
        twice = 2 * sum(sizes)
        # To the nearest number.
        first, end = ((2 * number * sum(sizes[:n]) + sum(sizes)) // twice for n in (self.index - 1, self.index))
        return end - first

    def cases(self, case_ids: Collection[str], durations: Mapping[str, float]) -> frozenset[str]:
        """Return the ids of the cases in this shard."""
        return divide(case_ids, self.count, durations)[self.index - 1]


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


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def with_open_criteria(suites: Sequence[Suite], results: Results) -> Results:
    """Return the results of a shard with its suites' criteria undecided, as they concern the whole run."""
    criteria = {suite.path: _criteria(suite) for suite in suites}
    with_criteria = [suite.model_copy(update={"criteria": criteria[suite.path]}) for suite in results.suites]
    return results.model_copy(update={"suites": with_criteria})


def _criteria(suite: Suite) -> list[Criterion]:
    if suite.evaluation is None:
        return []
    from agenteval.results.analysis.evaluate import evaluate
    from agenteval.suite.evaluation import Aggregate, Analyses

    asked = replace(suite.evaluation, analyses=Analyses())
    return evaluate((), asked, suite.aggregate or Aggregate()).criteria


# Warnings of a suite that a message repeats.
_MOST_WARNINGS = 2


def counts(metric: MetricConfig, case: Case) -> bool:
    """Return whether a metric can affect the status of a case: in an aggregate, it needs a weight."""
    return case.aggregate is None or metric.requested_by == "config" or has_weight(metric.id, case.aggregate)


def why_unchecked(suite: Suite, case: Case) -> Problem:
    """Return why no metric applies to a case and to all others of its suite, at the first case."""
    if any(counts(metric, case) for metric in case.all_metrics):
        message = "no case has a `ground_truth` for the metrics to compare with; add one, or a metric that needs none"
    else:
        which = " with a weight above 0" if case.all_metrics else ""
        message = f"no case has an enabled metric{which}; add a metric, or enable one"
    # Warnings say what of the suite is not used.
    message = "; ".join((message, *suite.warnings[:_MOST_WARNINGS]))
    return Problem(message, file=suite.path, line=case.line, kind=Kind.GROUND_TRUTH)
