"""The error of an unreachable agent is shown once, with the number of cases."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from tests.unit.report import samples
from tests.unit.runs import case, iteration, results, turn

from agenteval.report import html
from agenteval.report.facts import Report, facts
from agenteval.report.markdown import render_summary
from agenteval.report.terminal import print_report
from agenteval.results.case import CaseResult
from agenteval.results.model import Results

ERROR = "cannot connect to http://127.0.0.1:9"


def broken(name: str, error: str) -> CaseResult:
    crash = iteration("error", turn(response=None, error=error))
    return case(name, "error").model_copy(update={"iterations": [crash], "score": None})


def unreachable() -> Results:
    """Three cases with the same error, after different numbers of attempts, and one with another."""
    same = [broken(f"c{number}", ERROR + suffix) for number, suffix in enumerate(["", " (after 3 attempts)", ""])]
    return results(*same, broken("d", "crashed"), case("e"))


def reported() -> Report:
    return facts(unreachable(), samples.gate_of("error", "nothing answered"))


def terminal(report: Report) -> str:
    stream = io.StringIO()
    print_report(report, stream, colour=False)
    return stream.getvalue()


def static_page(report: Report) -> str:
    page = "".join(html.render(report))
    return page[page.index('<div id="static" class="card">') : page.index("<noscript>")]


@pytest.mark.parametrize(
    ("render", "times"),
    [
        (terminal, 1),
        (render_summary, 1),
        (static_page, 1),
    ],
    ids=["terminal", "summary", "html"],
)
def test_it_is_said_once(render: Callable[[Report], str], times: int) -> None:
    text = render(reported())
    # Terminal and summary have room for some names.
    named = ("and 2 more cases", "c0, c1, c2", "<b>c1</b> and 1 more")
    assert sum(map(text.count, named)) == times
    assert "crashed" in text
