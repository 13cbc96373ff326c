"""The result on a terminal or in a log."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from agenteval.core import escape
from agenteval.core import text as cells
from agenteval.report import words
from agenteval.report.cases import KINDS, Kind, distinct_iterations
from agenteval.report.causes import Cause, one_cause_is_likely
from agenteval.report.facts import Report
from agenteval.report.terminal_lines import (
    BLANK,
    LONGEST_NAME,
    SIGNS,
    Line,
    NextCommands,
    Part,
    Style,
    TerminalDetail,
    line,
    shown,
    write,
)
from agenteval.results.case import CaseResult, CaseStatus, Score, SuiteResult, TurnResult
from agenteval.results.verdict import Verdict

_MOST_CASES = 1_000
_SIGNS: dict[CaseStatus, Part] = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "error": ("!", "bold magenta"),
    "skipped": ("-", "yellow"),
}
_MARKS: dict[bool | None, Part] = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
_LONGEST_INPUT = 200


def case_lines(report: Report) -> Iterator[Line]:
    """Yield the lines of all cases, in the order of the suites."""
    suites = report.results.suites
    several = len(suites) > 1
    left = _MOST_CASES
    for suite in suites:
        for case in report.cases_of(suite):
            if not left:
                yield line((f"… and {report.summary.cases - _MOST_CASES:,} more in results.json", "dim"))
                yield BLANK
                return
            left -= 1
            yield from _case(case, suite if several else None)
    yield BLANK


def _case(case: CaseResult, suite: SuiteResult | None) -> Iterator[Line]:
    sign, style = _SIGNS[case.status]
    where: Part = (f"  {shown(suite.path)}" if suite else "", "dim")
    note = words.iterations_note(case)
    yield line(
        (f"{sign} ", style), (shown(case.name, LONGEST_NAME), "bold"), where, (f"  {note}" if note else "", "dim")
    )
    for iteration, which in distinct_iterations(case):
        if which:
            yield line((which, "dim"), indent=2, hang=4)
        for turn in iteration.turns:
            yield from _turn(turn, several=len(iteration.turns) > 1)


def _turn(turn: TurnResult, *, several: bool) -> Iterator[Line]:
    label = f"Turn {turn.index + 1}: " if several else "Input: "
    yield line((label, "dim"), f'"{shown(turn.input, _LONGEST_INPUT)}"', indent=4, hang=6)
    if turn.error:
        yield line(("! ", "magenta"), f"agent error: {shown(turn.error)}", indent=4, hang=6)
    checks = [score for score in turn.scores if score.kind == "tools"]
    if turn.tool_calls or checks:
        names = ", ".join(shown(call.name, 100) for call in turn.tool_calls)
        mark: Part = ("", "")
        if checks and all(score.passed is not None for score in checks):
            sign, style = _MARKS[all(score.passed for score in checks)]
            mark = (f" {sign}", style)
        yield line(("Tools called: ", "dim"), f"[{names}]", mark, indent=4, hang=6)
    for score in turn.scores:
        yield _score(score)


def _score(score: Score) -> Line:
    reason = words.score_reason(score)
    if score.status != "scored" or score.score is None:
        sign: Part = ("! ", "magenta") if score.status == "error" else ("- ", "yellow")
        return line(
            sign, f"{shown(score.id, 100)}: {score.status}{f': {shown(reason)}' if reason else ''}", indent=4, hang=8
        )
    mark, style = _MARKS[score.passed]
    value, _ = words.distinct(score.score, score.threshold)
    threshold = "—" if score.threshold is None else f"{score.threshold:g}"
    why: Part = (f"  {shown(reason)}" if reason and score.passed is not True else "", "dim")
    return line(
        (f"{mark} ", style), f"{shown(score.id, 100)}: {value} (threshold: {threshold})", why, indent=4, hang=8
    )


_MOST_ROWS = 200
_GAP = "  "


def metric_lines(report: Report) -> Iterator[Line]:
    """Yield the table of metrics: numbers first, so that a long name wraps at the end of its line."""
    rows = report.scores
    if not rows:
        return
    compared = report.base is not None
    table = [("mean", "scores", "pass", *(("base", "here", "change") if compared else ()), "metric")]
    for row in rows[:_MOST_ROWS]:
        here = row.current if row.compared else None
        both = (words.number(row.baseline), words.number(here), words.signed(row.difference))
        cells = (words.number(row.mean), f"{row.n:,}", words.percent(row.pass_rate), *(both if compared else ()))
        table.append((*cells, shown(row.id, LONGEST_NAME)))
    yield from _columns(table)
    yield from _hidden(len(rows) - _MOST_ROWS)
    yield BLANK


def _columns(table: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)][:-1]
    start = sum(widths) + len(_GAP) * len(widths)
    for number, (*values, last) in enumerate(table):
        numbers = _GAP.join(cell.rjust(width) for cell, width in zip(values, widths, strict=True))
        yield line((f"{numbers}{_GAP}{last}", "" if number else "dim"), hang=start)


def _hidden(amount: int) -> Iterator[Line]:
    if amount > 0:
        yield line((f"… and {amount:,} more in results.json", "dim"))


_LABEL = 7
_MOST_LISTED = 20
_MOST_NAMED = 2
_BADGES: dict[Verdict, tuple[str, Style]] = {
    "passed": ("passed", "bold white on green"),
    "failed": ("FAILED", "bold white on red"),
    "unproven": ("UNPROVEN", "bold black on yellow"),
    "error": ("ERROR", "bold white on magenta"),
}


def closing_lines(report: Report, commands: NextCommands, columns: int) -> Iterator[Line]:
    """Yield the lines after what needs eyes."""
    before = [*_also(report), *_cache(report), *_notes(report)]
    yield from before
    if before:
        yield BLANK
    yield from _verdict(report, columns)
    for sentence in report.certainty:
        yield _labelled("sure?", shown(sentence))
    yield from _commands(report, commands)


def _labelled(label: str, *parts: Part | str) -> Line:
    return line((label.ljust(_LABEL), "dim"), *parts, hang=_LABEL)


def _also(report: Report) -> Iterator[Line]:
    parts: list[Part | str] = []
    for kind, found in groupby(report.causes, lambda cause: cause.kind):
        if kind not in SIGNS:
            parts += [" · "] if parts else []
            parts.append(_counted(kind, tuple(found), shown(report.base_name)))
    if parts:
        yield _labelled("also", *parts)


def _counted(kind: Kind, causes: Sequence[Cause], base: str) -> Part:
    cases = [case for cause in causes for case in cause.cases]
    amount = len(cases)
    match kind:
        case "removed":
            return f"{amount:,} removed that passed on {base}", "yellow"
        case "gone":
            return f"{amount:,} removed that did not pass on {base}", ""
        case "new":
            return f"{amount:,} new, {'all pass' if amount > 1 else 'passes'}", ""
        case "changed":
            return f"{amount:,} with changed rules, not compared", "yellow"
        case "known":
            return f"{amount:,} failed on {base}, too{_named(causes)}", ""
        case "repaired":
            return f"{amount:,} repaired{_named(causes)}", "green"
        case "skipped":
            reasons = [cause.text for cause in causes if cause.example and cause.example.wrong]
            more = f", and {words.count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
            return f"{amount:,} skipped{f' ({shown(reasons[0])}{more})' if reasons else ''}", "yellow"
    return f"{amount:,} {KINDS[kind].words}{_named(causes)}", ""


def _named(causes: Sequence[Cause]) -> str:
    cases = [case for cause in causes for case in cause.cases]
    if len(cases) > _MOST_NAMED:
        return ""
    texts = (
        f"{shown(case.name, LONGEST_NAME)}{f' {case.before} → {case.now}' if case.before and case.now else ''}"
        for case in cases
    )
    return f" ({', '.join(texts)})"


def _cache(report: Report) -> Iterator[Line]:
    if cached := words.from_cache(report.summary.usage):
        yield _labelled("cache", (shown(cached), "dim"))


def _notes(report: Report) -> Iterator[Line]:
    yield from _listed("differs from the base: ", [str(row) for row in report.rules], "yellow")
    # Each reason stands once: verdict and certainty follow.
    told = {_told(report), *report.certainty, f"{_told(report)}: {' '.join(report.certainty)}"}
    conditions = [item for item in report.conditions if item.found not in told]
    told |= {item.found for item in conditions}
    yield from _listed("warning: ", [text for text in report.warnings if text not in told], "yellow")
    yield from _listed("why".ljust(_LABEL), list(dict.fromkeys(map(str, conditions))), "")


def _listed(label: str, texts: Sequence[str], style: Style) -> Iterator[Line]:
    for text in texts[:_MOST_LISTED]:
        yield line((label, style or "dim"), (shown(text), style), hang=_LABEL)
    if len(texts) > _MOST_LISTED:
        yield line((f"{label}… and {len(texts) - _MOST_LISTED:,} more", style), hang=_LABEL)


def _told(report: Report) -> str:
    if report.passed or report.about.repeats or not report.run.complete:
        return report.headline
    whole = report.heading.whole
    return "; ".join([whole, *(note for note in report.about.notes if note not in whole)])


def _verdict(report: Report, columns: int) -> Iterator[Line]:
    word, style = _BADGES[report.verdict]
    told = _told(report)
    told = "" if told == report.verdict else shown(told)
    counts, usage = report.counts, report.summary.usage
    passed = f"{counts.passed:,} of {counts.cases:,}"
    is_told = any(f"{passed} {noun} pass" in told for noun in ("case", "cases"))
    figures = [] if is_told else [f"{passed} pass"]
    figures += [words.money(usage.cost_usd)] if usage.cost_usd else []
    figures.append(words.duration(report.run.duration_s))
    totals: Part = (" · ".join(figures), "dim")
    first = line((word, style), "  ", (told, "bold"))
    if not told:
        yield line((word, style), "  ", totals)
    elif cells.width(first.text) + len("   ") + cells.width(totals[0]) <= columns:
        yield line(*first.parts, "   ", totals)
    else:
        yield first
        yield line(totals, indent=2)


def _commands(report: Report, commands: NextCommands) -> Iterator[Line]:
    wrong = report.steps.open_cases
    chosen, only = commands.failed, f"only {'this' if wrong == 1 else 'these'} {words.count(wrong, 'case')}"
    if report.steps.needs_all:
        chosen, only, wrong = "--out agenteval-again", "all cases: a mean is worse", 1
    offered = [
        ("again", f"{commands.again} {chosen}" if commands.again and wrong and not report.passed else "", only),
        ("prove", commands.prove if report.steps.can_prove else "", "side by side with the base"),
        ("look", commands.look, shown(commands.page)),
    ]
    room = max(len(command) for _, command, _ in offered)
    for label, command, note in offered:
        if command:
            yield _labelled(
                label, (escape.terminal(command), "bright_blue"), (f"{'': <{room - len(command) + 2}}{note}", "dim")
            )


_MOST_CAUSES = 10
_MOST_CAUSES_VERBOSE = 200
_UNLIMITED = 100_000
_NARROWEST = 40


_PLAIN = TerminalDetail()


def print_report(
    report: Report, stream: TextIO, colour: bool, detail: TerminalDetail = _PLAIN, *, width: int | None = None
) -> None:
    """Print the result; the last lines are the verdict and the next commands."""
    columns = max(_NARROWEST, width or _width_of(stream))
    write(_lines(report, detail, columns), stream, colour, columns)


def _width_of(stream: TextIO) -> int:
    is_known = stream.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_known else _UNLIMITED


def _lines(report: Report, detail: TerminalDetail, columns: int) -> Iterator[Line]:
    if detail.verbosity:
        yield from case_lines(report)
        yield from metric_lines(report)
    most = _MOST_CAUSES_VERBOSE if detail.verbosity else _MOST_CAUSES
    if any(cause.kind in SIGNS for cause in report.causes):
        # Imported here, because most runs pass.
        from agenteval.report.terminal_causes import cause_lines

        yield from cause_lines(report, most, detail.explained, columns)
    if one_cause_is_likely(report.causes):
        text = "They probably have one cause: a model, key or service that answers differently."
        yield line((text, "yellow"))
        yield BLANK
    yield from closing_lines(report, detail.commands, columns)
