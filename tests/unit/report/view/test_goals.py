from __future__ import annotations

import pytest
from tests.unit.report import samples

from agenteval.report.facts import Report, facts


def run(*named: tuple[str, str | None]) -> Report:
    case = samples.passed_case("a")
    suites = (samples.suite(case, path=f"{name}.yaml", name=name, goal=goal) for name, goal in named)
    return facts(samples.results(*suites), samples.gate_of("passed", "passed"))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ((("a", None), ("b", "  ")), ()),
        ((("a", "Serve all.\n"),), (("", "Serve all."),)),
        ((("a", "Serve all."), ("b", None)), (("a", "Serve all."),)),
        ((("a", "Serve all."), ("b", "Serve all.")), (("", "Serve all."),)),
        (
            (("a", "Serve all."), ("b", "Be fast."), ("c", "Serve all.")),
            (("a, c", "Serve all."), ("b", "Be fast.")),
        ),
    ],
)
def test_goals_are_named_once(
    named: tuple[tuple[str, str | None], ...], expected: tuple[tuple[str, str], ...]
) -> None:
    assert run(*named).heading.goals == expected
