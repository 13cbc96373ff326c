"""Finished cases of a run, in memory and in the journal."""

from __future__ import annotations

import hashlib
import io
import math
import secrets
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from agenteval.core.errors import InfrastructureError
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.gate.run_scores import case_amounts, pool_case, scores_of
from agenteval.metrics.resources import RunResources
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.masking import MAX_ANSWER_BYTES, redacted, shortened
from agenteval.results.model import RunUsage, Summary
from agenteval.results.rollup import CaseTally, MetricUse, total
from agenteval.results.store import Passed, agent_seconds
from agenteval.run.agent_failure import AgentNotes
from agenteval.run.journal import Journal, case_text, parsed
from agenteval.run.plan import Job, PlannedCase, needs_whole_answers
from agenteval.run.progress import Progress
from agenteval.run.retention import Retention, within_limit

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer


def set_at(numbers: array[int] | array[float], position: int, value: float) -> None:
    """Set the number at a position; a shorter array is filled with 0 up to that position."""
    missing = position + 1 - len(numbers)
    if missing > 0:
        numbers.frombytes(bytes(missing * numbers.itemsize))
    numbers[position] = value  # type: ignore[call-overload]


class CompactScores:
    """The scores of cases by metric; a case is identified by its position in the plan."""

    def __init__(self) -> None:
        # The metrics of a case and the number of scores of each; shape 0 means that the case was not added.
        self._shapes: dict[tuple[tuple[str, int], ...], int] = {}
        self._by_number: list[tuple[tuple[str, int], ...]] = [()]
        self._shape_of = array("L")
        self._starts = array("Q")
        self._values = array("d")

    def add(self, position: int, scores: Mapping[str, Sequence[float | None]]) -> None:
        """Add the scores of a case; `None` is a lost one."""
        shape = tuple((name, len(values)) for name, values in scores.items())
        number = self._shapes.get(shape)
        if number is None:
            number = self._shapes[shape] = len(self._by_number)
            self._by_number.append(shape)
        set_at(self._shape_of, position, number)
        set_at(self._starts, position, len(self._values))
        for values in scores.values():
            self._values.extend(math.nan if value is None else value for value in values)

    def get(self, position: int) -> dict[str, list[float | None]] | None:
        """Return the scores of a case; ``None`` if it was never added."""
        number = self._shape_of[position] if position < len(self._shape_of) else 0
        if not number:
            return None
        found: dict[str, list[float | None]] = {}
        start = self._starts[position]
        for name, amount in self._by_number[number]:
            values = self._values[start : start + amount]
            found[name] = [None if math.isnan(value) else value for value in values]
            start += amount
        return found


class _Brief(BaseModel):
    name: str
    status: CaseStatus


