"""Prints the final table of a run on a terminal or in a log."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from agenteval.core.text import escape
from agenteval.report.view import view
from agenteval.report.view.comparison_rows import evidence_rows
from agenteval.report.view.groups import grouped, others
from agenteval.report.view.integrity import integrity_rows
from agenteval.report.view.moved_cases import moved_cases
from agenteval.report.view.view import GateView
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results
from agenteval.results.verdict import Verdict

#: A run with more cases than this lists only those that did not pass.
MOST_CASES_WITH_PASSED = 30
_MOST_ROWS = 200
_MOST_LISTED = 20
_MOST_LINES_IN_A_CELL = 3
_FALLBACK_WIDTH = 120
_NARROWEST = 60
_LEAST_LAST_COLUMN = 20
_NARROWEST_COLUMN = 6
_LONGEST_NAME = 60
_LONGEST_REASON = 300
_GAP = "  "

_Style = Literal["", "green", "red", "yellow", "dim", "bold"]
_VERDICTS: dict[Verdict, _Style] = {"passed": "green", "failed": "red", "unproven": "yellow", "error": "red"}
_STYLES: dict[str, _Style] = {"passed": "green", "failed": "red", "error": "red", "skipped": "yellow"}


@dataclass(frozen=True, slots=True)
class _Grid:
    """A table: the first column is styled by row, the last one takes the remaining width."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    styles: tuple[_Style, ...] = ()
    numbers: frozenset[int] = frozenset()
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    style: _Style = ""


def print_results(
    results: Results, gate: GateView, stream: TextIO, colour: bool, *, width: int | None = None
) -> None:
    """Print the table of cases, the changes against the baseline, the metrics and, last, the verdict.

    Args:
        colour: whether the stream is a terminal with colours; rich is loaded only in this case.
        width: characters in a line; default: the terminal's width, or 120.
    """
    columns = max(_NARROWEST, width or shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns)
    parts = list(_parts(results, gate))
    if colour:
        _print_rich(parts, stream, columns)
    else:
        _print_plain(parts, stream, columns)


def _parts(results: Results, gate: GateView) -> Iterator[_Grid | _Line]:
    yield from _cases(results)
    yield from _changes(results)
    yield from _metrics(results)
    yield from _evidence(results)
    yield from _moved(results)
    yield _Line(_totals(results))
    yield from _listed([str(row) for row in integrity_rows(results.run)], "differs from the base: ", "yellow")
    yield from _listed([*gate.warnings, *view.metric_errors(results)], "warning: ", "yellow")
    yield from _listed(gate.further_reasons, "- ", "")
    headline = _text(view.headline(results, gate), _LONGEST_REASON)
    yield _Line(f"agenteval: {view.verdict_line(gate.verdict, headline)}", _VERDICTS[gate.verdict])


def _listed(texts: Sequence[str], start: str, style: _Style) -> Iterator[_Line]:
    for text in texts[:_MOST_LISTED]:
        yield _Line(start + _text(text, _LONGEST_REASON), style)
    if len(texts) > _MOST_LISTED:
        yield _Line(f"{start}… and {len(texts) - _MOST_LISTED:,} more", style)


def _cases(results: Results) -> Iterator[_Grid]:
    entries = results.cases()
    several_suites = len(results.suites) > 1
    if len(entries) > MOST_CASES_WITH_PASSED:
        entries = [entry for entry in entries if entry[1].status != "passed"]
    groups = grouped(entries, lambda entry: entry[1])
    shown = [group[0] for group in groups[:_MOST_ROWS]]
    if not shown:
        return
    rows = []
    for (suite, case), group in zip(shown, groups, strict=False):
        name = f"{suite.path}: {case.name}" if several_suites else case.name
        why = _text(view.why(case), _LONGEST_REASON)
        rows.append((case.status, f"{_text(name, _LONGEST_NAME)}{others(group)}", view.number(case.score), why))
    yield _Grid(
        "",
        ("status", "case", "score", "why"),
        tuple(rows),
        styles=tuple(_STYLES[case.status] for _, case in shown),
        numbers=frozenset({2}),
        hidden=_hidden(sum(map(len, groups[_MOST_ROWS:]))),
    )


