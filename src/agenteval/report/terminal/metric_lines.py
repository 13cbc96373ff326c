"""The metrics of a run for ``-v``, and its statistics for ``-vv``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.report.terminal.lines import BLANK, LONGEST_NAME, Line, Style, line, shown
from agenteval.report.view import view
from agenteval.report.view.baseline_notes import gate_needs
from agenteval.report.view.comparison_rows import evidence_rows
from agenteval.report.view.moved_cases import moved_cases
from agenteval.results.model import Results

_MOST_ROWS = 200
_GAP = "  "
_VERDICTS: dict[str, Style] = {"regressed": "red", "improved": "green", "unproven": "yellow"}


def metric_lines(results: Results) -> Iterator[Line]:
    """Yield the table of metrics: numbers first, so that a long name wraps at the end of its line."""
    rows = view.metric_rows(results)
    if not rows:
        return
    compared = results.comparison is not None
    header = (
        ("mean", "base", "change", "scores", "pass", "metric") if compared else ("mean", "scores", "pass", "metric")
    )
    table = [header]
    for row in rows[:_MOST_ROWS]:
        change = (view.number(row.baseline), view.signed(row.difference)) if compared else ()
        cells = (view.number(row.current), *change, f"{row.n:,}", view.percent(row.pass_rate))
        table.append((*cells, shown(row.id, LONGEST_NAME)))
    yield from _columns(table)
    yield from _hidden(len(rows) - _MOST_ROWS)
    yield BLANK


def statistics_lines(results: Results) -> Iterator[Line]:
    """Yield what the comparison found in each metric, the cases behind changes, and the conditions of the gate."""
    comparison = results.comparison
    rows = list(evidence_rows(comparison)) if comparison else []
    if comparison is None or not rows:
        return
    for row in rows[:_MOST_ROWS]:
        verdict = row.verdict if row.gating else f"{row.verdict}, only reported"
        facts = [f"change {row.change}", f"p {row.p}", row.basis, f"would see a drop of {row.catches}"]
        known = (fact for fact in facts if not fact.endswith(view.NOTHING))
        yield line((shown(row.id, LONGEST_NAME), "bold"), _GAP, (verdict, _VERDICTS.get(row.verdict, "")))
        yield line((" · ".join(known), ""), indent=4, hang=4)
        for text in filter(None, (row.reason, row.hint)):
            yield line((shown(text), "dim"), indent=4, hang=4)
    yield from _hidden(len(rows) - _MOST_ROWS)
    for group in moved_cases(comparison, _MOST_ROWS):
        yield line((shown(group.title), "bold"))
        table = [("difference", shown(group.before.lower(), 40), "this change", "case")]
        table += [(row.change, row.before, row.after, shown(row.name, LONGEST_NAME)) for row in group.rows.items]
        yield from _columns(table)
        yield from _hidden(group.rows.hidden)
    for text in gate_needs(comparison):
        yield line((shown(text), "dim"))
    yield BLANK


def _columns(table: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Yield rows with all columns but the last aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)][:-1]
    start = sum(widths) + len(_GAP) * len(widths)
    for number, (*cells, last) in enumerate(table):
        numbers = _GAP.join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield line((f"{numbers}{_GAP}{last}", "" if number else "dim"), hang=start)


def _hidden(amount: int) -> Iterator[Line]:
    if amount > 0:
        yield line((f"… and {amount:,} more in results.json", "dim"))
