"""The values that the Markdown templates show, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from agenteval.core.records import dataclass, replace
from agenteval.report.report import Links, Site
from agenteval.report.size_limits import Detail
from agenteval.report.view import case_details, notes, view
from agenteval.report.view.case_details import CaseDetails, Entry, Failure, status_change
from agenteval.report.view.cases import grouped, others
from agenteval.report.view.cause_rows import MOST_ROWS, BothRuns, CauseRow, Example, aside_row, aside_title, cause_row
from agenteval.report.view.cause_rows import others as other_causes
from agenteval.report.view.causes import causes_of
from agenteval.report.view.comparison import (
    EvidenceRow,
    Goal,
    MovedCases,
    ResourceRow,
    base_name,
    evidence_rows,
    goals,
    history_note,
    moved_cases,
    resource_changes,
    resource_rows,
    verdict_note,
)
from agenteval.report.view.heading import Heading, heading_of
from agenteval.report.view.next_steps import NextSteps, next_steps
from agenteval.report.view.notes import IntegrityRow, certainty, integrity_rows, rules_matter
from agenteval.report.view.parts import Excerpt
from agenteval.report.view.view import GateView, MetricRow
from agenteval.results.case import Criterion
from agenteval.results.comparison import CaseNote, ComparedCase, Comparison
from agenteval.results.model import OWN_NAME, Results, Run, Summary
from agenteval.results.store import IN_MEMORY, Archive
from agenteval.results.verdict import Verdict


@dataclass(frozen=True)
class Row:
    """One case in one line."""

    status: str
    name: str
    where: str
    score: float | None
    why: str


@dataclass(frozen=True)
class Page:
    """The whole report.

    Attributes:
        title: ``agenteval``, with the comment's id if there is one.
        job: what tells this report from those of other jobs; may be empty.
        heading: the heading as a sentence about the merge, and the sentences below it.
        base: the branch to compare with; ``baseline`` if it is unknown.
        causes: what needs attention, one row for each cause; ``more_causes`` counts the omitted ones and their cases.
        aside: what is not held against the change; ``aside_title`` counts it.
        certainty: how sure the findings are, one sentence each.
        steps: the commands that repeat or accept the cases, and what usually helps.
        rules: the changed rules and cases that are in sight if ``rules_matter``; ``integrity`` has all of them.
        size: ``118 cases × 3``; ``runs``: ``3 runs``, of the baseline.
        shows_judging: whether something was found or suspected, so that it matters how it was judged.
        verdict: ``passed``, ``failed``, ``unproven`` or ``error``; the filter ``icon`` shows its icon.
        moved: for each metric whose mean is proven to have changed, the cases behind that.
        failures: failed cases and errors that are not regressions and, with a baseline, not known from it;
            ``failures_title`` counts them.
        suspects: possible regressions: cases that passed and now fail, but not significantly; with their history.
        flaky: cases that passed and failed in the baseline, including quarantined ones.
        resources: latency, tokens and cost; ``resource_changes`` lists their changes in one line.
        criteria: conditions on whole suites, with the suite's name.
        baseline_age: ``3 days old``.
        repetitions: ``3 iterations, 5 baseline runs``.
        integrity: how the change differs from the base commit by whose suites and rules it was judged.
        elsewhere: where the full report is; ``elsewhere_link`` is its address.
    """

    title: str
    job: str
    heading: Heading
    base: str
    causes: Excerpt[CauseRow]
    more_causes: str
    examples: Excerpt[Example]
    aside: Excerpt[CauseRow]
    aside_title: str
    certainty: tuple[str, ...]
    steps: NextSteps
    rules: Excerpt[IntegrityRow]
    rules_matter: bool
    size: str
    runs: str
    shows_judging: bool
    verdict: Verdict
    headline: str
    reasons: Excerpt[str]
    warnings: Excerpt[str]
    summary: Summary
    run: Run
    version: str
    comparison: Comparison | None
    score_change: float | None
    metrics: Excerpt[MetricRow]
    regressions: Excerpt[CaseDetails]
    moved: tuple[MovedCases, ...]
    failures: Excerpt[CaseDetails]
    failures_title: str
    known_failures: Excerpt[Row]
    improvements: Excerpt[Row]
    skipped: Excerpt[Row]
    new: Excerpt[str]
    removed: Excerpt[str]
    changed: Excerpt[str]
    suspects: Excerpt[Row]
    flaky: Excerpt[Row]
    evidence: Excerpt[EvidenceRow]
    resources: Excerpt[ResourceRow]
    resource_changes: str
    cases: Excerpt[Row]
    criteria: Excerpt[tuple[str, Criterion]]
    goals: tuple[Goal, ...]
    baseline_age: str
    repetitions: str
    smallest_drops: str
    gate_needs: tuple[str, ...]
    integrity: Excerpt[IntegrityRow]
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
    def suite_changes(self) -> str:
        """``2 new cases, 1 missing case``."""
        counted = ((self.new, "new case"), (self.removed, "missing case"), (self.changed, "changed case"))
        return ", ".join(view.count(section.total, noun) for section, noun in counted if section.total)

    @property
    def left_out(self) -> str:
        """The sections that are omitted for lack of space: ``3 metrics, 12 skipped cases``."""
        counted: tuple[tuple[Excerpt[CaseDetails] | Excerpt[Row] | Excerpt[MetricRow], str], ...] = (
            (self.regressions, "broken case"),
            (self.failures, "failure"),
            (self.known_failures, "known failure"),
            (self.improvements, "improvement"),
            (self.skipped, "skipped case"),
            (self.suspects, "case that may be worse"),
            (self.flaky, "flaky case"),
            (self.metrics, "metric"),
        )
        gone = [view.count(section.total, noun) for section, noun in counted if section.total and not section.items]
        return ", ".join(gone)


_CHANGES = ("broke", "repaired", "new", "removed", "changed")
_MOST_REASONS = 20
_FEWEST_REASONS = 5
_MOST_MOVED = 20

ShownT = TypeVar("ShownT")


@dataclass(frozen=True)
class ReportSource:
    """The full content of a report; each level of detail shows a part of it."""

    results: Results
    gate: GateView
    title: str
    job: str
    elsewhere: str
    links: Links
    entries: list[Entry]
    located: Mapping[str, Entry]
    compared: list[ComparedCase]
    by_change: Mapping[str, list[ComparedCase]]
    failures: list[Failure]
    known: list[Failure]
    metrics: list[MetricRow]
    warnings: tuple[str, ...]
    score_change: float | None
    archive: Archive

    @classmethod
    def of(
        cls, results: Results, gate: GateView, job: str, elsewhere: str, site: Site, *, archive: Archive = IN_MEMORY
    ) -> ReportSource:
        """Select and sort the content of a run."""
        compared = results.comparison.cases if results.comparison else []
        entries = results.cases()
        failures = case_details.failures(entries, compared)
        return cls(
            results=results,
            gate=gate,
            title=f"{OWN_NAME} · {job}" if job else OWN_NAME,
            job=job,
            elsewhere=elsewhere,
            links=Links(site, results.run),
            entries=entries,
            located={case.id: (suite, case) for suite, case in entries},
            compared=compared,
            by_change={change: [case for case in compared if case.change == change] for change in _CHANGES},
            failures=[entry for entry in failures if not case_details.is_known(entry[2])],
            known=[entry for entry in failures if case_details.is_known(entry[2])],
            metrics=view.metric_rows(results),
            warnings=(*gate.warnings, *view.metric_errors(results)),
            score_change=view.score_change(results),
            archive=archive,
        )

    def page(self, detail: Detail) -> Page:
        """Return as much of the run as the detail allows."""
        results, gate, comparison = self.results, self.gate, self.results.comparison
        reasons = max(_FEWEST_REASONS, min(detail.max_rows, _MOST_REASONS))
        criteria = ((suite.name, criterion) for suite in results.suites for criterion in suite.criteria)
        skipped = [entry for entry in self.entries if entry[1].status == "skipped"]
        causes = causes_of(results)
        serious = [cause for cause in causes if cause.attention]
        shown = serious[:MOST_ROWS]
        rules = tuple(integrity_rows(results.run))
        return Page(
            title=self.title,
            job=self.job,
            heading=heading_of(results, gate, causes),
            base=base_name(comparison),
            causes=Excerpt(tuple(map(cause_row, shown)), len(serious)),
            more_causes=other_causes(serious[MOST_ROWS:]),
            examples=self._both_runs.examples(shown, most=detail.max_cases, max_text=detail.max_text),
            aside=Excerpt.of((aside_row(cause) for cause in causes if not cause.attention), detail.max_asides),
            aside_title=aside_title(causes),
            certainty=certainty(results),
            steps=next_steps(results, causes),
            rules=Excerpt(rules[: max(0, MOST_ROWS - len(shown))] if detail.max_rows else (), len(rules)),
            rules_matter=rules_matter(results.run),
            size=notes.size(results),
            runs=notes.runs(results),
            shows_judging=comparison is not None
            and (not gate.passed or bool(serious) or bool(comparison.suspicions)),
            verdict=gate.verdict,
            headline=view.headline(results, gate),
            reasons=Excerpt.of(gate.further_reasons, reasons),
            warnings=Excerpt.of(self.warnings, reasons),
            summary=results.summary,
            run=results.run,
            version=results.tool.version,
            comparison=comparison,
            score_change=self.score_change,
            metrics=Excerpt.of(self.metrics, detail.max_asides),
            regressions=self._regressions(detail),
            moved=moved_cases(comparison, min(detail.max_rows, _MOST_MOVED)),
            failures=_first_groups(
                self.failures, detail.max_cases, lambda group: case_details.failure(group, self.links.suite)
            ),
            failures_title=self._failures_title(),
            known_failures=self._known_failures(detail.max_asides),
            improvements=_improvements(self.by_change["repaired"], self.located, detail.max_rows),
            skipped=_rows(skipped, detail.max_asides),
            new=_names(self.by_change["new"], detail),
            removed=_names(self.by_change["removed"], detail),
            changed=_names(self.by_change["changed"], detail),
            suspects=_noted(self.compared, "suspicious", detail.max_asides),
            flaky=_noted(self.compared, "flaky", detail.max_asides),
            evidence=Excerpt.of(evidence_rows(comparison) if comparison else (), detail.max_asides),
            resources=Excerpt.of(resource_rows(comparison) if comparison else (), detail.max_rows),
            resource_changes=resource_changes(comparison) if comparison else "",
            cases=_with_unread(_rows(self.entries, detail.max_rows), results.summary.cases - len(self.entries)),
            criteria=Excerpt.of(criteria, detail.max_rows),
            goals=goals(results),
            baseline_age=self._baseline_age(),
            repetitions=notes.repetitions(results),
            smallest_drops=notes.smallest_drops(comparison) if comparison else "",
            gate_needs=notes.gate_needs(comparison) if comparison else (),
            integrity=Excerpt.of(rules, detail.max_rows),
            elsewhere=self.elsewhere,
            elsewhere_link=self.links.workflow_run,
        )

    @property
    def _both_runs(self) -> BothRuns:
        return BothRuns(self.located, {case.id: case for case in self.compared}, self.links.suite)

    def _baseline_age(self) -> str:
        if self.results.comparison is None:
            return ""
        return notes.age(self.results.comparison.baseline.created_at, self.results.run.started_at)

    def _regressions(self, detail: Detail) -> Excerpt[CaseDetails]:
        # The worst first, so that the least important ones are omitted.
        worst = sorted(
            self.by_change["broke"], key=lambda case: (case.score_after or 0.0) - (case.score_before or 0.0)
        )
        told = (
            case_details.regression(case, self.located.get(case.id), self.links.suite, detail.max_text)
            for case in worst[: detail.max_cases]
        )
        return Excerpt(tuple(told), len(worst))

    def _failures_title(self) -> str:
        failed = sum(case.status == "failed" for _, case, _ in self.failures)
        noun = "new failure" if self.compared else "failed case"
        parts = [view.count(failed, noun)] if failed else []
        if errors := len(self.failures) - failed:
            parts.append(view.count(errors, "error" if failed or not self.compared else "new error"))
        return " and ".join(parts)

    def _known_failures(self, most: int) -> Excerpt[Row]:
        def row(group: Sequence[Failure]) -> Row:
            suite, case, compared = group[0]
            return Row(
                status=case.status,
                name=f"{case.name}{others(group)}",
                where=view.location(suite, case),
                score=case.score,
                why="; ".join(part for part in (case_details.failure_note(compared), view.why(case)) if part),
            )

        return _first_groups(self.known, most, row)


def _first_groups(
    entries: Iterable[Failure], most: int, show: Callable[[Sequence[Failure]], ShownT]
) -> Excerpt[ShownT]:
    """Return the first groups of cases with the same error; the section counts the cases of the other groups."""
    groups = grouped(entries, lambda entry: entry[1])
    shown = tuple(map(show, groups[:most]))
    return Excerpt(shown, len(shown) + sum(map(len, groups[most:])))


def _improvements(improved: list[ComparedCase], located: Mapping[str, Entry], most: int) -> Excerpt[Row]:
    return Excerpt(
        tuple(
            Row(
                status=status_change(case),
                name=case.name,
                where=view.location(*located[case.id]) if case.id in located else "",
                score=case.score_after,
                why="; ".join(map(str, view.got_better(case))),
            )
            for case in improved[:most]
        ),
        len(improved),
    )


def _rows(entries: list[Entry], most: int) -> Excerpt[Row]:
    """Return cases in suite order; if there are too many, passed cases are omitted first."""
    groups = grouped(entries, lambda entry: entry[1])
    if len(groups) > most:
        groups = sorted(groups, key=lambda group: group[0][1].status == "passed")
    rows = []
    for group in groups[:most]:
        suite, case = group[0]
        name, where = f"{case.name}{others(group)}", view.location(suite, case)
        rows.append(Row(case.status, name, where, case.score, view.why(case)))
    return Excerpt(tuple(rows), len(rows) + sum(map(len, groups[most:])))


def _with_unread(rows: Excerpt[Row], unread: int) -> Excerpt[Row]:
    """Return a section that counts the cases of a large run that are not in memory too."""
    return replace(rows, total=rows.total + unread)


def _noted(compared: list[ComparedCase], note: CaseNote, most: int) -> Excerpt[Row]:
    noted = [case for case in compared if note in case.notes]
    rows = (
        Row(
            status=status_change(case),
            name=case.name,
            where="",
            score=case.score_after,
            why="; ".join(part for part in (history_note(case), _quarantined(case)) if part),
        )
        for case in noted[:most]
    )
    return Excerpt(tuple(rows), len(noted))


def _quarantined(case: ComparedCase) -> str:
    return "in quarantine" if "quarantined" in case.notes else ""


def _names(cases: list[ComparedCase], detail: Detail) -> Excerpt[str]:
    return Excerpt.of((case.name for case in cases), detail.max_rows)