def _changes(results: Results) -> Iterator[_Grid]:
    if results.comparison is None:
        return
    cases = results.comparison.cases
    if regressed := [case for case in cases if case.change == "regressed"]:
        yield _change_grid("got worse", regressed, "red")
    if improved := [case for case in cases if case.change == "improved"]:
        yield _change_grid("got better", improved, "green")


def _change_grid(title: str, cases: Sequence[ComparedCase], style: _Style) -> _Grid:
    shown = cases[:_MOST_ROWS]
    rows = []
    for case in shown:
        before, after = view.distinct(case.score_before, case.score_after)
        facts = view.got_worse(case) if case.change == "regressed" else view.got_better(case)
        why = _text("; ".join(map(str, facts)), _LONGEST_REASON)
        rows.append((_text(case.name, _LONGEST_NAME), before, after, why))
    return _Grid(
        f"{title}: {view.count(len(cases), 'case')}",
        ("case", "baseline", "now", "why"),
        tuple(rows),
        styles=(style,) * len(rows),
        numbers=frozenset({1, 2}),
        hidden=_hidden(len(cases) - len(shown)),
    )


def _metrics(results: Results) -> Iterator[_Grid]:
    rows = view.metric_rows(results)[:_MOST_ROWS]
    if not rows:
        return
    compared = results.comparison is not None
    header = ("metric", "mean", "baseline", "change", "scores", "passed") if compared else _PLAIN_METRICS
    cells = []
    for row in rows:
        change = (view.number(row.baseline), view.signed(row.difference)) if compared else ()
        name = _text(row.id, _LONGEST_NAME)
        cells.append((name, view.number(row.current), *change, f"{row.n:,}", view.percent(row.pass_rate)))
    yield _Grid("", header, tuple(cells), numbers=frozenset(range(1, len(header))))


def _evidence(results: Results) -> Iterator[_Grid]:
    """Yield the statistics of the comparison by metric."""
    if results.comparison is None:
        return
    rows = list(evidence_rows(results.comparison))
    if rows:
        yield _Grid(
            "",
            ("metric", "verdict", "change (interval)", "p", "why"),
            tuple(
                (
                    _text(row.id, _LONGEST_NAME),
                    row.verdict if row.gating else f"({row.verdict})",
                    row.change,
                    row.p,
                    _text(row.reason, _LONGEST_REASON),
                )
                for row in rows[:_MOST_ROWS]
            ),
            numbers=frozenset({3}),
        )


def _moved(results: Results) -> Iterator[_Grid]:
    """Yield the cases behind the proven changes of means."""
    for group in moved_cases(results.comparison, _MOST_LISTED):
        yield _Grid(
            _text(group.title, _LONGEST_REASON),
            ("case", group.before.lower(), "this change", "difference"),
            tuple((_text(row.name, _LONGEST_NAME), row.before, row.after, row.change) for row in group.rows.items),
            hidden=_hidden(group.rows.hidden),
        )


_PLAIN_METRICS = ("metric", "mean", "scores", "passed")


def _totals(results: Results) -> str:
    summary = results.summary
    counts = [f"{summary.passed:,} passed"]
    counts += [f"{summary.failed:,} failed"] if summary.failed else []
    counts += [view.count(summary.errors, "error")] if summary.errors else []
    counts += [f"{summary.skipped:,} skipped"] if summary.skipped else []
    totals = f"{view.count(summary.cases, 'case')}: {', '.join(counts)}"
    change = view.score_change(results)
    if summary.score is not None:
        against = f" ({view.signed(change)} against the baseline)" if change is not None else ""
        totals += f"; mean score {view.number(summary.score)}{against}"
    totals += f"; {view.duration(results.run.duration_s)}"
    usage = summary.usage
    if tokens := usage.input_tokens + usage.output_tokens:
        totals += f", {view.count(tokens, 'token')}"
    if cached := view.from_cache(usage):
        totals += f", {cached}"
    return f"{totals}, {view.money(usage.cost_usd)}" if usage.cost_usd else totals


def _hidden(amount: int) -> str:
    return f"… and {amount:,} more in results.json and junit.xml" if amount else ""


