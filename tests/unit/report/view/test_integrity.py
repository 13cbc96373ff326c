"""The differences from the base commit, in words."""

from __future__ import annotations

import pytest
from tests.unit.runs import case, results

from agenteval.report.setup import integrity_rows
from agenteval.results.model import Acceptance, Difference

WORKFLOW = ".github/workflows/eval.yml"


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (
            Difference(
                kind="metric",
                cases=3,
                metric="bleu",
                setting="threshold",
                before="0.8",
                after="0.5",
                effect="base",
                loosens=True,
            ),
            "threshold of bleu in 3 cases: 0.8 → 0.5 (looser; the base's version decides until this is merged)",
        ),
        (
            Difference(kind="removed", case="a", before="a", effect="unproven"),
            "removed case a: a → – (unproven: it cannot be compared)",
        ),
        (
            Difference(
                kind="edited",
                case="a",
                setting="input",
                effect="absolute",
                accepted_by=Acceptance(author="Ann", reason="new prices"),
            ),
            "input of edited case a (accepted by Ann: new prices)",
        ),
        (Difference(kind="new", cases=30, effect="absolute"), "30 new cases (decided by its own result)"),
        (
            Difference(kind="setting", setting="gate.strict", before="true", after="false", effect="base"),
            "setting gate.strict: true → false (the base's version decides until this is merged)",
        ),
    ],
)
def test_a_difference_is_one_line(difference: Difference, text: str) -> None:
    run = results(case("a")).run.model_copy(update={"integrity": [difference]})
    (row,) = integrity_rows(run)
    assert str(row) == text
    assert not row.strong


def test_cases_that_differ_alike_share_a_row_and_need_no_path() -> None:
    found = [
        *(Difference(kind="edited", case=f"apps/agent.yaml::c{number}", effect="unproven") for number in range(5)),
        Difference(kind="edited", case="apps/agent.yaml::d", before="1", after="2", effect="unproven"),
    ]
    run = results(case("a")).run.model_copy(update={"integrity": found})
    assert [str(row) for row in integrity_rows(run)] == [
        "5 edited cases: c0, c1 and 3 more (unproven: it cannot be compared)",
        "edited case d: 1 → 2 (unproven: it cannot be compared)",
    ]
    other = Difference(kind="removed", case="b.yaml::d", effect="unproven")
    rows = integrity_rows(run.model_copy(update={"integrity": [*found, other]}))
    assert [row.what for row in rows][1:] == ["edited case apps/agent.yaml::d", "removed case b.yaml::d"]


def test_what_nothing_enforces_comes_first_and_is_strong() -> None:
    found = [
        Difference(kind="new", case="a", effect="absolute"),
        Difference(kind="removed", case="b", effect="unproven"),
        Difference(
            kind="workflow", setting=".github/workflows/eval.yml", before="there", after="there", effect="listed"
        ),
    ]
    rows = list(integrity_rows(results(case("a")).run.model_copy(update={"integrity": found})))
    assert [row.strong for row in rows] == [True, False, False]
    assert str(rows[0]) == ("workflow .github/workflows/eval.yml (cannot be enforced from inside the run; review it)")
    assert rows[1].what == "removed case b"