class JournalArchive:
    """Reads the cases of a run back from its journal, those of each suite in the order of their positions.

    Args:
        pool: yields the cases of the run's pool entry by case id, in batches.
    """

    def __init__(self, journal: Journal, run_id: str, pool: Callable[[], Iterator[Mapping[str, PoolCase]]]) -> None:
        self._journal = journal
        self._key = secrets.token_bytes(16)
        self._run_id = run_id
        self._pool = pool
        # By suite: its number (from 1) and the range of its positions; the ranges of confirmation runs overlap.
        self._suites: dict[str, tuple[int, range]] = {}
        self._suite_of = array("I")
        # Byte offsets in the journal; 0 is the head line, so no case starts there.
        self._places = array("Q")
        # Of the JSON of each case: what is read must be what was written.
        self._digests = array("Q")
        self._seconds = array("d")
        self._unwritten: dict[int, CaseResult] = {}
        self._counts: defaultdict[str, Counter[CaseStatus]] = defaultdict(Counter)

    def add(self, suite: str, position: int, case: CaseResult, place: int, text: str) -> None:
        """Add a case that is in the journal.

        Args:
            case: the complete case; it is not kept in memory.
            place: byte offset of its line in the journal.
        """
        set_at(self._places, position, place)
        set_at(self._digests, position, self._digest(text.encode("utf-8", "backslashreplace")))
        self._count(suite, position, case)

    def add_unwritten(self, suite: str, position: int, case: CaseResult) -> None:
        """Add a case that is not in the journal, and keep it in memory."""
        self._unwritten[position] = case
        self._count(suite, position, case)

    def _count(self, suite: str, position: int, case: CaseResult) -> None:
        set_at(self._seconds, position, agent_seconds(case))
        self._counts[suite][case.status] += 1
        number, known = self._suites.get(suite, (len(self._suites) + 1, range(position, position)))
        set_at(self._suite_of, position, number)
        if position not in known:
            known = (
                range(min(position, known.start), max(position + 1, known.stop))
                if known
                else range(position, position + 1)
            )
        self._suites[suite] = (number, known)

    @property
    def suites(self) -> Collection[str]:
        """Paths of the suites with a case."""
        return self._suites

    def positions(self, suite: str) -> Iterator[int]:
        """Yield the positions of a suite's cases, in order."""
        number, positions = self._suites.get(suite, (0, range(0)))
        return (position for position in positions if self._suite_of[position] == number)

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Yield every case of a suite, complete."""
        for _, text in self._read(suite.path):
            yield parsed(CaseResult, text)

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Yield every case of a suite as JSON in one line."""
        for _, text in self._read(suite.path):
            yield text.decode()

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """Yield the cases of a suite; those that did not pass are complete, with the agent's seconds."""
        for position, text in self._read(suite.path):
            seconds = self._seconds[position]
            brief = parsed(_Brief, text)
            yield Passed(brief.name, seconds) if brief.status == "passed" else (parsed(CaseResult, text), seconds)

    def pooled(self, entry: PoolEntry) -> Iterator[Mapping[str, PoolCase]]:
        """Yield the cases of a pool entry by case id, in batches."""
        return self._pool() if entry.run_id == self._run_id else iter((entry.cases,))

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's total time for the cases of a suite, in seconds."""
        return total(array("d", (self._seconds[position] for position in self.positions(suite.path))))

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        return self._counts.get(suite.path, Counter())

    def _read(self, suite: str) -> Iterator[tuple[int, bytes]]:
        """Yield the position and the JSON of every case of a suite."""
        try:
            # A run that was interrupted before its first case has no journal.
            with self._journal.read() if self._places else io.BytesIO() as lines:
                for position in self.positions(suite):
                    if position in self._unwritten:
                        yield (
                            position,
                            self._unwritten[position].model_dump_json().encode("utf-8", "backslashreplace"),
                        )
                    else:
                        text = case_text(lines, suite, self._places[position])
                        if self._digest(text) != self._digests[position]:
                            raise InfrastructureError(
                                f"{self._journal.path} was changed during the run, so its results are not reported; "
                                "find what writes to the report directory"
                            )
                        yield position, text
        except OSError as error:
            raise InfrastructureError(f"cannot read {self._journal.path}: {error.strerror}") from None

    def _digest(self, text: bytes) -> int:
        # With a secret key, nobody else can find another text with the same digest.
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self._key).digest())


_POOLED_AT_ONCE = 1000


@dataclass(frozen=True)
class CaseReceivers:
    """Receivers of finished cases besides the store.

    Attributes:
        resources: counts the cost of models, which the journal records.
        redact: removes secrets from everything that is stored.
        max_answer_bytes: bytes of one text that are stored.
    """

    resources: RunResources
    redact: Redactor = field(repr=False)
    progress: Progress
    max_answer_bytes: int = MAX_ANSWER_BYTES


