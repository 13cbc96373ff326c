"""The content of a report for the templates of comment and summary."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.report.view import view
from agenteval.report.view.case_details import CaseDetails
from agenteval.report.view.cause_rows import CauseRow, Example
from agenteval.report.view.comparison_rows import EvidenceRow, ResourceRow, verdict_note
from agenteval.report.view.decline import DeclineRow
from agenteval.report.view.goals import Goal
from agenteval.report.view.heading import Heading
from agenteval.report.view.integrity import IntegrityRow
from agenteval.report.view.moved_cases import MovedCases
from agenteval.report.view.next_steps import NextSteps
from agenteval.report.view.outlook import OutlookRow
from agenteval.report.view.parts import Section
from agenteval.report.view.view import MetricRow
from agenteval.results.case import Criterion
from agenteval.results.comparison import Comparison
from agenteval.results.model import Run
from agenteval.results.summary import Summary
from agenteval.results.verdict import Verdict


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
    """The whole report.

    Attributes:
        title: ``agenteval``, with the comment's id if there is one.
        job: what tells this report from those of other jobs; may be empty.
        heading: the heading as a sentence about the merge, and the sentences below it.
        base: the branch to compare with; ``baseline`` if it is unknown.
        causes: what needs attention, one row for each cause; ``more_causes`` counts the omitted ones and their cases.
        examples: the first case of each cause with both runs, as a diff.
        aside: what is not held against the change; ``aside_title`` counts it.
        certainty: how sure the findings are, one sentence each.
        steps: the commands that repeat or accept the cases, and what usually helps.
        rules: the changed rules and cases that are in sight if ``rules_matter``; ``integrity`` has all of them.
        size: ``118 cases × 3``; ``runs``: ``3 runs``, of the baseline.
        shows_judging: whether something was found or suspected, so that it matters how it was judged.
        verdict: ``passed``, ``failed``, ``unproven`` or ``error``; the filter ``icon`` shows its icon.
        regressions: cases that broke, the worst first.
        moved: for each metric whose mean is proven to have changed, the cases behind that.
        failures: failed cases and errors that are not regressions and, with a baseline, not known from it;
            ``failures_title`` counts them.
        known_failures: cases that failed in the baseline too, or are quarantined.
        suspects: possible regressions: cases that passed and now fail, but not significantly; with their history.
        flaky: cases that passed and failed in the baseline, including quarantined ones.
        evidence: the statistics of the comparison by metric.
        resources: latency, tokens and cost; ``resource_changes`` lists their changes in one line.
        criteria: conditions on whole suites, with the suite's name.
        goals: what the suites are evaluated for.
        outlook: what the gate will find once the base branch has runs, for a first run.
        baseline_age: ``3 days old``.
        repetitions: ``3 iterations, 5 baseline runs``.
        smallest_drops: the drops that the suite can detect.
        gate_needs: the conditions that fail the gate, one sentence each.
        decline: the runs of the base branch over which a slow decline is proven.
        integrity: how the change differs from the base commit by whose suites and rules it was judged.
        elsewhere: where the full report is; ``elsewhere_link`` is its address.
    """

    title: str
    job: str
    heading: Heading
    base: str
    causes: Section[CauseRow]
    more_causes: str
    examples: Section[Example]
    aside: Section[CauseRow]
    aside_title: str
    certainty: tuple[str, ...]
    steps: NextSteps
    rules: Section[IntegrityRow]
    rules_matter: bool
    size: str
    runs: str
    shows_judging: bool
    verdict: Verdict
    headline: str
    reasons: Section[str]
    warnings: Section[str]
    summary: Summary
    run: Run
    version: str
    comparison: Comparison | None
    score_change: float | None
    metrics: Section[MetricRow]
    regressions: Section[CaseDetails]
    moved: tuple[MovedCases, ...]
    failures: Section[CaseDetails]
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
    goals: tuple[Goal, ...]
    outlook: tuple[OutlookRow, ...]
    baseline_age: str
    repetitions: str
    smallest_drops: str
    gate_needs: tuple[str, ...]
    decline: Section[DeclineRow]
    integrity: Section[IntegrityRow]
    elsewhere: str
    elsewhere_link: str

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.verdict == "passed"

    @property
    def verdict_line(self) -> str:
        """``failed: 1 of 2 cases failed``."""
        return view.verdict_line(self.verdict, self.headline)

    @property
    def verdict_note(self) -> str:
        """The result of a comparison without regressions, in words."""
        return verdict_note(self.comparison) if self.comparison else ""

    @property
    def partial(self) -> bool:
        """Whether the table of metrics omits cases with scores in only one of the runs."""
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
        """The sections that are omitted for lack of space: ``3 metrics, 12 skipped cases``."""
        counted: tuple[tuple[Section[CaseDetails] | Section[Row] | Section[MetricRow], str], ...] = (
            (self.regressions, "broken case"),
            (self.failures, "failure"),
            (self.known_failures, "known failure"),
            (self.improvements, "improvement"),
            (self.skipped, "skipped case"),
            (self.suspects, "possible regression"),
            (self.flaky, "flaky case"),
            (self.metrics, "metric"),
        )
        gone = [view.count(section.total, noun) for section, noun in counted if section.total and not section.items]
        return ", ".join(gone)
