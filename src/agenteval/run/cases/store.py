"""Every finished case of a run, and what the run as a whole counts while cases finish."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.compare.pairing import pool_case, scores_of
from agenteval.core.text.redact import Redactor
from agenteval.metrics.resources.resources import Resources
from agenteval.results.masking import redacted
from agenteval.results.model import CaseResult, IterationResult, PoolCase, RunUsage, Summary
from agenteval.results.rollup import Tally
from agenteval.run.cases.archive import JournalArchive
from agenteval.run.cases.compact_scores import CompactScores
from agenteval.run.cases.retention import Retention, within_limit
from agenteval.run.journal.journal import Journal
from agenteval.run.plan import Job, PlannedCase
from agenteval.run.progress import Progress

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer

_POOLED_AT_ONCE = 1000


@dataclass(frozen=True)
class Output:
    """Where finished cases go besides the store.

    Attributes:
        resources: counts what models cost, which the journal records.
        redact: removes secrets from everything that is kept.
        progress: shows finished cases.
    """

    resources: Resources
    redact: Redactor = field(repr=False)
    progress: Progress


class CaseStore:
    """The finished cases of a run: the journal holds all of them in full, memory what the retention keeps.

    Cases may finish in any order; each has its position in the plan.

    Args:
        journal: receives every case; open while cases are recorded.
        retention: keeps cases in memory.
        output: receives every case as well.
        run_id: the run.
        planned: the cases of the run's own entry in its pool, by their positions.
        metered: ids of cases that a model agent answers; their usage is counted with the models.

    Attributes:
        archive: reads cases back in full.
        retries: counts further attempts of agents.
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
        self.archive = JournalArchive(journal.path, run_id, self._pool_cases)
        self.retries = Retries()
        self._journal = journal
        self._retention = retention
        self._output = output
        self._planned = planned
        self._scores = CompactScores()
        self._answers: dict[str, _Answers] = {}
        self._tally = Tally(metered)
        # By the metrics that scored a case: the first position with exactly these.
        self._first_with: dict[tuple[str, ...], int] = {}

    def record(self, job: Job, result: CaseResult) -> None:
        """Record a finished case."""
        clean, text = redacted(result, self._output.redact)
        self._record_spend()
        place = self._journal.add(job.suite.path, text)
        self.archive.add(job.suite.path, job.position, clean, place)
        self._add(job.position, job, clean, text)

    def record_iteration(self, job: Job, iteration: IterationResult) -> None:
        """Record a finished iteration in the journal; the only iteration of a case comes with its case."""
        if job.iterations > 1:
            _, text = redacted(iteration, self._output.redact)
            self._record_spend()
            self._journal.add_iteration(job.suite.path, job.case.id, text)

    def resumed(self, position: int, item: PlannedCase, result: CaseResult, place: int, before: bytes) -> None:
        """Add a case that the interrupted run had finished.

        Args:
            position: in the plan.
            item: the planned case.
            result: the case as the suite has it now.
            place: byte of the journal where its line begins.
            before: its JSON there.
        """
        text = result.model_dump_json()
        if text.encode("utf-8", "backslashreplace") != before:
            place = self._journal.add(item.suite.path, text)
        self.archive.add(item.suite.path, position, result, place)
        self._add(position, item, result, text)

    def unfinished(self, position: int, item: Job | PlannedCase, result: CaseResult) -> None:
        """Add a case that did not finish. The journal does not get it, so a resumed run runs it."""
        clean, text = redacted(result, self._output.redact)
        self.archive.add_unwritten(item.suite.path, position, clean)
        self._add(position, item, clean, text)

    def cases(self) -> dict[str, list[CaseResult]]:
        """Return the cases in memory, by suite path, in the order of the plan."""
        return {suite: self._retention.cases(self.archive.positions(suite)) for suite in self.archive.suites}

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """Return what analyses need, by path of each suite that defines an analysis, in the order of the plan."""
        return {suite: answers.ordered() for suite, answers in self._answers.items()}

    def summary(self, asked: RunUsage) -> Summary:
        """Return the run in numbers; metrics in the order in which the plan first uses them.

        Args:
            asked: usage of all models.
        """
        summary = self._tally.summary(asked)
        ordered = sorted(self._first_with, key=self._first_with.__getitem__)
        names = dict.fromkeys(name for names in ordered for name in names)
        return summary.model_copy(update={"metrics": {name: summary.metrics[name] for name in names}})

    def _add(self, position: int, item: Job | PlannedCase, case: CaseResult, text: str) -> None:
        """Count a case and keep it in memory; `text` is its JSON."""
        self._tally.add(case)
        self.retries.add(case)
        scores = (score for iteration in case.iterations for turn in iteration.turns for score in turn.scores)
        metrics = tuple(dict.fromkeys([score.id for score in scores if score.score is not None]))
        self._first_with[metrics] = min(position, self._first_with.get(metrics, position))
        if self._planned:
            aggregate = item.suite.aggregate
            self._scores.add(position, scores_of(case, aggregate.threshold if aggregate else None))
        if item.suite.evaluation is not None:
            answers = self._answers.setdefault(item.suite.path, _Answers())
            for answer in _answers(item, case):
                answers.add(position, answer)
        self._retention.add(position, within_limit(case, text))
        self._output.progress.finished(case)

    def _pool_cases(self) -> Iterator[dict[str, PoolCase]]:
        """Yield the cases of the run's own entry in its pool, by id, in the order of the plan, some at a time."""
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
        # Written before the case: a resumed run must know the cost of everything that it keeps.
        resources = self._output.resources
        if resources.gateway.budget.calls:
            self._journal.spend(resources.asked, resources.judged)


class _Answers:
    """What analyses need of a suite's answers, in little memory."""

    def __init__(self) -> None:
        self._positions = array("Q")
        self._answers: list[EvaluatedAnswer] = []

    def add(self, position: int, answer: EvaluatedAnswer) -> None:
        """Add an answer of the case at a position; those of one case come in order."""
        self._positions.append(position)
        self._answers.append(answer)

    def ordered(self) -> list[EvaluatedAnswer]:
        """Return the answers in the order of the plan."""
        return [self._answers[index] for index in sorted(range(len(self._answers)), key=self._positions.__getitem__)]


@dataclass
class Retries:
    """Further attempts after transient failures of agents."""

    turns: int = 0
    attempts: int = 0
    answered: int = 0

    def add(self, case: CaseResult) -> None:
        """Count the retries of a case."""
        for iteration in case.iterations:
            for turn in iteration.turns:
                if turn.retries:
                    self.turns += 1
                    self.attempts += turn.retries
                    self.answered += turn.error is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence about the retries, if there were any."""
        if not self.turns:
            return ()
        what = "1 turn was" if self.turns == 1 else f"{self.turns} turns were"
        attempts = "1 further attempt" if self.attempts == 1 else f"{self.attempts} further attempts"
        return (f"{what} asked again after a failure that may pass ({attempts}); {self.answered} got an answer",)


def _answers(item: Job | PlannedCase, result: CaseResult) -> Iterator[EvaluatedAnswer]:
    # Imported here: few suites define an analysis.
    from agenteval.results.analysis.answers import evaluated

    recorded = item.recorded
    for iteration in result.iterations:
        trace = {"success": iteration.status != "error"} if recorded is None else recorded.record
        yield evaluated(result, iteration, item.case.persona, trace)