class CaseStore:
    """The finished cases of a run: the journal contains all of them; the retention decides what stays in memory.

    Cases may finish in any order; each has its position in the plan.

    Args:
        journal: receives every case; open while cases are recorded.
        retention: keeps cases in memory.
        planned: the cases of the run's pool entry, by position.
        metered: ids of cases that a model agent answers; their usage is counted as model usage.
        measured: what cases take that the pool keeps.

    Attributes:
        archive: reads cases back in full.
        agents: counts what the cases of an agent have in common.
        metric_use: counts what the metrics of each suite measured, by suite path.
    """

    def __init__(
        self,
        journal: Journal,
        retention: Retention,
        output: CaseReceivers,
        *,
        run_id: str,
        planned: Sequence[PlannedCase] = (),
        metered: Collection[str] = (),
        measured: Collection[str] = (),
    ) -> None:
        self.archive = JournalArchive(journal, run_id, self._pool_cases)
        self.retries = Retries()
        self.agents = AgentNotes()
        self.metric_use: dict[str, MetricUse] = {}
        self._journal = journal
        self._retention = retention
        self._output = output
        self._planned = planned
        self._measured = measured
        self._scores = CompactScores()
        self._answers: dict[str, _Answers] = {}
        self._tally = CaseTally(metered)
        # By set of metrics: the first position whose case has scores of exactly these metrics.
        self._first_with: dict[tuple[str, ...], int] = {}

    def record(self, job: Job, result: CaseResult) -> None:
        """Record a finished case."""
        clean, text = redacted(result, self._output.redact)
        # Analyses read the whole tool calls.
        answers = self._analysed(job, clean)
        kept, text = shortened(clean, text, self._output.max_answer_bytes)
        self._record_spend()
        place = self._journal.add(job.suite.path, text)
        self.archive.add(job.suite.path, job.position, kept, place, text)
        self._add(job.position, job, kept, text, answers)

    def record_iteration(self, job: Job, iteration: IterationResult) -> IterationResult:
        """Write a finished iteration to the journal; a case with a single iteration is written only as a case.

        Returns:
            The iteration for its case: as written, unless a metric or an analysis of the whole case still reads its
            answers.
        """
        if job.iterations == 1:
            return iteration
        clean, text = redacted(iteration, self._output.redact)
        kept, text = shortened(clean, text, self._output.max_answer_bytes)
        self._record_spend()
        self._journal.add_iteration(job.suite.path, job.case.id, text)
        return iteration if needs_whole_answers(job.suite, job.case) else kept

    def resumed(self, position: int, item: PlannedCase, result: CaseResult, place: int, before: bytes) -> None:
        """Add a case that the interrupted run had finished.

        Args:
            result: the case, with the names and lines of the current suite.
            place: byte offset of its line in the journal.
        """
        text = result.model_dump_json()
        if text.encode("utf-8", "backslashreplace") != before:
            place = self._journal.add(item.suite.path, text)
        self.archive.add(item.suite.path, position, result, place, text)
        self._add(position, item, result, text, self._analysed(item, result))

    def unfinished(self, position: int, item: Job | PlannedCase, result: CaseResult) -> None:
        """Add a case that did not finish; it is not written to the journal, so that a resumed run runs it."""
        clean, text = redacted(result, self._output.redact)
        answers = self._analysed(item, clean)
        kept, text = shortened(clean, text, self._output.max_answer_bytes)
        self.archive.add_unwritten(item.suite.path, position, kept)
        self._add(position, item, kept, text, answers)

    def cases(self) -> dict[str, list[CaseResult]]:
        """Return the cases in memory, by suite path, in the order of the plan."""
        return {suite: self._retention.cases(self.archive.positions(suite)) for suite in self.archive.suites}

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """Return the answers that analyses need, in plan order, by path of each suite that defines an analysis."""
        return {suite: answers.ordered() for suite, answers in self._answers.items()}

    def summary(self, asked: RunUsage) -> Summary:
        """Return the summary of the run; metrics are in the order in which the plan first uses them."""
        summary = self._tally.summary(asked)
        ordered = sorted(self._first_with, key=self._first_with.__getitem__)
        names = dict.fromkeys(name for names in ordered for name in names)
        return summary.model_copy(update={"metrics": {name: summary.metrics[name] for name in names}})

    def _analysed(self, item: Job | PlannedCase, case: CaseResult) -> list[EvaluatedAnswer]:
        """Return the answers of a case for the analysis of its suite; none without an analysis."""
        if item.suite.evaluation is None:
            return []
        redact = self._output.redact
        return [replace(answer, trace_id=redact(answer.trace_id)) for answer in _answers(item, case)]

    def _add(
        self,
        position: int,
        item: Job | PlannedCase,
        case: CaseResult,
        text: str,
        analysed: Iterable[EvaluatedAnswer],
    ) -> None:
        """Count a case and keep it in memory; `text` is its JSON."""
        aggregate = item.suite.aggregate
        threshold = aggregate.threshold if aggregate else None
        if item.suite.path not in self.metric_use:
            self.metric_use[item.suite.path] = MetricUse(threshold)
        self.metric_use[item.suite.path].add(case)
        self._tally.add(case)
        self.retries.add(case)
        self.agents.add(item.agent.spec if isinstance(item, Job) else item.agent, case)
        metrics = tuple(dict.fromkeys([score.id for score in case.scores if score.status != "skipped"]))
        self._first_with[metrics] = min(position, self._first_with.get(metrics, position))
        if self._planned:
            scores = scores_of(case, threshold, item.case.compared_metrics)
            self._scores.add(position, {**scores, **case_amounts(case, self._measured)})
        if item.suite.evaluation is not None:
            answers = self._answers.setdefault(item.suite.path, _Answers())
            for answer in analysed:
                answers.add(position, answer)
        self._retention.add(position, within_limit(case, text))
        self._output.progress.finished(case)

    def _pool_cases(self) -> Iterator[dict[str, PoolCase]]:
        """Yield the cases of the run's pool entry by case id, in plan order and in batches."""
        found: dict[str, PoolCase] = {}
        for position, planned in enumerate(self._planned):
            scores = self._scores.get(position)
            if scores is not None:
                found[planned.case.id] = pool_case(planned.case.fingerprints, scores)
            if len(found) == _POOLED_AT_ONCE:
                yield found
                found = {}
        yield found

    def _record_spend(self) -> None:
        # Written before the case: a resumed run must count the cost of every case that it keeps.
        resources = self._output.resources
        if resources.gateway.budget.calls or resources.gateway.cached_calls:
            self._journal.spend(resources.asked, resources.judged)


