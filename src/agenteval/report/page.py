"""What a Markdown report shows of a run: chosen, counted and sorted here, arranged by a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from agenteval.report import view
from agenteval.report.budget import Detail
from agenteval.report.evidence import EvidenceRow, evidence_rows, history_note, resource_change, verdict_note
from agenteval.report.view import Fact, GateView, MetricRow
from agenteval.results.model import (
    AnswerChange,
    CaseNote,
    CaseResult,
    ComparedCase,
    Comparison,
    Criterion,
    Results,
    Run,
    SuiteResult,
    Summary,
)

T = TypeVar("T")
_Entry = tuple[SuiteResult, CaseResult]
_Failure = tuple[SuiteResult, CaseResult, ComparedCase | None]

_CHANGES = ("regressed", "improved", "new", "removed", "changed")
_NOT_PASSED = frozenset({"failed", "error"})
_MOST_REASONS = 20
_FEWEST_REASONS = 5


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """The first of many things; ``total`` counts all of them."""

    items: tuple[T, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, things: Iterable[T], most: int) -> Section[T]:
        """A section that shows at most so many."""
        everything = tuple(things)
        return cls(everything[:most], len(everything))

    @property
    def hidden(self) -> int:
        """How many are not shown."""
        return self.total - len(self.items)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with the answers to it; ``turn`` is 1-based, ``None`` in a case of one turn."""

    turn: int | None
    input: str
    expected: str | None
    answer: str | None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to one case.

    Attributes:
        outcome: the status it has now.
        status: in words: ``failed``, or ``passed → failed`` where there is a baseline.
        case: the case itself; ``None`` where the file has only its comparison.
    """

    name: str
    where: str
    outcome: str
    status: str
    note: str
    facts: tuple[Fact, ...]
    exchanges: tuple[Exchange, ...]
    case: CaseResult | None = None


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
        failures: failed and broken cases that are no regressions; ``failures_title`` counts them.
        suspects: cases that fail where they passed, which may be chance; with how they did before.
        flaky: cases that passed and failed in the baseline, quarantined ones included.
        evidence: how sure the comparison is, metric by metric.
        resources: changes of latency, tokens and cost.
        criteria: conditions on whole suites, with the suite's name.
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
    improvements: Section[Row]
    skipped: Section[Row]
    new: Section[str]
    removed: Section[str]
    changed: Section[str]
    suspects: Section[Row]
    flaky: Section[Row]
    evidence: Section[EvidenceRow]
    resources: tuple[str, ...]
    cases: Section[Row]
    criteria: Section[tuple[str, Criterion]]

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


@dataclass(frozen=True, slots=True)
class Source:
    """What every level of detail is cut from; made once for a report."""

    results: Results
    gate: GateView
    title: str
    entries: list[_Entry]
    located: Mapping[str, _Entry]
    compared: list[ComparedCase]
    by_change: Mapping[str, list[ComparedCase]]
    failures: list[_Failure]
    metrics: list[MetricRow]
    warnings: tuple[str, ...]
    score_change: float | None

    @classmethod
    def of(cls, results: Results, gate: GateView, title: str = "agenteval") -> Source:
        """Sorts and counts what a run says."""
        compared = results.comparison.cases if results.comparison else []
        entries = results.cases()
        return cls(
            results=results,
            gate=gate,
            title=title,
            entries=entries,
            located={case.id: (suite, case) for suite, case in entries} if compared else {},
            compared=compared,
            by_change={change: [case for case in compared if case.change == change] for change in _CHANGES},
            failures=_failures(entries, compared),
            metrics=view.metric_rows(results),
            warnings=(*gate.warnings, *view.metric_errors(results)),
            score_change=view.score_change(results),
        )

    def page(self, detail: Detail) -> Page:
        """As much of the run as the detail allows."""
        results, gate, comparison = self.results, self.gate, self.results.comparison
        reasons = max(_FEWEST_REASONS, min(detail.max_rows, _MOST_REASONS))
        criteria = ((suite.name, criterion) for suite in results.suites for criterion in suite.criteria)
        skipped = [entry for entry in self.entries if entry[1].status == "skipped"]
        return Page(
            title=self.title,
            passed=gate.passed,
            headline=view.headline(results, gate),
            reasons=Section.of((reason for reason in gate.reasons if reason != gate.headline), reasons),
            warnings=Section.of(self.warnings, reasons),
            summary=results.summary,
            run=results.run,
            version=results.tool.version,
            comparison=comparison,
            score_change=self.score_change,
            metrics=Section.of(self.metrics, detail.max_rows),
            regressions=_regressions(self.by_change["regressed"], self.located, detail.max_cases),
            failures=Section(
                tuple(_failure(*entry) for entry in self.failures[: detail.max_cases]), len(self.failures)
            ),
            failures_title=_failures_title([case for _, case, _ in self.failures]),
            improvements=_improvements(self.by_change["improved"], self.located, detail.max_rows),
            skipped=_rows(skipped, detail.max_rows),
            new=_names(self.by_change["new"], detail),
            removed=_names(self.by_change["removed"], detail),
            changed=_names(self.by_change["changed"], detail),
            suspects=_noted(self.compared, "suspect", detail.max_rows),
            flaky=_noted(self.compared, "flaky", detail.max_rows),
            evidence=Section.of(evidence_rows(comparison) if comparison else (), detail.max_rows),
            resources=tuple(map(resource_change, comparison.resources)) if comparison else (),
            cases=replace(_rows(self.entries, detail.max_rows), total=results.summary.cases),
            criteria=Section.of(criteria, detail.max_rows),
        )


def _regressions(regressed: list[ComparedCase], located: Mapping[str, _Entry], most: int) -> Section[Story]:
    # The worst first: what is cut off must matter least.
    worst = sorted(regressed, key=lambda case: (case.score_after or 0.0) - (case.score_before or 0.0))
    return Section(tuple(_regression(case, located) for case in worst[:most]), len(worst))


def _regression(compared: ComparedCase, located: Mapping[str, _Entry]) -> Story:
    found = located.get(compared.id)
    case = found[1] if found else None
    before, after = view.distinct(compared.score_before, compared.score_after)
    score = f"score {before} → {after}" if compared.score_before != compared.score_after else ""
    notes = (score, view.iterations_note(case) if case else "", history_note(compared))
    return Story(
        name=compared.name,
        where=view.location(*found) if found else "",
        outcome=compared.status_after or "",
        status=_status_change(compared),
        note=", ".join(note for note in notes if note),
        facts=tuple(view.got_worse(compared)),
        exchanges=_answers_of_both(compared.answers, case),
        case=case,
    )


def _status_change(compared: ComparedCase) -> str:
    before, after = compared.status_before or "new", compared.status_after or "removed"
    return before if before == after else f"{before} → {after}"


def _answers_of_both(answers: list[AnswerChange], case: CaseResult | None) -> tuple[Exchange, ...]:
    """The turns answered differently; all of them where the answers are the same and the judgement is not."""
    expected = _expected(case)
    several = len(expected) > 1 or any(answer.turn for answer in answers)
    different = [answer for answer in answers if answer.before != answer.after]
    return tuple(
        Exchange(
            turn=answer.turn + 1 if several else None,
            input=answer.input,
            expected=expected.get(answer.turn),
            answer=answer.after,
            before=answer.before,
        )
        for answer in different or answers
    )


def _expected(case: CaseResult | None) -> dict[int, str | None]:
    iteration = view.shown_iteration(case) if case else None
    return {turn.index: turn.ground_truth for turn in iteration.turns} if iteration else {}


def _failures(entries: list[_Entry], compared: list[ComparedCase]) -> list[_Failure]:
    """Failed and broken cases that are no regressions, with their history; the new ones first."""
    history = {case.id: case for case in compared}
    found = [(suite, case, history.get(case.id)) for suite, case in entries if case.status in _NOT_PASSED]
    others = [entry for entry in found if entry[2] is None or entry[2].change != "regressed"]
    return sorted(others, key=lambda entry: _is_old(entry[2]))


def _failures_title(cases: list[CaseResult]) -> str:
    failed = sum(case.status == "failed" for case in cases)
    parts = [view.count(failed, "failed case")] if failed else []
    if errors := len(cases) - failed:
        parts.append(view.count(errors, "error"))
    return " and ".join(parts)


def _is_old(compared: ComparedCase | None) -> bool:
    return compared is not None and compared.status_before in _NOT_PASSED


def _failure(suite: SuiteResult, case: CaseResult, compared: ComparedCase | None) -> Story:
    notes = (view.iterations_note(case), _history_note(compared))
    return Story(
        name=case.name,
        where=view.location(suite, case),
        outcome=case.status,
        status=case.status,
        note=", ".join(note for note in notes if note),
        facts=view.facts(case),
        exchanges=_failed_turns(case),
        case=case,
    )


def _history_note(compared: ComparedCase | None) -> str:
    if compared is None:
        return ""
    if "quarantined" in compared.notes:
        return "in quarantine"
    if compared.history is not None:
        return history_note(compared)
    if compared.change == "new":
        return "new case"
    if compared.change == "changed":
        return "changed in the suite"
    if compared.status_before in _NOT_PASSED:
        return "already in the baseline"
    return "passed in the baseline" if compared.status_before == "passed" else ""


def _failed_turns(case: CaseResult) -> tuple[Exchange, ...]:
    iteration = view.shown_iteration(case)
    if iteration is None:
        return ()
    several = len(iteration.turns) > 1
    return tuple(
        Exchange(turn.index + 1 if several else None, turn.input, turn.ground_truth, turn.response)
        for turn in iteration.turns
        if turn.error or any(score.passed is False or score.status == "error" for score in turn.scores)
    )


def _improvements(improved: list[ComparedCase], located: Mapping[str, _Entry], most: int) -> Section[Row]:
    return Section(
        tuple(
            Row(
                status=_status_change(case),
                name=case.name,
                where=view.location(*located[case.id]) if case.id in located else "",
                score=case.score_after,
                why="; ".join(map(str, view.got_better(case))),
            )
            for case in improved[:most]
        ),
        len(improved),
    )


def _rows(entries: list[_Entry], most: int) -> Section[Row]:
    """Cases in suite order; where there are too many, passed cases give way to the others."""
    first = entries
    if len(entries) > most:
        first = sorted(entries, key=lambda entry: entry[1].status == "passed")[:most]
    rows = (
        Row(case.status, case.name, view.location(suite, case), case.score, view.why(case)) for suite, case in first
    )
    return Section(tuple(rows), len(entries))


def _noted(compared: list[ComparedCase], note: CaseNote, most: int) -> Section[Row]:
    """The cases with a note, and how they did in the baseline."""
    noted = [case for case in compared if note in case.notes]
    rows = (
        Row(
            status=_status_change(case),
            name=case.name,
            where="",
            score=case.score_after,
            why="; ".join(part for part in (history_note(case), _quarantined(case)) if part),
        )
        for case in noted[:most]
    )
    return Section(tuple(rows), len(noted))


def _quarantined(case: ComparedCase) -> str:
    return "in quarantine" if "quarantined" in case.notes else ""


def _names(cases: list[ComparedCase], detail: Detail) -> Section[str]:
    return Section.of((case.name for case in cases), detail.max_rows)
