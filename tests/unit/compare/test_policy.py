"""The simple rules, and quarantine entries."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.gate_runs import TODAY, case_named, compared, policy, scored
from tests.unit.runs import SUITE, case, iteration, results, score, turn

from agenteval.compare.gate import GatePolicy, decide_gate
from agenteval.compare.policy import ComparePolicy, Quarantine, quarantine_warnings
from agenteval.results.case import CaseResult
from agenteval.results.model import Results

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=5)
REGRESSIONS = GatePolicy(frozenset({"regressions"}))


def run(*scores: float, run_id: str = "now") -> Results:
    return results(*(scored(str(number), value) for number, value in enumerate(scores)), run_id=run_id)


def informational(name: str, value: float) -> CaseResult:
    only = turn(score("bleu", value, None), score("numeric"))
    return case(name).model_copy(update={"iterations": [iteration("passed", only)]})


def quarantine(case_name: str, until: date = TODAY) -> tuple[Quarantine, ...]:
    return (Quarantine(case_name, until),)


# mean-drop


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1, 1), (1, 0), "regressed"),
        ((1, 0), (0, 1), "unchanged"),
        ((1, 0), (1, 1), "improved"),
        ((0.6, 0.6), (0.58, 0.58), "unchanged"),
        ((0.6, 0.6), (0.5, 0.5), "regressed"),
    ],
)
def test_mean_drop_looks_at_means_alone(before: tuple[float, ...], after: tuple[float, ...], verdict: str) -> None:
    comparison = compared(run(*after), run(*before), policy(name="mean-drop"))
    assert comparison.verdict == verdict
    assert [metric.verdict for metric in comparison.metrics] == [verdict]


def test_the_gate_names_the_mean_where_that_is_the_rule() -> None:
    now, then = run(1, 0), run(1, 1, run_id="then")
    comparison = compared(now, then, policy(name="mean-drop"))
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), REGRESSIONS)
    assert gate.headline == "the mean of numeric dropped"


@given(SCORES, SCORES)
def test_a_swapped_comparison_has_the_opposite_result(before: list[float], after: list[float]) -> None:
    opposite = {"regressed": "improved", "improved": "regressed", "unchanged": "unchanged"}
    there = compared(run(*after), run(*before), policy(name="mean-drop")).verdict
    back = compared(run(*before), run(*after), policy(name="mean-drop")).verdict
    # A run with fewer cases than its baseline proves too little.
    if "unproven" not in {there, back}:
        assert back == opposite[there]


# threshold


@pytest.mark.parametrize(
    ("scores", "least", "verdict"),
    [
        ((1, 1, 0, 0), 0.5, "unchanged"),
        ((1, 1, 0, 0), 0.51, "regressed"),
        ((0, 0), 0.0, "unchanged"),
        ((1, 1, 1, 1, 1, 1, 1, 0, 0, 0), 0.7, "unchanged"),
    ],
)
def test_threshold_looks_at_this_run_alone(scores: tuple[float, ...], least: float, verdict: str) -> None:
    for before in (run(*scores), run(*(1 for _ in scores)), run(*(0 for _ in scores))):
        assert compared(run(*scores), before, policy(name="threshold", min_pass_rate=least)).verdict == verdict


def test_the_gate_names_the_share_where_that_is_the_rule() -> None:
    now, then = run(1, 0, 0), run(1, 1, 1, run_id="then")
    comparison = compared(now, then, policy(name="threshold", min_pass_rate=0.9))
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), REGRESSIONS)
    assert (gate.exit_status, gate.headline) == (1, "33.3% of the cases passed, 90.0% are needed")


def test_threshold_without_any_verdict_is_unchanged() -> None:
    now = results(case("a", "skipped", [{}]))
    assert compared(now, now, policy(name="threshold", min_pass_rate=0.5)).verdict == "unchanged"


@given(SCORES, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_never_passes_more(scores: list[float], one: float, other: float) -> None:
    now = run(*scores)
    low, high = (
        compared(now, now, policy(name="threshold", min_pass_rate=least)).verdict for least in sorted((one, other))
    )
    assert low == "unchanged" or high == "regressed"


# Which metrics count


@pytest.mark.parametrize("name", ["any-flip", "mean-drop"])
@pytest.mark.parametrize(
    ("gating", "verdict"), [({}, "unchanged"), ({"bleu": True}, "regressed"), ({"bleu": False}, "unchanged")]
)
def test_a_metric_without_a_verdict_gates_only_if_configured(
    name: str, gating: dict[str, bool], verdict: str
) -> None:
    now, then = results(informational("a", 0.2)), results(informational("a", 0.9))
    comparison = compared(now, then, policy(name=name, gating=gating))
    assert comparison.verdict == verdict
    (bleu,) = (metric for metric in comparison.metrics if metric.id == "bleu")
    assert (bleu.verdict, bleu.gating) == ("regressed", bool(gating.get("bleu")))


def test_a_metric_that_shall_not_count_does_not() -> None:
    now, then = run(0.6), run(0.9)
    assert compared(now, then, policy(name="any-flip")).verdict == "regressed"
    assert compared(now, then, policy(name="any-flip", gating={"numeric": False})).verdict == "unchanged"


# Quarantine


@pytest.mark.parametrize(("rule", "least"), [("any-flip", None), ("mean-drop", None), ("threshold", 1.0)])
@pytest.mark.parametrize(("until", "verdict"), [(TODAY, "unchanged"), (TODAY - timedelta(days=1), "regressed")])
def test_quarantined_cases_are_shown_and_do_not_count(
    rule: str, least: float | None, until: date, verdict: str
) -> None:
    now, then = run(1, 0), run(1, 1, run_id="then")
    chosen = policy(name=rule, min_pass_rate=least, quarantine=quarantine("1", until))
    comparison = compared(now, then, chosen)
    assert comparison.verdict == verdict
    found = case_named(comparison, "1")
    assert found.notes == (["quarantined"] if verdict == "unchanged" else [])
    assert (found.status_before, found.status_after) == ("passed", "failed")


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [
        ("chat", True),
        (f"{SUITE}::chat", True),
        ("ch*", True),
        (f"{SUITE}::*", True),
        ("cha", False),
        ("Chat", False),
        ("other.yaml::*", False),
    ],
)
def test_quarantine_names_cases_by_name_or_id(pattern: str, holds: bool) -> None:
    assert Quarantine(pattern, TODAY).holds(f"{SUITE}::chat", "chat", TODAY) is holds


def test_quarantine_lasts_through_its_last_day() -> None:
    entry = Quarantine("a", TODAY)
    assert entry.holds("a", "a", TODAY)
    assert not entry.holds("a", "a", TODAY + timedelta(days=1))


def test_what_to_tidy_up() -> None:
    entries = (
        Quarantine("a", TODAY),
        Quarantine("b*", TODAY - timedelta(days=1)),
        Quarantine("gone", TODAY),
    )
    assert quarantine_warnings(entries, {("s::a", "a"), ("s::b1", "b1")}, TODAY) == (
        f"the quarantine of 'b*' ended on {TODAY - timedelta(days=1)}; its cases count again",
        "the quarantine of 'gone' matches no case",
    )


def test_a_gate_whose_cases_are_all_in_quarantine_checked_nothing() -> None:
    gate = decide_gate(run(1, 0), GatePolicy(quarantine=quarantine("*")), TODAY)
    assert (gate.exit_status, gate.headline) == (1, "nothing was checked: every case is in quarantine")


def test_failures_and_errors_in_quarantine_do_not_fail_the_gate() -> None:
    now = results(scored("fine", 1), scored("bad", 0), case("broken", "error", []))
    entries = (*quarantine("bad"), *quarantine("broken"))
    assert decide_gate(now, GatePolicy(quarantine=entries), TODAY).exit_status == 0
    assert decide_gate(now, GatePolicy(quarantine=entries), TODAY + timedelta(days=1)).exit_status == 3


# Which answers are always the same


def test_recorded_answers_are_deterministic_without_being_declared() -> None:
    recorded = ComparePolicy(recorded=frozenset({"a"}))
    assert [recorded.is_deterministic(case_id) for case_id in "ab"] == [True, False]
    assert ComparePolicy(deterministic=True).is_deterministic("b")
