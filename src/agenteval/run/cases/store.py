"""Stores the finished cases of a run, and counts them for the run's summary."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agenteval.compare.run_scores import pool_case, scores_of
from agenteval.core.text.redact import Redactor
from agenteval.metrics.resources.shared import RunResources
from agenteval.results.case import CaseResult, IterationResult
from agenteval.results.comparison import PoolCase
from agenteval.results.masking import redacted
from agenteval.results.metric_use import MetricUse
from agenteval.results.rollup import Tally
from agenteval.results.shortening import MAX_ANSWER_BYTES, shortened
from agenteval.results.summary import RunUsage, Summary
from agenteval.run.cases.agent_notes import AgentNotes
from agenteval.run.cases.archive import JournalArchive
from agenteval.run.cases.compact_scores import CompactScores
from agenteval.run.cases.retention import Retention, within_limit
from agenteval.run.journal.journal import Journal
from agenteval.run.plan import Job, PlannedCase, needs_whole_answers
from agenteval.run.progress import Progress

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer

_POOLED_AT_ONCE = 1000


@dataclass(frozen=True)
class Output:
    """Receivers of finished cases besides the store.

    Attributes:
        resources: counts the cost of models, which the journal records.
        redact: removes secrets from everything that is stored.
        progress: shows finished cases.
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
        output: receives every case as well.
        run_id: the run.
        planned: the cases of the run's pool entry, by position.
        metered: ids of cases that a model agent answers; their usage is counted as model usage.

    Attributes:
        archive: reads cases back in full.
        retries: counts the retries of agents.
        agents: counts what the cases of an agent have in common.
        metric_use: counts what the metrics of each suite measured, by suite path.
    """

    def __init__(
        self,
        journal: Journal,
        retention: Retention,
        output: Output,
        *,
        run_id: str,
        planned: Sequence[PlannedCase] = (),
        metered: Collection[str] = (),
    ) -> None:
        self.archive = JournalArchive(journal, run_id, self._pool_cases)
        self.retries = Retries()
        self.agents = AgentNotes()
        self.metric_use: dict[str, MetricUse] = {}
        self._journal = journal
        self._retention = retention
        self._output = output
        self._planned = planned
        self._scores = CompactScores()
        self._answers: dict[str, _Answers] = {}
        self._tally = Tally(metered)
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
            position: in the plan.
            item: the planned case.
            result: the case, with the names and lines of the current suite.
            place: byte offset of its line in the journal.
            before: its JSON in the journal.
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
        """Return the summary of the run; metrics are in the order in which the plan first uses them.

        Args:
            asked: usage of all models.
        """
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
            self._scores.add(position, scores_of(case, threshold, item.case.compared_metrics))
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
