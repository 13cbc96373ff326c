"""The cases behind a proven mean are in every report for people, without a verdict on any of them."""

from __future__ import annotations

import html
import io

from tests.unit.report.scenarios import mean

from agenteval.report.html import render
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.terminal import print_results
from agenteval.report.terminal_lines import TerminalDetail
from agenteval.report.view.comparison import moved_cases
from agenteval.report.view.trend import trend
from agenteval.results.store import InMemory


def test_every_report_lists_them() -> None:
    sample = mean().sample
    printed = io.StringIO()
    print_results(sample.results, sample.gate, printed, False, TerminalDetail(verbosity=2), width=120)
    texts = {
        "comment": render_comment(sample.results, sample.gate),
        "summary": render_summary(sample.results, sample.gate),
        "terminal": printed.getvalue(),
        "html": "".join(render(sample.results, sample.gate, InMemory(), trend(sample.results, ()))),
    }
    for name, text in texts.items():
        plain = html.unescape(text).replace("\u200b", "")
        assert "24 cases lower in numeric side by side with 89abcde" in plain, name
        assert "0.67, failed 1 of 3" in plain, name
    comparison = sample.results.comparison
    assert comparison is not None
    assert {case.change for case in comparison.cases} == {"unchanged"}


def test_a_list_is_as_long_as_asked() -> None:
    comparison = mean().sample.results.comparison
    (group,) = moved_cases(comparison, 5)
    assert ([row.name for row in group.rows.items], group.rows.hidden) == (["c00", "c01", "c02", "c03", "c04"], 19)
    assert moved_cases(comparison, 0) == moved_cases(None, 5) == ()
