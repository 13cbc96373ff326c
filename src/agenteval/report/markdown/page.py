"""What a template of comment and summary may show."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.report.view import view
from agenteval.report.view.case_details import Story
from agenteval.report.view.comparison_rows import EvidenceRow, ResourceRow, verdict_note
from agenteval.report.view.parts import Section
from agenteval.report.view.view import MetricRow
from agenteval.results.model import Comparison, Criterion, Run, Summary


@dataclass(frozen=True, slots=True)
class Row:
    """One case in one line."""

    status: str
    name: str
    where: str
    score: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a template may show.

    Attributes:
        title: ``agenteval``, with the comment's id where there is one.
        regressions: cases that got worse, the worst first.
        failures: failed and broken cases that are no regressions and, where there is a baseline, new in it;
            ``failures_title`` counts them.
        known_failures: cases that failed in the baseline too, or are in quarantine.
        suspects: cases that fail where they passed, which may be chance; with how they did before.
        flaky: cases that passed and failed in the baseline, quarantined ones included.
        evidence: how sure the comparison is, metric by metric.
        resources: latency, tokens and cost; ``resource_changes`` says in one line what of them changed.
        criteria: conditions on whole suites, with the suite's name.
        baseline_age: ``3 days old``.
        repetitions: ``3 iterations, 5 baseline runs``.
        smallest_drops: what the suite can see.
        gate_needs: what closes the gate, one sentence each.
        elsewhere: where there is more; ``elsewhere_link`` is its address.
    """

    title: str
    passed: bool
    headline: str
    reasons: Section[str]
    warnings: Section[str]
    summary: Summary
    run: Run
    version: str
    comparison: Comparison | None
    score_change: float | None
    metrics: Section[MetricRow]
    regressions: Section[Story]
    failures: Section[Story]
    failures_title: str
    known_failures: Section[Row]
    improvements: Section[Row]
    skipped: Section[Row]
    new: Section[str]
    removed: Section[str]
    changed: Section[str]
    suspects: Section[Row]
    flaky: Section[Row]
    evidence: Section[EvidenceRow]
    resources: Section[ResourceRow]
    resource_changes: str
    cases: Section[Row]
    criteria: Section[tuple[str, Criterion]]
    baseline_age: str
    repetitions: str
    smallest_drops: str
    gate_needs: tuple[str, ...]
    elsewhere: str
    elsewhere_link: str

    @property
    def verdict_note(self) -> str:
        """What the comparison says where it found no regression."""
        return verdict_note(self.comparison) if self.comparison else ""

    @property
    def partial(self) -> bool:
        """Whether the table of metrics leaves out cases that only one of the runs scored."""
        return any(row.partial for row in self.metrics.items)

    @property
    def metrics_regressed(self) -> bool:
        """Whether the comparison finds a whole metric worse."""
        return any(row.regressed for row in self.metrics.items)

    @property
    def suite_changes(self) -> str:
        """``2 new cases, 1 missing case``."""
        counted = ((self.new, "new case"), (self.removed, "missing case"), (self.changed, "changed case"))
        return ", ".join(view.count(section.total, noun) for section, noun in counted if section.total)

    @property
    def left_out(self) -> str:
        """The sections that have no room at all: ``3 metrics, 12 skipped cases``."""
        counted: tuple[tuple[Section[Story] | Section[Row] | Section[MetricRow], str], ...] = (
            (self.regressions, "regression"),
            (self.failures, "failure"),
            (self.known_failures, "known failure"),
            (self.improvements, "improvement"),
            (self.skipped, "skipped case"),
            (self.suspects, "suspect"),
            (self.flaky, "flaky case"),
            (self.metrics, "metric"),
        )
        gone = [view.count(section.total, noun) for section, noun in counted if section.total and not section.items]
        return ", ".join(gone)
