"""Renders the comment and the job summary."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.records import dataclass, fields, replace
from agenteval.report.markdown_page import Page, ReportSource
from agenteval.report.report import Presentation, Report, ReportFile
from agenteval.report.size_limits import (
    COMMENT_LEVELS,
    COMMENT_LIMIT,
    SUMMARY_LEVELS,
    SUMMARY_LIMIT,
    Detail,
    UserTemplateError,
    characters,
    fit,
    utf8_bytes,
)
from agenteval.report.view import view
from agenteval.report.view.case_details import shortened_notes
from agenteval.report.view.cases import KINDS, CaseMetricRow, case_metrics, distinct_iterations
from agenteval.report.view.cause_rows import CauseRow, DiffLine, cause_row, timeline
from agenteval.report.view.causes import CaseChange, Cause, causes_of
from agenteval.report.view.comparison import SpendingRow, spending
from agenteval.report.view.parts import Excerpt, Part
from agenteval.report.view.run_page import RunMetric, run_metrics, run_setup
from agenteval.report.view.view import GateView
from agenteval.results.case import CaseResult, IterationResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results
from agenteval.results.store import IN_MEMORY, Archive
from agenteval.results.verdict import Condition

# Cases with the same cause that are shown in full.
_MOST_ALIKE = 3


@dataclass(frozen=True)
class FullCase:
    """A case with its iterations; those that are alike are one, with which they are in words.

    Attributes:
        shortened: size and hash of each value of which the results contain only the beginning.
    """

    icon: str
    name: str
    where: str
    link: str
    note: str
    lines: tuple[DiffLine, ...]
    told: int
    shortened: tuple[str, ...]
    iterations: tuple[tuple[IterationResult, str], ...]


@dataclass(frozen=True)
class CaseRow:
    """A case with the result of each metric."""

    status: str
    name: str
    score: float | None
    metrics: tuple[CaseMetricRow, ...]
    why: str


@dataclass(frozen=True)
class SummaryPage(Page):
    """The content of the comment, and what only the job summary shows.

    Attributes:
        counts: labels and amounts for the first table.
        closed: each condition of the gate that is not met, with what was found.
        anchors: part of the summary → the anchor of its heading, if it is there. Several jobs share a page.
        repeated: whether the verdict is that of an earlier attempt; then the headline tells of which one.
        full: the first cases of each cause in full; ``unshown`` counts the others.
        spent: where money and time went.
    """

    counts: tuple[tuple[str, str], ...]
    closed: tuple[Condition, ...]
    anchors: Mapping[str, str]
    repeated: bool
    needs: str
    steady: tuple[RunMetric, ...]
    by_cause: Excerpt[CauseRow]
    full: Excerpt[FullCase]
    means: Excerpt[RunMetric]
    spent: tuple[SpendingRow, ...]
    checked: Excerpt[CaseRow]
    made: tuple[Part, ...]


def summary_page(source: ReportSource, detail: Detail) -> SummaryPage:
    """Return as much of a run as the detail allows."""
    page, results = source.page(detail), source.results
    causes, means = causes_of(results), run_metrics(results)
    attention = [cause for cause in causes if cause.attention]
    fell = any(metric.state == "bad" for metric in means)
    spent = spending(results) if detail.max_rows else ()
    criteria = any(suite.criteria for suite in results.suites) and detail.max_rows
    there = {
        "cases": bool(attention and detail.max_rows),
        "metrics": bool(means and detail.max_asides),
        "resources": bool(spent),
        "criteria": bool(criteria),
    }
    return SummaryPage(
        **{field.name: getattr(page, field.name) for field in fields(Page)},
        counts=tuple(_counts(source, causes)),
        closed=source.gate.conditions[: max(5, min(20, detail.max_rows))],
        anchors={part: _anchor(source, part) for part, shown in there.items() if shown},
        repeated=results.memory is not None and results.memory.repeats,
        needs=_needs(source),
        steady=() if fell else tuple(metric for metric in means if metric.baseline is not None)[: detail.max_rows],
        by_cause=Excerpt.of(map(cause_row, attention), detail.max_rows),
        full=_full(source, attention, detail),
        means=Excerpt.of(means, detail.max_asides),
        spent=spent,
        checked=_checked(source, detail.max_rows),
        made=run_setup(results, source.archive) if detail.max_asides else (),
    )


def _anchor(source: ReportSource, part: str) -> str:
    """Return an anchor. GitHub puts `user-content-` before every other id, but not into links to it."""
    own = "\n".join([source.job, *(f"{suite.path} {suite.name}" for suite in source.results.suites)])
    return f"user-content-{hashlib.sha256(own.encode(errors='replace')).hexdigest()[:8]}-{part}"


def _counts(source: ReportSource, causes: Sequence[Cause]) -> Iterator[tuple[str, str]]:
    summary, results = source.results.summary, source.results
    planned = {case.planned for _, case in source.entries if case.iterations}
    times = f" × {planned.pop()}" if len(planned) == 1 and planned != {1} else ""
    yield "Cases", f"{summary.cases:,}{times}"
    counts = view.counts(results)
    yield "Pass", f"{counts.passed:,}"
    amounts = {kind: sum(len(cause.cases) for cause in causes if cause.kind == kind) for kind in KINDS}
    # All of them, because none is among those that pass.
    amounts["quarantined"] = summary.cases - counts.cases
    for kind, words in KINDS.items():
        if amounts[kind] and kind not in {"removed", "gone", "fell"}:
            yield words.words.capitalize(), f"{amounts[kind]:,}"
    if removed := amounts["removed"] + amounts["gone"]:
        yield "Removed", f"{removed:,}"
    usage = summary.usage
    if summary.score is not None:
        yield "Mean score", view.number(summary.score)
    if usage.cost_usd:
        yield "Cost", view.money(usage.cost_usd)
    if tokens := usage.input_tokens + usage.output_tokens:
        yield "Tokens", f"{tokens:,}"
    yield "Time", view.duration(results.run.duration_s)


def _needs(source: ReportSource) -> str:
    rules = source.results.gate.rules if source.results.gate else None
    if rules is None:
        return ""
    fails_on = f"The gate fails on {', '.join(rules.fail_on)}" if rules.fail_on else "Nothing fails the gate"
    if "errors" in rules.fail_on:
        return f"{fails_on}: a single error is enough."
    return f"{fails_on}; {view.percent(rules.max_error_rate)} of the cases may end in an error."


def _full(source: ReportSource, causes: Iterable[Cause], detail: Detail) -> Excerpt[FullCase]:
    """Return the first cases of each cause; a section counts those that are left out."""
    wanted = [(cause, found) for cause in causes for found in cause.cases if cause.kind not in {"removed", "fell"}]
    shown: list[FullCase] = []
    located = {case.id: case for _, case in source.entries} if wanted else {}
    compared = {case.id: case for case in source.compared} if wanted else {}
    alike: Counter[int] = Counter()
    for cause, found in wanted:
        alike[id(cause)] += 1
        if found.id in located and alike[id(cause)] <= _MOST_ALIKE and len(shown) < detail.max_cases:
            case = located[found.id]
            shown.append(_in_full(source, found, case, _lines(case, compared.get(found.id), found, detail.max_text)))
    return Excerpt(tuple(shown), len(wanted))


def _lines(case: CaseResult, compared: ComparedCase | None, found: CaseChange, most: int) -> tuple[DiffLine, ...]:
    if compared is None or not any(answer.before is not None for answer in compared.answers):
        return ()
    return tuple(timeline(case, compared, found.wrong.turn if found.wrong else None, most))


def _in_full(source: ReportSource, found: CaseChange, case: CaseResult, lines: tuple[DiffLine, ...]) -> FullCase:
    iterations = tuple(distinct_iterations(case))
    note = iterations[0][1] if len(iterations) == 1 else view.iterations_note(case)
    told = case.telling_iteration
    return FullCase(
        icon=KINDS[found.kind].icon,
        name=found.name,
        where=f"{found.path}:{found.line}" if found.line else found.path,
        link=source.links.suite(found.path, found.line),
        note=note,
        lines=lines,
        told=told.index if told else 0,
        shortened=tuple(
            note for iteration, _ in iterations for turn in iteration.turns for note in shortened_notes(turn)
        ),
        iterations=iterations,
    )


def _checked(source: ReportSource, most: int) -> Excerpt[CaseRow]:
    """Return the cases in suite order; if there are too many, passed cases are omitted first."""
    cases = [case for _, case in source.entries]
    if len(cases) > most:
        cases.sort(key=lambda case: case.status == "passed")
    rows = tuple(
        CaseRow(
            case.status, case.name, case.score, case_metrics(case), "" if case.status == "passed" else view.why(case)
        )
        for case in cases[:most]
    )
    # Of a large run, not all cases are in memory.
    return Excerpt(rows, source.results.summary.cases)


# Renders the pull-request comment and the job summary from Jinja templates with named blocks.
#
# A template gets ``report`` (a :class:`~agenteval.report.markdown_page.Page`) and ``detail`` (a
# :class:`~agenteval.report.size_limits.Detail`). Every ``{{ … }}`` in a built-in template ends in one of the filters
# of :mod:`~agenteval.report.markdown_filters`. If a user template cannot be used, the built-in one replaces it, with
# a warning.


_PLAIN = Presentation()

Warn = Callable[[str], None]


@dataclass(frozen=True)
class _Kind:
    template: str
    levels: tuple[Detail, ...]
    size: Callable[[str], int]
    limit: int
    page: Callable[[ReportSource, Detail], Page] = ReportSource.page


def _ignore(_: str) -> None:
    """Ignore a warning that the text contains."""


def report_files(report: Report, results: Results) -> Iterator[ReportFile]:
    """Yield ``summary.md`` and ``comment.md``."""
    gate, look = report.gate, report.presentation
    warnings: list[str] = []
    summary = render_summary(results, gate, archive=report.archive, presentation=look, warn=warnings.append)
    yield ReportFile("summary.md", summary, tuple(warnings))
    warnings = []
    comment = render_comment(results, gate, presentation=look, warn=warnings.append)
    yield ReportFile("comment.md", comment, tuple(warnings))


def render_comment(
    results: Results,
    gate: GateView,
    name: str = "",
    *,
    limit: int = COMMENT_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _ignore,
) -> str:
    """Return the body of the pull-request comment, without the hidden marker, in at most ``limit`` characters.

    Args:
        name: shown in the last line, to tell the sections of several jobs apart.
        limit: maximum number of characters, as GitHub counts them.
        presentation: the user's template, and the target of links.
        warn: called with the reason if the user's template was not used.

    Raises:
        ReportTooLargeError: ``limit`` is too small for the verdict and the numbers.
    """
    source = ReportSource.of(results, gate, name, "the job summary and report.html", presentation.site)
    kind = _Kind("comment.md.j2", COMMENT_LEVELS, characters, limit)
    return _rendered(kind, source, presentation.comment_template, presentation.template_texts, warn)


def render_check(
    results: Results, gate: GateView, *, limit: int, presentation: Presentation = _PLAIN, warn: Warn = _ignore
) -> str:
    """Return the text of the comment for a check run, in at most ``limit`` bytes; see :func:`render_comment`."""
    source = ReportSource.of(results, gate, "", "the job summary and report.html", presentation.site)
    kind = _Kind("comment.md.j2", COMMENT_LEVELS, utf8_bytes, limit)
    return _rendered(kind, source, presentation.comment_template, presentation.template_texts, warn)


def render_summary(
    results: Results,
    gate: GateView,
    *,
    archive: Archive = IN_MEMORY,
    limit: int = SUMMARY_LIMIT,
    presentation: Presentation = _PLAIN,
    warn: Warn = _ignore,
) -> str:
    """Return the job summary, in at most ``limit`` bytes: why, how, and what the run cost.

    The arguments and errors are those of :func:`render_comment`; ``archive`` counts the cases of each suite.
    """
    source = ReportSource.of(results, gate, "", "report.html and results.json", presentation.site, archive=archive)
    kind = _Kind("summary.md.j2", SUMMARY_LEVELS, utf8_bytes, limit, summary_page)
    return _rendered(kind, source, presentation.summary_template, presentation.template_texts, warn)


def _rendered(
    kind: _Kind, source: ReportSource, own: Path | None, texts: Mapping[str, str] | None, warn: Warn
) -> str:
    if own is not None:
        from agenteval.report.user_template import render_user_template

        try:
            page = functools.partial(kind.page, source)
            return render_user_template(own, page, kind.size, kind.limit, kind.levels, texts=texts)
        except UserTemplateError as error:
            warn(str(error))
            # The gate may contain the warning already, from an earlier file.
            source = replace(source, warnings=tuple(dict.fromkeys((str(error), *source.warnings))))
    # Imported here, so that commands without reports do not import it.
    from agenteval.report.markdown_filters import MARKDOWN
    from agenteval.report.templating import built_in_template

    template = built_in_template(MARKDOWN, kind.template)
    return fit(
        lambda detail: template.render(report=kind.page(source, detail), detail=detail),
        kind.size,
        kind.limit,
        kind.levels,
    )
