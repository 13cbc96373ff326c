"""The facts of a run: what its reports show. They are computed once, and every report shows the same.

Comment, job summary, page, terminal, JUnit XML, check run, badge, the table of several jobs and users' templates show
the values of a :class:`Report` and compute none. Only the cases in full are read besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval.core.records import dataclass, field, replace
from agenteval.gate.failures import Counts
from agenteval.gate.findings import run_notes
from agenteval.gate.words import without_markup
from agenteval.report import words
from agenteval.report.cases import KINDS
from agenteval.report.causes import Cause, aside_title, causes_of, others
from agenteval.report.charts import RunPoint, earlier_runs, trend
from agenteval.report.heading import Heading, heading_of
from agenteval.report.metrics import Base, MetricRow, SpendingRow, metric_rows, spending
from agenteval.report.parts import COMMIT, REPOSITORY, Excerpt, Part, Presentation, Site
from agenteval.report.setup import IntegrityRow, integrity_rows, metric_errors, run_setup, size
from agenteval.report.steps import NextSteps, next_steps
from agenteval.report.stories import MOST_ALIKE, CaseRow, Story, case_rows, first_stories
from agenteval.results.case import CaseResult, Criterion, SuiteResult
from agenteval.results.comparison import BaselineRun, Comparison
from agenteval.results.history import EarlierRun
from agenteval.results.model import OWN_NAME, Results, Run, Summary
from agenteval.results.store import IN_MEMORY, Archive
from agenteval.results.verdict import Condition, Gate, Verdict

if TYPE_CHECKING:
    from agenteval.results.analysis.evaluate import AnalysedSuite

#: Rows of the table of causes that a reader sees at once.
MOST_ROWS = 8
# The most that any report shows.
_MOST_FULL = 100


@dataclass(frozen=True)
class About:
    """The report itself, and the run as a whole.

    Attributes:
        size: ``118 cases × 3``.
        link: address of the workflow run; empty if unknown.
        source: address of the evaluated commit's files; empty if unknown.
        suites: path and name of each suite.
        notes: what the run did not evaluate, one phrase each.
        undecided: cases that passed although neither a metric nor the comparison of means decided.
        unfinished: cases that an interrupted run had not finished.
        repeats: whether the verdict is that of an earlier attempt; then the headline tells of which one.
        job: what tells this report from those of other jobs; may be empty.
        elsewhere: where the rest of the report is.
    """

    version: str
    size: str
    link: str
    source: str
    suites: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    undecided: int = 0
    unfinished: int = 0
    repeats: bool = False
    job: str = ""
    elsewhere: str = "report.html and results.json"

    @property
    def title(self) -> str:
        """``agenteval``, with the job if there is one."""
        return f"{OWN_NAME} · {self.job}" if self.job else OWN_NAME


@dataclass(frozen=True)
class ReportSource:
    """What the facts are made of, for reports that list every case, and for reporters of other packages.

    Attributes:
        archive: access to the run's full cases; the results of a large run contain only outlines of some cases.
        earlier: the earlier runs of the base, the oldest first.
        analyses: analyses of suites that evaluate the run as a whole.
        presentation: users' templates, the reporters that the configuration names, and the target of links.
    """

    results: Results
    archive: Archive = IN_MEMORY
    earlier: tuple[BaselineRun, ...] = ()
    analyses: tuple[AnalysedSuite, ...] = ()
    presentation: Presentation = field(default_factory=Presentation)


@dataclass(frozen=True)
class Report:
    """Everything that reports show of a run; each field is a section.

    Attributes:
        heading: the heading as a sentence about the merge, and the sentence below it.
        gate: the gate's decision: ``verdict``, ``headline``, ``reasons``, ``conditions``.
        counts: numbers of cases without quarantined ones: ``cases``, ``passed``, ``failed``, ``errors``, ``skipped``.
        causes: what went wrong, what is not held against the change, and what is new; a case has at most one cause.
        stories: id → case in full, of the first cases of each cause.
        metrics: every metric with its change, and the resources that have a limit.
        spent: where money and time went.
        certainty: how sure the findings are, one sentence each.
        steps: the commands that repeat or accept the cases, and what usually helps.
        warnings: the notes of the run, the most important first.
        rules: how suites and rules differ from those of the base commit.
        criteria: conditions on whole suites, with the suite's name.
        base: what the run was compared with; ``None`` if it was not.
        cases: the cases with the result of each metric, in the order of the suites; some of a large run.
        setup: how the run was made: suites, limits, rules and versions.
        trend: the figures of this run and of earlier ones, the oldest first.
        run: id, commit, time and coverage of the run.
        summary: the figures of the whole run.
        about: version, size, and the places that links lead to.
        source: for reports that list every case in full; templates do not have it.
    """

    heading: Heading
    gate: Gate
    counts: Counts
    causes: tuple[Cause, ...]
    stories: Mapping[str, Story]
    metrics: tuple[MetricRow, ...]
    spent: tuple[SpendingRow, ...]
    certainty: tuple[str, ...]
    steps: NextSteps
    warnings: tuple[str, ...]
    rules: tuple[IntegrityRow, ...]
    criteria: tuple[tuple[str, Criterion], ...]
    base: Base | None
    cases: Excerpt[CaseRow]
    setup: tuple[Part, ...]
    trend: tuple[RunPoint, ...]
    run: Run
    summary: Summary
    about: About
    source: ReportSource

    @property
    def results(self) -> Results:
        """The content of results.json."""
        return self.source.results

    def cases_of(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Yield the cases of a suite in full, in the suite's order."""
        yield from self.source.archive.cases(suite)

    def with_warnings(self, warnings: Iterable[str]) -> Report:
        """Return the report with further warnings before the others, without duplicates."""
        merged = tuple(dict.fromkeys((*warnings, *self.warnings)))
        return self if merged == self.warnings else replace(self, warnings=merged)

    def shown_in(self, elsewhere: str, job: str = "") -> Report:
        """Return the report for one job, with where the rest of it is."""
        return replace(self, about=replace(self.about, elsewhere=elsewhere, job=job))

    @property
    def verdict(self) -> Verdict:
        """``passed``, ``failed``, ``unproven`` or ``error``."""
        return self.gate.verdict

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return self.gate.passed

    @property
    def headline(self) -> str:
        """The verdict as one phrase: ``passed``, ``3 cases broke``."""
        return self.gate.headline if self.run.complete else f"interrupted: {self.gate.headline}"

    @property
    def verdict_line(self) -> str:
        """``failed: 1 of 2 cases failed``; the word alone if the headline adds nothing."""
        return self.verdict if self.headline in {"", self.verdict} else f"{self.verdict}: {self.headline}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that the headline does not state."""
        return tuple(reason for reason in self.gate.reasons if not f"{self.gate.headline};".startswith(f"{reason};"))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the gate that are not met, with what was found."""
        if self.gate.conditions or self.gate.passed:
            return self.gate.conditions
        return tuple(Condition(found=reason) for reason in self.gate.reasons)

    @property
    def attention(self) -> tuple[Cause, ...]:
        """The causes that somebody has to look at, the most important first."""
        return tuple(cause for cause in self.causes if cause.attention)

    @property
    def aside(self) -> tuple[Cause, ...]:
        """The causes that are not held against the change."""
        return tuple(cause for cause in self.causes if not cause.attention)

    @property
    def aside_title(self) -> str:
        """``1 not proven worse · 2 known failures · 4 new``: what is not held against the change."""
        return aside_title(self.causes)

    @property
    def more_causes(self) -> str:
        """The causes beyond the visible table, with the number of their cases."""
        return others(self.attention[MOST_ROWS:])

    @property
    def examples(self) -> tuple[Story, ...]:
        """The first case of each visible cause, if it shows more than its row."""
        stories = (self.stories.get(cause.cases[0].id) for cause in self.attention[:MOST_ROWS] if cause.cases)
        return tuple(story for story in stories if story is not None and story.tells)

    @property
    def in_full(self) -> Excerpt[Story]:
        """The first cases of each cause; ``hidden`` counts all others that need attention."""
        wanted = [cause for cause in self.attention if cause.kind not in {"removed", "fell"}]
        # Cases with one error have nothing else to tell.
        first = [found for cause in wanted for found in cause.cases[: 1 if cause.kind == "error" else MOST_ALIKE]]
        found = (self.stories.get(case.id) for case in first)
        shown = tuple(story for story in found if story is not None)
        return Excerpt(shown[:_MOST_FULL], sum(len(cause.cases) for cause in wanted))

    @property
    def evidence(self) -> tuple[MetricRow, ...]:
        """The metrics that can fail the gate."""
        return tuple(metric for metric in self.metrics if metric.gating)

    @property
    def scores(self) -> tuple[MetricRow, ...]:
        """The metrics that are scores, not amounts."""
        return tuple(metric for metric in self.metrics if not metric.is_resource)

    @property
    def is_judged(self) -> bool:
        """Whether something was found or suspected, so that it matters how it was judged."""
        return self.base is not None and (not self.passed or bool(self.attention) or self.base.is_suspected)

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The verdict, the numbers of cases of each kind, the mean score, cost and time, with labels."""
        return tuple(self._numbers())

    def _numbers(self) -> Iterator[tuple[str, str]]:
        summary, usage = self.summary, self.summary.usage
        yield "Verdict", self.verdict
        yield "Cases", self.about.size.replace(" cases", "").replace(" case", "")
        yield "Pass", f"{self.counts.passed:,}"
        amounts = Counter(cause.kind for cause in self.causes for _ in cause.cases)
        # All of them, because none is among those that pass.
        amounts["quarantined"] = summary.cases - self.counts.cases
        for kind, told in KINDS.items():
            if amounts[kind] and kind not in {"removed", "gone", "fell"}:
                yield told.words.capitalize(), f"{amounts[kind]:,}"
        if removed := amounts["removed"] + amounts["gone"]:
            yield "Removed", f"{removed:,}"
        if summary.score is not None:
            yield "Mean score", words.number(summary.score)
        if usage.cost_usd:
            yield "Cost", words.money(usage.cost_usd)
        if tokens := usage.input_tokens + usage.output_tokens:
            yield "Tokens", f"{tokens:,}"
        yield "Time", words.duration(self.run.duration_s)

    @property
    def rules_matter(self) -> bool:
        """Whether somebody must look at the changes of rules and cases."""
        return any(row.matters for row in self.rules)

    @property
    def base_name(self) -> str:
        """The branch to compare with; ``baseline`` if it is unknown."""
        return self.base.name if self.base else "baseline"