class _Answers:
    """The answers of a suite that analyses need, in little memory."""

    def __init__(self) -> None:
        self._positions = array("Q")
        self._answers: list[EvaluatedAnswer] = []

    def add(self, position: int, answer: EvaluatedAnswer) -> None:
        """Add an answer of the case at a position; the answers of one case are added in order."""
        self._positions.append(position)
        self._answers.append(answer)

    def ordered(self) -> list[EvaluatedAnswer]:
        """Return the answers in the order of the plan."""
        return [self._answers[index] for index in sorted(range(len(self._answers)), key=self._positions.__getitem__)]


@dataclass
class Retries:
    """Counts of retries after transient failures of agents."""

    turns: int = 0
    attempts: int = 0
    answered: int = 0

    def add(self, case: CaseResult) -> None:
        """Count the retries of a case."""
        for turn in case.turns:
            if turn.retries:
                self.turns += 1
                self.attempts += turn.retries
                self.answered += turn.error is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about the retries; empty without retries."""
        if not self.turns:
            return ()
        what = "1 turn was" if self.turns == 1 else f"{self.turns} turns were"
        attempts = "1 retry" if self.attempts == 1 else f"{self.attempts} retries"
        return (f"{what} retried after a transient failure ({attempts}); {self.answered} got an answer",)


def _answers(item: Job | PlannedCase, result: CaseResult) -> Iterator[EvaluatedAnswer]:
    # Imported here: few suites define an analysis.
    from agenteval.results.analysis.answers import evaluated

    recorded = item.recorded
    for iteration in result.iterations:
        trace = {"success": True} if recorded is None else recorded.record
        yield evaluated(result, iteration, item.case.persona, trace)
