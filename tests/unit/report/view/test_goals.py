from __future__ import annotations

import pytest
from tests.unit.report import samples

from agenteval.report.html import render
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.view.comparison import Goal, goals
from agenteval.report.view.trend import trend
from agenteval.report.view.view import GateView
from agenteval.results.model import Results
from agenteval.results.store import IN_MEMORY


def run(*named: tuple[str, str | None]) -> Results:
    case = samples.passed_case("a")
    return samples.results(*(samples.suite(case, path=f"{name}.yaml", name=name, goal=goal) for name, goal in named))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ((("a", None), ("b", "  ")), ()),
        ((("a", "Serve all.\n"),), (Goal("", "Serve all."),)),
        ((("a", "Serve all."), ("b", None)), (Goal("a", "Serve all."),)),
        ((("a", "Serve all."), ("b", "Serve all.")), (Goal("", "Serve all."),)),
        (
            (("a", "Serve all."), ("b", "Be fast."), ("c", "Serve all.")),
            (Goal("a, c", "Serve all."), Goal("b", "Be fast.")),
        ),
    ],
)
def test_goals_are_named_once(named: tuple[tuple[str, str | None], ...], expected: tuple[Goal, ...]) -> None:
    assert goals(run(*named)) == expected


def test_all_reports_show_the_goal() -> None:
    results = run(("a", "Serve *all* users."), ("b", None))
    gate = GateView("passed", "passed", (), ())
    assert "<sub>Goal of a: Serve &#42;all&#42; users.</sub>" in render_comment(results, gate)
    assert "<sub>Goal of a: Serve &#42;all&#42; users.</sub>" in render_summary(results, gate)
    page = "".join(render(results, gate, IN_MEMORY, trend(results, ())))
    assert '<p class="goal">Goal of a: Serve *all* users.</p>' in page
