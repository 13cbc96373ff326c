"""A case that was scored in the baseline and has no score now is named, and leaves the run unproven."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.compare.gate_runs import TODAY
from tests.unit.runs import broken, case, iteration, not_asked, results, score, skipped, turn

from agenteval.compare.comparer import Comparer
from agenteval.compare.gate import GatePolicy, decide_gate
from agenteval.compare.policy import ComparePolicy, Quarantine
from agenteval.results.case import CaseResult, CaseStatus, NotAsked, NotAskedCause, TurnResult
from agenteval.results.model import Results
from agenteval.results.rollup import summarise
from agenteval.results.verdict import MendedBy

PLAIN = ComparePolicy(confirm="off")
ANY_FLIP = ComparePolicy(name="any-flip")
SCORED = turn(score())


def limited(cause: NotAskedCause) -> TurnResult:
    return turn(response=None, error="not run", not_asked=NotAsked(cause=cause, limit="limit of 1 call"))


def cases(*turns: TurnResult, status: CaseStatus = "passed") -> list[CaseResult]:
    """One case for each turn."""
    return [
        case(f"c{number}", status if item is not SCORED else "passed").model_copy(
            update={"iterations": [iteration(status if item is not SCORED else "passed", item)]}
        )
        for number, item in enumerate(turns)
    ]


def compared(now: Results, then: Results, policy: ComparePolicy = PLAIN) -> Results:
    known = {item.id for _, item in now.cases()}
    return now.model_copy(update={"comparison": Comparer(now, then, known, policy, TODAY).decide()})


def lost(now: Results, then: Results, policy: ComparePolicy = PLAIN) -> list[tuple[str, str]]:
    comparison = compared(now, then, policy).comparison
    assert comparison is not None
    assert (comparison.verdict == "unproven") is bool(comparison.unproven)
    return [(point.text, point.mended_by) for point in comparison.unproven if point.what == "scores"]


@pytest.mark.parametrize(
    ("status", "now", "why", "mended_by"),
    [
        ("error", turn(response=None, error="busy", unavailable=True), "the agent could not be reached", "outside"),
        ("error", turn(broken()), "the metric ended in an error", "outside"),
        ("skipped", turn(skipped()), "the metric does not apply any more", "change"),
        ("passed", turn(score("f1"), skipped()), "the metric does not apply any more", "change"),
        ("passed", turn(score("f1"), broken()), "the metric ended in an error", "outside"),
        ("passed", turn(score("f1", 1.0)), "the metric does not apply any more", "change"),
        ("skipped", turn(not_asked("numeric")), "limits of the suite left more cases to no judge", "change"),
        ("skipped", turn(not_asked("numeric", "budget")), None, None),
        ("error", limited("time"), None, None),
        ("error", limited("budget"), None, None),
    ],
)
def test_every_way_to_lose_a_score(
    status: CaseStatus, now: TurnResult, why: str | None, mended_by: MendedBy | None
) -> None:
    then = results(*cases(SCORED, SCORED, SCORED), run_id="then")
    one = results(*cases(now, SCORED, SCORED, status=status))
    every = results(*cases(now, now, now, status=status))
    if why is None:
        assert lost(one, then) == lost(every, then) == []
        return
    assert lost(one, then) == [(f"1 of 3 cases has no score of 'numeric' any more ({why}): c0", mended_by)]
    assert lost(every, then) == [(f"3 of 3 cases have no score of 'numeric' any more ({why}): c0, c1, c2", mended_by)]
    gate = decide_gate(compared(one, then), GatePolicy(frozenset({"unproven"}), max_error_rate=1))
    assert (gate.verdict, gate.exit_status) == ("unproven", 1 if mended_by == "change" else 3)
    assert any("no score of 'numeric' any more" in reason for reason in gate.reasons)


def test_a_failure_of_the_agent_is_a_score_of_0_for_the_statistics_and_lost_for_a_simple_rule() -> None:
    crash = turn(response=None, error="crash")
    then = results(*cases(SCORED, SCORED, SCORED), run_id="then")
    now = results(*cases(crash, SCORED, SCORED, status="error"))
    text = "1 of 3 cases has no score of 'numeric' any more (the agent failed): c0"
    assert lost(now, then) == []
    assert lost(now, then, ANY_FLIP) == [(text, "change")]


@pytest.mark.parametrize(
    ("question", "metrics", "is_lost"),
    [
        # The only metric lost its expected value, or one of two.
        ("same", {"numeric": "2"}, True),
        ("same", {"numeric": "2", "f1": "1"}, True),
        ("other", {"numeric": "1"}, True),
        ("other", {"numeric": "2", "f1": "2"}, True),
        # The case does not ask for the metric any more: removed metrics are counted elsewhere.
        ("same", {"f1": "1"}, False),
    ],
)
def test_a_score_is_missed_whatever_changed_in_its_case(
    question: str, metrics: Mapping[str, str], is_lost: bool
) -> None:
    asked = {f"c{number}": {"numeric": "1", "f1": "1"} for number in range(10)}
    then = results(*cases(*[SCORED] * 10), run_id="then", metrics=asked)
    changed = cases(turn(skipped()), *[SCORED] * 9, status="skipped")
    now = results(*changed, fingerprints={"c0": question}, metrics={**asked, "c0": metrics})
    text = "1 of 10 cases has no score of 'numeric' any more (the metric does not apply any more): c0"
    assert lost(now, then) == ([(text, "change")] if is_lost else [])
    gate = decide_gate(compared(now, then), GatePolicy())
    assert (gate.verdict, gate.exit_status) == (("unproven", 1) if is_lost else ("passed", 0))


def test_a_changed_case_with_a_score_is_not_missed() -> None:
    asked = {f"c{number}": {"numeric": "1"} for number in range(10)}
    then = results(*cases(*[SCORED] * 10), run_id="then", metrics=asked)
    now = results(*cases(*[SCORED] * 10), fingerprints={"c0": "other"}, metrics={**asked, "c1": {"numeric": "2"}})
    assert lost(now, then) == []


def test_metrics_with_the_same_cases_are_one_point() -> None:
    both = turn(score(), score("f1"))
    crash = turn(response=None, error="crash")
    then = results(*cases(both, both), run_id="then")
    text = "1 of 2 cases has no score of 'f1', 'numeric' any more (the agent failed): c1"
    assert lost(results(*cases(both, crash, status="error")), then, ANY_FLIP) == [(text, "change")]


def test_only_what_gates_is_missed() -> None:
    now, then = results(*cases(turn(skipped()))), results(*cases(SCORED), run_id="then")
    held = ComparePolicy(confirm="off", quarantine=(Quarantine("c0", TODAY),))
    assert len(lost(now, then)) == 1
    assert lost(now, then, held) == []
    assert lost(now, then, ComparePolicy(confirm="off", gating={"numeric": False})) == []
    informational = results(*cases(turn(score(passed=None))), run_id="then")
    assert lost(now, informational) == []
    comparison = compared(now, informational).comparison
    assert comparison is not None
    assert comparison.notes == ["numeric scored cases of the baseline and has no score in this run"]


def test_one_scored_iteration_is_enough() -> None:
    crash = iteration("error", turn(response=None, error="crash"), index=1)
    then = results(*cases(SCORED), run_id="then")
    partly = case("c0").model_copy(update={"iterations": [iteration("passed", SCORED), crash]})
    assert lost(results(partly), then) == []


@pytest.mark.parametrize(("judged", "is_lost"), [(5, False), (4, False), (3, True), (1, True)])
def test_a_sample_may_draw_other_cases_but_not_clearly_fewer(judged: int, is_lost: bool) -> None:
    left_out = turn(not_asked("numeric", "sample"))
    then = results(*cases(*[SCORED] * 5, *[left_out] * 5), run_id="then")
    now = results(*cases(*[left_out] * 5, *[SCORED] * judged, *[left_out] * (5 - judged)))
    assert bool(lost(now, then)) is is_lost


def test_a_run_of_the_base_branch_is_told_only_what_broke_outside() -> None:
    def merged(run: Results, workflow: str) -> Results:
        own = run.run.model_copy(update={"workflow_run_id": workflow, "ref": "refs/heads/main"})
        return run.model_copy(update={"run": own})

    then = merged(results(*cases(SCORED, SCORED), run_id="then"), "6")
    now = merged(results(*cases(turn(score("f1"), skipped()), turn(score("f1"), broken()))), "7")
    assert [mended_by for _, mended_by in lost(now, then)] == ["outside"]


def test_an_aggregate_is_missed_like_a_metric() -> None:
    def weighed(run: Results) -> Results:
        suites = [suite.model_copy(update={"threshold": 0.5}) for suite in run.suites]
        return run.model_copy(update={"suites": suites, "pool": []})

    then = weighed(results(*cases(turn(score(passed=None))), run_id="then"))
    gone = cases(turn(broken()), status="error")[0].model_copy(update={"score": None})
    now = weighed(results(gone))
    assert lost(now, then) == [
        ("1 of 1 case has no score of 'score' any more (the metric ended in an error): c0", "outside")
    ]


def test_metrics_of_other_tools_need_no_counterpart() -> None:
    then = results(*cases(turn(score(), score("llm-rubric"))), run_id="then")
    then = then.model_copy(update={"tool": then.tool.model_copy(update={"name": "promptfoo"}), "pool": []})
    assert lost(results(*cases(SCORED)), then) == []
    broke = results(*cases(turn(broken()), status="error"))
    assert [mended_by for _, mended_by in lost(broke, then)] == ["outside"]
    assert summarise([item for _, item in broke.cases()]).metrics.keys() == {"numeric"}
