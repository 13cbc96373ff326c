"""Runs are compared metric by metric: a change of one metric does not affect others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.gate_runs import TODAY, base_run, dated, history, past, scored, steady
from tests.unit.runs import case, iteration, not_asked, results, score, turn

from agenteval.compare.comparer import Comparer
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Evidence
from agenteval.compare.sides import Sides
from agenteval.results.case import CaseResult
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.suite.model import OVERALL

NAMES = ("kept", "other", "edited")
CASES = [f"c{number:02}" for number in range(6)]
Prints = Mapping[str, str]


def run(day: int, scores: Mapping[str, list[float]], prints: Prints, run_id: str = "") -> Results:
    """A run whose cases all have the same metrics, with a score of each per case."""
    cases = [
        case(name, scores=[{metric: scores[metric][index] for metric in prints}]) for index, name in enumerate(CASES)
    ]
    metrics = dict.fromkeys(CASES, prints)
    return dated(results(*cases, run_id=run_id or f"base-{day}", metrics=metrics), day)


def evidence(current: Results, baseline: Results) -> Evidence:
    return Sides(current, baseline, ComparePolicy(), frozenset()).evidence


def compared(current: Results, baseline: Results, policy: ComparePolicy | None = None) -> Comparison:
    known = {item.id for _, item in current.cases()}
    return Comparer(current, baseline, known, policy or ComparePolicy(), TODAY).decide()


SCORES = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=6, max_size=6) for name in NAMES}
)
EDITS = st.sampled_from(["add", "remove", "change"])


@given(earlier=st.lists(SCORES, min_size=1, max_size=3), now=SCORES, edit=EDITS)
def test_an_edited_metric_leaves_the_others_as_they_were(
    earlier: list[dict[str, list[float]]], now: dict[str, list[float]], edit: str
) -> None:
    same: Prints = {"kept": "1", "other": "2"}
    before: Prints = same if edit == "add" else {**same, "edited": "3"}
    after: Prints = same if edit == "remove" else {**same, "edited": "3" if edit == "add" else "4"}
    baseline = history(*(run(day, scores, before) for day, scores in enumerate(earlier, start=1)))
    unedited = history(*(run(day, scores, same) for day, scores in enumerate(earlier, start=1)))
    current = run(9, now, after, "now")
    found, expected = evidence(current, baseline), evidence(run(9, now, same, "now"), unedited)
    assert found == expected
    assert {name for metrics in found.first.values() for name in metrics} == set(same)


@pytest.mark.parametrize("policy", ["any-flip", "mean-drop"])
@given(then=SCORES, now=SCORES, edit=EDITS)
def test_simple_rules_decide_by_the_metrics_that_stayed(
    policy: str, then: dict[str, list[float]], now: dict[str, list[float]], edit: str
) -> None:
    same: Prints = {"kept": "1", "other": "2"}
    before: Prints = same if edit == "add" else {**same, "edited": "3"}
    after: Prints = same if edit == "remove" else {**same, "edited": "3" if edit == "add" else "4"}
    rule = ComparePolicy(name=policy)  # type: ignore[arg-type]
    edited = compared(with_statuses(run(9, now, after, "now")), with_statuses(run(1, then, before)), rule)
    plain = compared(with_statuses(run(9, now, same, "now")), with_statuses(run(1, then, same)), rule)
    # A changed or removed metric decided about cases of the baseline.
    withdrawn = edit != "add" and plain.verdict != "regressed"
    assert edited.verdict == ("unproven" if withdrawn else plain.verdict)
    assert edited.metrics == plain.metrics
    assert [item.change for item in edited.cases] == [item.change for item in plain.cases]


def with_statuses(run: Results) -> Results:
    """The run with the statuses that its scores make."""
    suites = [suite.model_copy(update={"cases": [with_status(item) for item in suite.cases]}) for suite in run.suites]
    return run.model_copy(update={"suites": suites})


def with_status(item: CaseResult) -> CaseResult:
    (only,) = item.iterations
    failed = any(score.passed is False for turn in only.turns for score in turn.scores)
    status = "failed" if failed else "passed"
    return item.model_copy(update={"status": status, "iterations": [only.model_copy(update={"status": status})]})


STEADY = {name: [1.0] * 6 for name in NAMES}


def test_a_new_metric_does_not_leave_the_run_undecided() -> None:
    cases = [item.name for item in steady()]
    before = past(3, metrics={name: {"numeric": "1"} for name in cases})
    prints = {name: {"numeric": "1", "brevity": "2"} for name in cases}
    added = [case(name, scores=[{"numeric": 1.0, "brevity": 0.2}] * 3) for name in cases]
    found = compared(results(*added, metrics=prints), before)
    assert found.verdict == compared(results(*steady(), metrics=dict(prints)), before).verdict
    assert [metric.id for metric in found.metrics] == ["numeric"]
    assert found.notes == []
    assert "brevity" not in found.policy["reason"]


def test_a_changed_metric_is_named_and_leaves_the_run_undecided() -> None:
    before = run(1, STEADY, {"kept": "1", "edited": "2"})
    found = compared(run(9, STEADY, {"kept": "1", "edited": "3"}, "now"), before)
    assert [metric.id for metric in found.metrics] == ["kept"]
    assert found.notes == ["the rules of 6 cases changed since the baseline runs (edited): not compared"]
    assert found.verdict == "unproven"
    assert [(point.what, point.mended_by) for point in found.unproven] == [("metric", "change")]
    assert all([change.id for change in item.metrics] == ["kept"] for item in found.cases)


def test_a_case_without_a_metric_in_common_is_changed() -> None:
    before = run(1, STEADY, {"edited": "2"})
    found = compared(run(9, STEADY, {"kept": "1", "edited": "3"}, "now"), before)
    assert {item.change for item in found.cases} == {"changed"}


def test_runs_without_fingerprints_of_metrics_are_compared() -> None:
    before = base_run(1, [scored("a", 1)])
    found = evidence(results(scored("a", 0), metrics={"a": {"numeric": "1"}}), before)
    assert found.pool == ({"agent.yaml::a": {"numeric": (1.0,)}},)


def test_an_answer_that_failed_without_its_judge_is_a_regression_beside_an_added_metric() -> None:
    low = turn(score("rule", 0.0, None), not_asked("judge"), score("added", 1.0))
    failed = iteration("failed", low).model_copy(update={"score": None})
    before = case("a", "passed", [{"rule": 1.0, "judge": 1.0}])
    after = before.model_copy(update={"status": "failed", "score": None, "iterations": [failed]})
    same = {"rule": "1", "judge": "2", OVERALL: "3"}
    baseline, current = (
        results(item, run_id=run_id, metrics={"a": prints})
        for item, run_id, prints in ((before, "then", same), (after, "now", {**same, "added": "4"}))
    )
    now, then = (
        item.model_copy(update={"suites": [suite.model_copy(update={"threshold": 0.7}) for suite in item.suites]})
        for item in (current, baseline)
    )
    assert [item.change for item in compared(now, then, ComparePolicy(name="any-flip")).cases] == ["regressed"]
