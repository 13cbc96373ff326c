"""Keeps what comes to its end in a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from agenteval.core.text.redact import Redactor
from agenteval.metrics.resources.resources import Resources
from agenteval.results.masking import redacted
from agenteval.results.model import CaseResult, IterationResult
from agenteval.run.cases.collected import Collected
from agenteval.run.journal.journal import Journal
from agenteval.run.plan import Job
from agenteval.run.progress import Progress
from agenteval.run.runner.execution import asked_models


@dataclass(frozen=True)
class Recorder:
    """Keeps what ends, without secrets: in the journal, among the finished cases, and on the display."""

    resources: Resources
    redact: Redactor = field(repr=False)
    progress: Progress
    journal: Journal
    collected: Collected

    def finished(self, job: Job, result: CaseResult) -> None:
        """A case came to its end."""
        clean, text = redacted(result, self.redact)
        self._spend()
        place = self.journal.add(job.suite.path, text)
        self.collected.add(job.suite.path, job.position, clean, text, place)
        self.progress.finished(clean)

    def iterated(self, job: Job, iteration: IterationResult) -> None:
        """An iteration came to its end; that of a case with only one comes with its case."""
        if job.iterations > 1:
            _, text = redacted(iteration, self.redact)
            self._spend()
            self.journal.add_iteration(job.suite.path, job.case.id, text)

    def taken_over(self, suite: str, position: int, result: CaseResult, place: int, before: bytes) -> None:
        """An interrupted run had finished a case.

        Args:
            suite: path of its suite.
            position: in the plan.
            result: as the suite has it now.
            place: byte of the journal where it stands.
            before: its JSON there.
        """
        text = result.model_dump_json()
        if text.encode("utf-8", "backslashreplace") != before:
            place = self.journal.add(suite, text)
        self.collected.add(suite, position, result, text, place)
        self.progress.finished(result)

    def shown(self, suite: str, position: int, result: CaseResult) -> None:
        """A case did not come to its end: whoever resumes the run shall run it."""
        clean, _ = redacted(result, self.redact)
        self.collected.add_unwritten(suite, position, clean)
        self.progress.finished(clean)

    def _spend(self) -> None:
        # Before what it was spent on: nothing that is kept is free.
        if self.resources.gateway.budget.calls:
            self.journal.spend(asked_models(self.resources.gateway), self.resources.judged)