def facts(
    results: Results,
    gate: Gate,
    warnings: Iterable[str] = (),
    *,
    archive: Archive = IN_MEMORY,
    earlier: Sequence[EarlierRun] = (),
    base: Results | None = None,
    analyses: Sequence[AnalysedSuite] = (),
    presentation: Presentation | None = None,
) -> Report:
    """Return what every report of a run shows.

    Args:
        archive: access to the run's full cases.
        earlier: earlier runs, for trends.
        base: the baseline's run with the runs before it, of which the results of a change have only the names.
        analyses: analyses of suites that evaluate the run as a whole.
        presentation: users' templates, and the target of links.
    """
    runs = earlier_runs(results, base)
    source = ReportSource(results, archive, runs, tuple(analyses), presentation or Presentation())
    comparison, rules = results.comparison, results.gate.rules if results.gate else gate.rules
    gate = gate if gate.rules is rules else gate.model_copy(update={"rules": rules})
    about = _about(results, source.presentation.site)
    counts = Counts.of(results, frozenset(rules.quarantine if rules else ()))
    causes = causes_of(results)
    compared = Base.of(comparison, results.run.started_at) if comparison else None
    differences = tuple(integrity_rows(results.run))
    # Of the shards of a proof, only the merge knows how certain it is.
    told = comparison if results.run.shard is None else None
    certainty = (*told.sentences, told.improvement) if told else ()
    if gate.verdict == "failed" and comparison is not None and comparison.state == "clear":
        # A threshold is a rule.
        certainty = (comparison.improvement,)
    return Report(
        heading=heading_of(results, gate, causes, counts),
        gate=gate,
        counts=counts,
        causes=causes,
        stories=first_stories(results, causes, about.source),
        metrics=metric_rows(results),
        spent=tuple(spending(results)),
        certainty=tuple(filter(None, certainty)),
        steps=next_steps(results, causes, source.presentation.control),
        warnings=tuple(dict.fromkeys(_warning(text, comparison) for text in (*warnings, *metric_errors(results)))),
        rules=differences,
        criteria=tuple((suite.name, criterion) for suite in results.suites for criterion in suite.criteria),
        base=compared,
        cases=case_rows(results),
        setup=run_setup(results, archive, compared, differences),
        trend=trend(results, earlier, base),
        run=results.run,
        summary=results.summary,
        about=about,
        source=source,
    )


