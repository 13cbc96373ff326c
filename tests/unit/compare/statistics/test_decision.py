"""The flow of the gate: suspicion, confirmation, verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.compare.statistics.designs import case, copies, metric, metrics, run

from agenteval.compare.statistics.decision import Decision, final_stage, first_stage
from agenteval.compare.statistics.model import CaseRuns, ErrorCounts, MetricRuns
from agenteval.compare.statistics.parameters import Confirm, GateParameters
from agenteval.compare.statistics.verdict import points

PARAMETERS = GateParameters()
OFF = GateParameters(confirm="off")
BASE = GateParameters(confirm="against-base")
POOL = ("111",) * 5


def decide(*found: MetricRuns, parameters: GateParameters = PARAMETERS) -> Decision:
    return final_stage(first_stage(found, parameters), found, parameters)


def fallen(second: str = "") -> MetricRuns:
    """Every second case fails once now, none did before."""
    broken = copies(15, "110", *POOL, second=second, prefix="broken")
    return metric(*broken, *copies(15, "111", *POOL, second="111" if second else "", prefix="whole"))


def one_broken(reruns: str = "", control: str = "") -> MetricRuns:
    """One case of a hundred fails outright."""
    broken = case("broken", "000", *POOL, second="000", reruns=reruns)
    return metric(replace(broken, control_reruns=run(control)), *copies(99, "111", *POOL, second="111"))


def test_a_suite_that_always_passes_is_unchanged() -> None:
    found = metric(*copies(40, "111", *POOL))
    first = first_stage([found], PARAMETERS)
    assert not first.second_run
    assert not first.reruns
    decision = decide(found)
    assert decision.verdict == "unchanged"
    assert "a drop of more than 5 points is excluded" in decision.reason


def test_a_drop_calls_for_a_second_run_and_blocks_when_that_shows_it_too() -> None:
    first = first_stage([fallen()], PARAMETERS)
    assert first.second_run
    assert not first.beside_base
    decision = decide(fallen("110"))
    assert decision.verdict == "regressed"
    assert decision.reason.startswith("exact: the mean dropped by 16.7 points, from 1.000 to 0.833 (p < 0.001)")
    assert decision.metrics[0].evidence.deciding[0].current_runs == 2


def test_a_missing_second_run_is_unproven() -> None:
    decision = decide(fallen())
    assert decision.verdict == "unproven"
    assert "is missing" in decision.reason


def test_a_second_run_of_only_some_cases_is_as_good_as_none() -> None:
    complete = fallen("110")
    few = replace(complete, cases=tuple(replace(c, second=()) if c.case_id > "whole" else c for c in complete.cases))
    assert decide(few).verdict == "unproven"


def test_a_second_run_that_lost_one_case_in_twenty_is_complete() -> None:
    complete = fallen("110")
    lost = replace(complete, cases=(*complete.cases[:-1], replace(complete.cases[-1], second=())))
    assert decide(lost).verdict == "regressed"
    assert decide(lost).metrics[0].evidence.deciding[0].cases == 29


def test_a_second_run_without_the_drop_clears_it() -> None:
    broken = copies(2, "110", *POOL, second="111", prefix="broken")
    cleared = metric(*broken, *copies(28, "111", *POOL, second="111"))
    assert first_stage([cleared], PARAMETERS).second_run
    assert decide(cleared).verdict == "unchanged"


def test_a_drop_below_a_point_is_none() -> None:
    found = metric(
        *(
            replace(c, second=c.current)
            for c in [
                *copies(8, "11111111111111111110", *("11111111111111111111",) * 5, prefix="broken"),
                *copies(42, "11111111111111111111", *("11111111111111111111",) * 5),
            ]
        )
    )
    decision = decide(found)
    assert decision.metrics[0].evidence.p <= PARAMETERS.alpha_aggregate
    assert decision.verdict == "unchanged"
    assert decide(found, parameters=replace(PARAMETERS, min_effect=0.005)).verdict == "regressed"


def test_runs_that_wander_together_do_not_block() -> None:
    # Every fourth run of the baseline was as bad as this one.
    pool = ("111", "110", "111", "111", "110")
    found = metric(*copies(30, "110", *pool, second="110"))
    decision = decide(found)
    assert decision.metrics[0].evidence.p <= PARAMETERS.alpha_aggregate
    assert decision.metrics[0].evidence.deciding[0].p_chart > PARAMETERS.alpha_chart  # type: ignore[operator]
    assert decision.verdict == "unchanged"


def test_one_broken_case_is_run_again_and_blocks() -> None:
    first = first_stage([one_broken()], PARAMETERS)
    assert set(first.reruns) == {"broken"}
    repeats = first.reruns["broken"]
    assert 3 <= repeats <= 8
    decision = decide(one_broken("0" * repeats))
    assert decision.verdict == "regressed"
    assert decision.regressed_cases == ("broken",)
    assert decision.reason == "exact: 1 case regressed: broken"
    finding = decision.metrics[0].evidence.regressed[0]
    assert finding.rerun_failures == repeats
    assert finding.p is not None
    assert finding.p <= 0.01


@pytest.mark.parametrize(("reruns", "reason"), [("", "missing"), ("00", "missing"), ("11111111", "do not confirm")])
def test_a_case_that_is_not_confirmed_stays_a_suspect(reruns: str, reason: str) -> None:
    decision = decide(one_broken(reruns))
    assert decision.verdict == "unchanged"
    assert decision.regressed_cases == ()
    assert reason in decision.metrics[0].evidence.suspects[0].reason


def test_reruns_beyond_the_plan_do_not_count() -> None:
    repeats = first_stage([one_broken()], PARAMETERS).reruns["broken"]
    assert decide(one_broken("0" * repeats + "1" * 5)).verdict == "regressed"


def test_a_single_baseline_run_proves_no_case() -> None:
    found = metric(case("broken", "000", "111", reruns="00000000"), *copies(29, "111", "111"))
    first = first_stage([found], PARAMETERS)
    decision = decide(found)
    assert not first.reruns
    assert "not re-run" in decision.metrics[0].evidence.suspects[0].reason


def test_at_most_so_many_cases_are_run_again() -> None:
    found = metric(*copies(6, "000", *POOL, prefix="broken"), *copies(24, "111", *POOL))
    first = first_stage([found], replace(PARAMETERS, max_cases=4))
    assert len(first.reruns) == 4
    assert len(first.metrics[0].plan.suspects) == 2


def test_a_deterministic_case_needs_one_flip() -> None:
    found = metric(replace(case("replayed", "0", *"11111"), deterministic=True), *copies(29, "1", *"11111"))
    decision = decide(found, parameters=OFF)
    assert decision.verdict == "regressed"
    assert decision.regressed_cases == ("replayed",)


def test_a_deterministic_case_that_failed_before_is_like_any_other() -> None:
    found = metric(replace(case("replayed", "0", *"10111"), deterministic=True), *copies(29, "1", *"11111"))
    assert decide(found, parameters=OFF).regressed_cases == ()


def test_a_case_in_quarantine_is_in_no_channel() -> None:
    quarantined = [replace(c, quarantined=True) for c in copies(20, "000", *POOL, prefix="flaky")]
    found = metric(*quarantined, *copies(30, "111", *POOL))
    first = first_stage([found], PARAMETERS)
    assert not first.second_run
    assert not first.reruns
    assert decide(found).metrics[0].evidence.first.cases == 30  # type: ignore[union-attr]


def test_without_a_threshold_no_case_is_a_candidate() -> None:
    found = one_broken()
    first = first_stage([replace(found, cases=tuple(replace(c, threshold=None) for c in found.cases))], PARAMETERS)
    assert not first.reruns
    assert not first.metrics[0].plan.suspects


def test_confirm_off_decides_on_one_run() -> None:
    first = first_stage([fallen()], OFF)
    assert not first.second_run
    assert decide(fallen(), parameters=OFF).verdict == "regressed"


def test_confirm_off_leaves_cases_suspects() -> None:
    assert not first_stage([one_broken("00000000")], OFF).reruns
    decision = decide(one_broken("00000000"), parameters=OFF)
    assert decision.regressed_cases == ()
    assert [f.count.case_id for f in decision.metrics[0].evidence.suspects] == ["broken"]


def beside(second: str, control: str) -> MetricRuns:
    """A drop in the first run, then both agents at the same time."""
    found = fallen()
    return replace(
        found,
        cases=tuple(
            replace(c, second=run(second if c.case_id < "c" else "111"), control=run(control)) for c in found.cases
        ),
    )


def test_confirm_base_compares_the_runs_that_were_made_together() -> None:
    first = first_stage([fallen()], BASE)
    assert first.second_run
    assert first.beside_base
    assert decide(beside("110", "111"), parameters=BASE).verdict == "regressed"
    # The base commit does as badly now: the model drifted.
    drifted = decide(beside("110", "110"), parameters=BASE)
    assert drifted.verdict != "regressed"
    assert decide(beside("110", "110")).verdict == "regressed"


def test_confirm_against_base_without_a_control_run_is_unproven() -> None:
    found = fallen("110")
    assert decide(found, parameters=BASE).verdict == "unproven"


def test_confirm_base_proves_a_case_with_one_baseline_run() -> None:
    broken = case("broken", "000", "111", reruns="00000000")
    found = metric(replace(broken, control_reruns=run("11111111")), *copies(29, "111", "111"))
    first = first_stage([found], BASE)
    assert set(first.reruns) == {"broken"}
    assert decide(found, parameters=BASE).regressed_cases == ("broken",)
    failing_too = replace(found, cases=(replace(found.cases[0], control_reruns=run("00000000")), *found.cases[1:]))
    assert decide(failing_too, parameters=BASE).regressed_cases == ()


@pytest.mark.parametrize(
    ("reruns", "control", "regressed"),
    [("00000000", "11111111", True), ("00000000", "00000000", False), ("11111111", "11111111", False)],
)
def test_confirm_both_needs_both_comparisons_of_a_case(reruns: str, control: str, regressed: bool) -> None:
    decision = decide(one_broken(reruns, control), parameters=GateParameters(confirm="both"))
    assert (decision.verdict == "regressed") is regressed


def test_confirm_both_without_a_control_run_is_unproven() -> None:
    assert decide(fallen("110"), parameters=GateParameters(confirm="both")).verdict == "unproven"


@pytest.mark.parametrize(
    ("second", "control", "regressed"), [("110", "111", True), ("110", "110", False), ("111", "111", False)]
)
def test_confirm_both_needs_both_comparisons_of_the_mean(second: str, control: str, regressed: bool) -> None:
    decision = decide(beside(second, control), parameters=GateParameters(confirm="both"))
    assert (decision.verdict == "regressed") is regressed


def test_improved() -> None:
    found = metric(*copies(15, "111", *("110",) * 5, prefix="better"), *copies(15, "111", *POOL))
    decision = decide(found)
    assert decision.verdict == "improved"
    assert "the mean rose by 16.7 points" in decision.reason


def test_few_cases_are_unchanged_with_what_would_be_needed() -> None:
    decision = decide(metric(*copies(4, "111", *POOL)))
    assert decision.verdict == "unchanged"
    expected = "only 4 independent cases were compared; a change of the mean can be detected from 5 on"
    assert decision.reason == f"exact: {expected}"


def test_unchanged_states_the_drop_that_is_excluded_and_the_detectable_drop() -> None:
    decision = decide(metric(*copies(6, "1", *"11111")))
    assert decision.verdict == "unchanged"
    low = decision.metrics[0].evidence.estimate.interval[0]  # type: ignore[union-attr]
    assert f"a drop of more than {points(low)} is excluded" in decision.reason
    assert low < -PARAMETERS.tolerance
    assert "would probably have been detected" in decision.reason


def test_runs_older_than_the_window_are_as_if_they_had_never_been() -> None:
    found = one_broken("00000000")
    older = replace(found, cases=tuple(replace(c, baseline=(run("000"), *c.baseline)) for c in found.cases))
    parameters = replace(PARAMETERS, window=len(POOL))
    assert first_stage([older], parameters) == first_stage([found], parameters)
    assert decide(older, parameters=parameters) == decide(found, parameters=parameters)
    assert first_stage([older], PARAMETERS) != first_stage([found], PARAMETERS)


@pytest.mark.parametrize("cases", [[], [case("new", "1", "")], [case("gone", "", "1")]])
def test_nothing_to_compare_is_unchanged(cases: list[CaseRuns]) -> None:
    decision = decide(metric(*cases))
    assert decision.verdict == "unchanged"
    assert "no case has scores" in decision.reason


def test_no_metric_is_unchanged() -> None:
    assert decide().verdict == "unchanged"


def test_many_errors_are_unproven() -> None:
    errors = ErrorCounts(current=40, current_iterations=120, lost_cases=0, cases=40)
    decision = decide(replace(metric(*copies(40, "111", *POOL)), errors=errors))
    assert decision.verdict == "unproven"
    assert "33% of the iterations were lost" in decision.reason


def test_errors_do_not_hide_a_regression() -> None:
    errors = ErrorCounts(current=40, current_iterations=120, lost_cases=0, cases=40)
    assert decide(replace(fallen("110"), errors=errors)).verdict == "regressed"


def test_the_worst_gating_metric_decides() -> None:
    good = replace(metric(*copies(40, "111", *POOL)), metric="good")
    decision = decide(good, fallen("110"))
    assert decision.verdict == "regressed"
    assert [found.verdict for found in decision.metrics] == ["unchanged", "regressed"]
    assert decision.reason.startswith("exact: ")


def test_a_metric_that_does_not_gate_is_reported_from_one_run() -> None:
    shown = replace(fallen(), metric="shown", gating=False)
    gating = metric(*copies(40, "111", *POOL))
    first = first_stage([gating, shown], PARAMETERS)
    assert not first.second_run
    decision = decide(gating, shown)
    assert decision.verdict == "unchanged"
    assert decision.metrics[1].verdict == "regressed"


def test_several_metrics_share_the_error_rate() -> None:
    # p of about 0.0156 alone: 6 of 6 cases that moved fell, one baseline run.
    def weak(name: str) -> MetricRuns:
        moved = copies(6, "0", "1", second="0", prefix="moved")
        return replace(metric(*moved, *copies(30, "1", "1", second="1")), metric=name)

    def calm(name: str) -> MetricRuns:
        return replace(metric(*copies(36, "1", "1", second="1")), metric=name)

    alone = decide(weak("a"))
    p = alone.metrics[0].evidence.p
    assert 0 < p < 0.02
    crowd = [calm(f"calm {n}") for n in range(int(0.02 / p) + 1)]
    assert alone.verdict == "regressed"
    assert decide(weak("a"), *crowd).metrics[0].verdict != "regressed"


def test_several_metrics_share_the_error_rate_of_cases_and_of_improvements() -> None:
    shown = replace(one_broken(), metric="shown", gating=False)
    first = first_stage([one_broken(), replace(one_broken(), metric="other"), shown], PARAMETERS)
    assert [stage.plan.alpha for stage in first.metrics] == [0.005, 0.005, 0.01]
    # p of a rise about 0.03: less than 0.04, more than half of it.
    better = metric(*copies(5, "1", "0"), *copies(40, "1", "1", prefix="same"))
    p = decide(better).metrics[0].evidence.estimate.p_high  # type: ignore[union-attr]
    assert 0.04 / 4 < p <= 0.04
    assert decide(better).verdict == "improved"
    crowd = [replace(better, metric=name) for name in "abc"]
    assert decide(better, *crowd).metrics[0].verdict != "improved"


def test_reruns_of_two_metrics_are_shared() -> None:
    first = first_stage([one_broken(), replace(one_broken(), metric="other")], PARAMETERS)
    assert first.reruns["broken"] == max(stage.plan.repeats for stage in first.metrics)


def test_the_stages_must_belong_together() -> None:
    first = first_stage([fallen()], PARAMETERS)
    with pytest.raises(ValueError, match="not those of the first stage"):
        final_stage(first, [replace(fallen(), metric="other")], PARAMETERS)


def test_metrics_have_different_names() -> None:
    with pytest.raises(ValueError, match="same id"):
        first_stage([fallen(), fallen()], PARAMETERS)


@settings(deadline=None)
@given(
    found=metrics(most_cases=8, clusters=True, losses=True),
    order=st.randoms(use_true_random=False),
    confirm=st.sampled_from(["rerun", "off"]),
)
def test_the_order_of_cases_and_metrics_does_not_matter(found: MetricRuns, order: object, confirm: Confirm) -> None:
    parameters = GateParameters(confirm=confirm, exact_limit=64, draws=199)
    shuffled = list(found.cases)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    other = replace(found, metric="other", cases=tuple(shuffled))
    one, two = decide(found, other, parameters=parameters), decide(other, found, parameters=parameters)
    assert one.verdict == two.verdict
    assert one.metrics == tuple(reversed(two.metrics))
    assert one.metrics[0].evidence == one.metrics[1].evidence


@settings(max_examples=200, deadline=None)
@given(
    found=metrics(most_cases=8, most_runs=6, clusters=True), data=st.data(), confirm=st.sampled_from(["rerun", "off"])
)
def test_one_more_failure_never_lifts_a_block_or_makes_an_improvement(
    found: MetricRuns, data: st.DataObject, confirm: Confirm
) -> None:
    # The error rates of the means are wide enough for such small suites; cases cannot be proved.
    parameters = GateParameters(
        confirm=confirm,
        screen=0.5,
        alpha_aggregate=0.3,
        alpha_single=0.3,
        alpha_case=0.0,
        min_units=1,
        exact_limit=256,
        draws=199,
    )
    passed = [c for c in found.cases if 1.0 in c.current]
    assume(passed)
    chosen = data.draw(st.sampled_from(passed))
    scores = list(chosen.current)
    scores[scores.index(1.0)] = 0.0
    failed = replace(chosen, current=tuple(scores))
    worse = replace(found, cases=tuple(failed if c is chosen else c for c in found.cases))
    before, after = decide(found, parameters=parameters), decide(worse, parameters=parameters)
    if before.verdict == "regressed":
        assert after.verdict == "regressed"
    if after.verdict == "improved":
        assert before.verdict == "improved"