def _text(text: str, limit: int) -> str:
    return escape.terminal(escape.one_line(text, limit), wrapped=True)


def _print_plain(parts: Iterable[_Grid | _Line], stream: TextIO, columns: int) -> None:
    lines: list[str] = []
    for part in parts:
        if isinstance(part, _Line):
            lines.append(part.text)
        else:
            lines += [*_plain_grid(part, columns), ""]
    encoding = stream.encoding or "utf-8"
    text = "\n".join(lines) + "\n"
    # A character that the console cannot encode must not break a finished run.
    stream.write(text.encode(encoding, "replace").decode(encoding))


def _plain_grid(grid: _Grid, columns: int) -> Iterator[str]:
    if grid.title:
        yield grid.title
    table = (grid.header, *grid.rows)
    widths = _widths(table, columns)
    start = " " * (sum(widths[:-1]) + len(_GAP) * (len(widths) - 1))
    for row in table:
        first, *others = _wrap(row[-1], widths[-1])
        cells = [
            _fit(cell, width, to_the_right=index in grid.numbers)
            for index, (cell, width) in enumerate(zip((*row[:-1], first), widths, strict=True))
        ]
        yield _GAP.join(cells).rstrip()
        yield from (start + line for line in others)
    if grid.hidden:
        yield grid.hidden


def _wrap(text: str, width: int) -> list[str]:
    """Return the text in a few lines of at most ``width`` cells, broken at blanks."""
    if _cells(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        line = f"{lines[-1]} {word}" if lines[-1] else word
        if _cells(line) <= width or not lines[-1]:
            lines[-1] = line
        elif len(lines) == _MOST_LINES_IN_A_CELL:
            lines[-1] = f"{lines[-1]} {word} …"  # too long: shortened below
            break
        else:
            lines.append(word)
    return [_shorten(line, width)[0] if _cells(line) > width else line for line in lines]


def _widths(table: Sequence[tuple[str, ...]], columns: int) -> list[int]:
    """Return the width of each column: that of its content; the widest and the last shrink if needed."""
    widths = [max(map(_cells, column)) for column in zip(*table, strict=True)]
    room = columns - len(_GAP) * (len(widths) - 1)
    least = min(widths[-1], max(_NARROWEST_COLUMN, min(_LEAST_LAST_COLUMN, room // 3)))
    excess = sum(widths[:-1]) + least - room
    if excess > 0:
        widest = widths.index(max(widths[:-1]))
        widths[widest] = max(_NARROWEST_COLUMN, widths[widest] - excess)
    widths[-1] = min(widths[-1], max(least, room - sum(widths[:-1])))
    return widths


def _cells(text: str) -> int:
    """Return the number of terminal cells that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_cells, text))


def _character_cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fit(text: str, width: int, *, to_the_right: bool) -> str:
    taken = _cells(text)
    if taken > width:
        text, taken = _shorten(text, width)
    padding = " " * (width - taken)
    return padding + text if to_the_right else text + padding


def _shorten(text: str, width: int) -> tuple[str, int]:
    taken = 0
    for index, character in enumerate(text):
        cells = _character_cells(character)
        if taken + cells > width - 1:
            return f"{text[:index]}…", taken + 1
        taken += cells
    return text, taken


def _print_rich(parts: Iterable[_Grid | _Line], stream: TextIO, columns: int) -> None:
    # Imported here, because runs in CI do not need it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, width=columns, highlight=False, emoji=False, markup=False)
    for part in parts:
        if isinstance(part, _Line):
            console.print(Text(part.text, style=part.style), soft_wrap=True)
            continue
        if part.title:
            console.print(Text(part.title, style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for index, name in enumerate(part.header):
            table.add_column(
                name,
                justify="right" if index in part.numbers else "left",
                no_wrap=index != len(part.header) - 1,
                overflow="ellipsis",
                header_style="dim",
            )
        for number, row in enumerate(part.rows):
            style = part.styles[number] if part.styles else ""
            # Use Text instead of str, because rich would parse brackets in untrusted text as markup.
            table.add_row(Text(row[0], style=style), *map(Text, row[1:]))
        console.print(table)
        if part.hidden:
            console.print(Text(part.hidden, style="dim"))
        console.print()
