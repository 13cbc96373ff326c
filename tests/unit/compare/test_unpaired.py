"""A change that withdraws cases or metrics from the comparison leaves too little to prove anything."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.lost_scores import MAX_UNPAIRED
from agenteval.compare.policy import ComparePolicy, Quarantine
from agenteval.results.case import CaseResult
from agenteval.results.model import Results

PLAIN = ComparePolicy(confirm="off")
TODAY = date(2029, 1, 1)


def cases(*numbers: int) -> list[CaseResult]:
    return [case(f"c{number}") for number in numbers]


def points(now: Results, then: Results, policy: ComparePolicy = PLAIN, known: set[str] | None = None) -> list[str]:
    """The kinds of what a comparison does not prove."""
    ids = {item.id for _, item in now.cases()} | (known or set())
    comparison = Comparer(now, then, ids, policy, today=TODAY).decide()
    assert (comparison.verdict == "unproven") is bool(comparison.unproven)
    assert {point.mended_by for point in comparison.unproven} <= {"change"}
    return [point.what for point in comparison.unproven]


def of(run: Results, **more: Any) -> Results:
    return run.model_copy(update={"run": run.run.model_copy(update=more)})


@given(kept=st.integers(0, 12), removed=st.integers(0, 12), changed=st.integers(0, 12), new=st.integers(0, 3))
def test_the_share_of_lost_failing_cases_decides(kept: int, removed: int, changed: int, new: int) -> None:
    total = kept + removed + changed
    then = results(*(case(f"c{number}", "failed") for number in range(total)), run_id="then")
    now = results(
        *cases(*range(kept + changed), *range(50, 50 + new)),
        fingerprints={f"c{number}": "edited" for number in range(kept, kept + changed)},
    )
    lost = removed + changed
    assert points(now, then) == (["cases"] if lost > MAX_UNPAIRED * total else [])


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ({"c9": ""}, "1 case that passed before is no longer in the suite: c9; restore it, or accept "),
        (
            {"c8": "", "c9": ""},
            "2 cases that passed before are no longer in the suite: c8, c9; restore them, or accept ",
        ),
        ({"c9": "edited"}, "1 case that passed before is another case now: c9; restore it, or accept "),
    ],
)
def test_no_passing_case_is_lost_silently(lost: dict[str, str], text: str) -> None:
    then = results(*cases(*range(10)), run_id="then")
    edited = {name: digest for name, digest in lost.items() if digest}
    kept = [item for item in cases(*range(10)) if item.name not in lost or item.name in edited]
    now = results(*kept, fingerprints=edited)
    (point,) = Comparer(now, then, {item.id for _, item in now.cases()}, PLAIN).decide().unproven
    assert point.text == f"{text}the change with `agenteval accept`"
    assert point.mended_by == "change"


def test_the_text_counts_and_names() -> None:
    then = results(*cases(*range(9)), run_id="then")
    now = results(*cases(*range(6)), fingerprints={"c0": "edited"})
    (point,) = Comparer(now, then, {item.id for _, item in now.cases()}, PLAIN).decide().unproven
    expected = "4 of 9 cases of the baseline cannot be compared: 3 removed, 1 with changed rules or questions"
    assert point.text == f"{expected} (c0, c6, c7, c8)"


def test_cases_that_a_filter_left_out_are_not_lost() -> None:
    then = results(*cases(0, 1, 2), run_id="then")
    assert points(results(*cases(0)), then) == ["cases"]
    assert points(results(*cases(0)), then, known={item.id for _, item in then.cases()}) == []


def test_cases_in_quarantine_are_not_lost() -> None:
    held = ComparePolicy(confirm="off", quarantine=(Quarantine("c2", TODAY),))
    now = results(*cases(0, 1, 2), fingerprints={"c2": "edited"})
    then = results(*cases(0, 1, 2), run_id="then")
    assert (points(now, then), points(now, then, held)) == (["cases"], [])


@pytest.mark.parametrize(
    ("ref", "workflow_run_id", "lost"),
    [
        ("refs/pull/1/merge", "7", ["cases"]),
        ("refs/heads/gh-readonly-queue/main/pr-1", "7", ["cases"]),
        ("refs/heads/main", None, ["cases"]),
        (None, "7", ["cases"]),
        ("refs/heads/main", "7", []),
    ],
)
def test_the_base_branch_has_accepted_its_changes(
    ref: str | None, workflow_run_id: str | None, lost: list[str]
) -> None:
    then = of(results(*cases(0, 1), run_id="then"), workflow_run_id="6")
    assert points(of(results(*cases(0)), ref=ref, workflow_run_id=workflow_run_id), then) == lost


BEFORE = {"numeric": "1", "rouge": "1"}


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        (BEFORE, []),
        ({"numeric": "1"}, ["metric"]),
        ({"numeric": "1", "rouge": "2"}, ["metric"]),
        ({"numeric": "1", "rouge": "1", "bleu": "1"}, []),
        ({}, []),
    ],
)
def test_a_metric_that_decided_is_missed(after: dict[str, str], lost: list[str]) -> None:
    names = [f"c{number}" for number in range(5)]
    then = results(
        *(case(name, scores=[dict.fromkeys(BEFORE, 1.0)]) for name in names),
        run_id="then",
        metrics=dict.fromkeys(names, BEFORE),
    )
    now = results(
        *(case(name, scores=[dict.fromkeys(after or BEFORE, 1.0)]) for name in names),
        metrics=dict.fromkeys(names, after),
    )
    assert points(now, then) == lost
    assert points(now, then, ComparePolicy(confirm="off", gating={"rouge": False})) == []
    # As many cases may lose it as may be removed.
    for number, found in ((1, []), (4, lost)):
        metrics = {**dict.fromkeys(names, BEFORE), **dict.fromkeys(names[:number], after)}
        partly = [case(name, scores=[dict.fromkeys(metrics[name] or BEFORE, 1.0)]) for name in names]
        assert points(results(*partly, metrics=metrics), then) == found