def _warning(text: str, comparison: Comparison | None) -> str:
    told = f": {comparison.why}" if comparison is not None and comparison.why else ""
    return without_markup(text.removesuffix(told))


def notes_of(results: Results) -> tuple[str, ...]:
    """Return the notes of the comparison in saved results, which are warnings of their reports."""
    return tuple(results.comparison.notes) if results.comparison else ()


def _about(results: Results, site: Site) -> About:
    run = results.run
    repository = run.repository or ""
    is_there = site.repository in {"", repository} and REPOSITORY.fullmatch(repository)
    root = f"{site.server}/{repository}" if is_there else ""
    number, commit = run.workflow_run_id or "", run.commit or ""
    is_compared = results.comparison is not None and bool(results.comparison.metrics)
    return About(
        version=results.tool.version,
        size=size(results),
        link=f"{root}/actions/runs/{number}" if root and number.isascii() and number.isdigit() else "",
        source=f"{root}/blob/{commit}/" if root and COMMIT.fullmatch(commit) else "",
        suites=tuple((suite.path, suite.name) for suite in results.suites),
        notes=tuple(run_notes(results)),
        undecided=0 if is_compared else sum(suite.undecided for suite in results.suites),
        unfinished=results.unfinished,
        repeats=results.memory is not None and results.memory.repeats,
    )
