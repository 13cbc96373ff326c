"""What the statistics say of a run, in the words of results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.compare.gate_runs import (
    TODAY,
    base_run,
    case_named,
    compared,
    comparer,
    history,
    past,
    policy,
    scored,
    steady,
)
from tests.unit.runs import SUITE, broken, case, iteration, results, score, turn

from agenteval.compare.gate import DEFAULT_FAIL_ON, GatePolicy, decide_gate
from agenteval.compare.policy import ComparePolicy, Quarantine
from agenteval.compare.samples import Confirmation, run_scores
from agenteval.results.case import CaseResult, Usage
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

MANY = 40
BAD = (0.0, 0.0, 0.0)


def worse_in(count: int, total: int = MANY) -> list[CaseResult]:
    """A suite in which the first so many cases always fail."""
    return steady(total, **{f"c{number:02}": BAD for number in range(count)})


def again(cases: Sequence[CaseResult]) -> Mapping[str, Mapping[str, tuple[float, ...]]]:
    """The scores of a run, as confirmation runs have them."""
    return run_scores(results(*cases).cases())


def repeated(name: str, *scores: float) -> Mapping[str, Mapping[str, tuple[float, ...]]]:
    """The scores of one case that was run again."""
    return again([scored(name, *scores)])


def confirmed(
    now: Results, then: Results, confirmation: Confirmation, chosen: ComparePolicy | None = None
) -> Comparison:
    return comparer(now, then, chosen).decide(confirmation)


# Verdicts


def test_nothing_changed() -> None:
    comparison = compared(results(*steady(MANY)), past(3, steady(MANY)))
    assert comparison.verdict == "unchanged"
    (metric,) = comparison.metrics
    assert (metric.baseline, metric.current, metric.difference, metric.verdict) == (1, 1, 0, "unchanged")
    assert (metric.n, metric.units, metric.runs, metric.iterations) == (MANY, MANY, 3, 3)
    assert metric.interval is not None
    assert metric.interval[0] < 0 < metric.interval[1]
    assert metric.p == 1
    assert metric.detectable_drop is not None
    assert metric.reason.startswith("a drop of more than 5 points is excluded")
    assert comparison.policy["name"] == "statistics"
    assert (comparison.policy["second_run"], comparison.policy["reruns"]) == (False, {})
    assert comparison.policy["parameters"]["alpha_aggregate"] == 0.02


def test_a_fall_that_the_second_run_repeats_is_a_regression() -> None:
    now, then = results(*worse_in(10)), past(3, steady(MANY))
    first = comparer(now, then).first_stage
    assert first is not None
    assert first.second_run
    comparison = confirmed(now, then, Confirmation(second=again(worse_in(10))))
    assert comparison.verdict == "regressed"
    assert comparison.policy["confirmed"] is False  # the single cases were not run again
    (metric,) = comparison.metrics
    assert metric.verdict == "regressed"
    assert metric.reason.startswith("the mean dropped by 25 points, from 1.000 to 0.750 (p < 0.001)")
    assert metric.p is not None
    assert metric.p < 0.001
    assert [item.name for item in comparison.cases if item.change == "regressed"] == [f"c{n:02}" for n in range(10)]


def test_a_fall_that_the_second_run_does_not_repeat_is_none() -> None:
    unlucky = {f"c{number:02}": (1.0, 0.0, 1.0) for number in range(5)}
    now, then = results(*steady(MANY, **unlucky)), past(1, steady(MANY))
    first = comparer(now, then).first_stage
    assert first is not None
    assert first.second_run
    comparison = confirmed(now, then, Confirmation(second=again(steady(MANY))))
    assert comparison.verdict != "regressed"
    assert not [item for item in comparison.cases if item.change == "regressed"]


def test_a_drop_without_a_second_run_is_unproven_with_the_reason() -> None:
    comparison = compared(results(*worse_in(10)), past(1, steady(MANY)))
    assert comparison.verdict == "unproven"
    assert [(point.what, point.mended_by) for point in comparison.unproven] == [("confirmation", "outside")]
    assert comparison.policy["second_run"] is True
    assert comparison.policy["confirmed"] is False
    wanted = "a second run of the suite would confirm or clear the suspected regression"
    assert comparison.policy["reason"].endswith(wanted)
    assert wanted in comparison.notes


def test_why_a_confirmation_is_missing() -> None:
    now, then = results(*worse_in(10)), past(1, steady(MANY))
    comparison = confirmed(now, then, Confirmation(not_run_because="the LLM budget is exhausted"))
    assert comparison.verdict == "unproven"
    assert comparison.policy["reason"].endswith("; the LLM budget is exhausted")
    assert "the LLM budget is exhausted" in comparison.notes


def test_half_a_second_run_confirms_nothing() -> None:
    now, then = results(*worse_in(10)), past(1, steady(MANY))
    comparison = confirmed(now, then, Confirmation(second=again(worse_in(10)[:20])))
    assert (comparison.verdict, comparison.policy["confirmed"]) == ("unproven", False)


def test_with_confirm_off_one_run_decides() -> None:
    comparison = compared(results(*worse_in(10)), past(3, steady(MANY)), policy({"confirm": "off"}))
    assert comparison.verdict == "regressed"
    assert not [note for note in comparison.notes if "second run" in note]


def test_a_rise_is_an_improvement_and_never_fails_the_gate() -> None:
    now, then = results(*steady(MANY)), past(3, worse_in(10))
    comparison = compared(now, then)
    assert comparison.verdict == "improved"
    (metric,) = comparison.metrics
    assert metric.p is not None
    assert metric.p <= 0.04
    assert decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy()).passed


def test_a_small_suite_gets_its_detectable_drop() -> None:
    comparison = compared(results(*steady(10)), past(1, steady(10)))
    (metric,) = comparison.metrics
    assert comparison.verdict == "unchanged"
    assert "is excluded" in metric.reason
    assert "would probably have been detected" in metric.reason
    assert metric.detectable_drop is not None
    assert metric.detectable_drop > 0.05
    assert metric.advice is not None
    assert "would detect a drop of" in metric.advice


def test_a_sufficiently_sensitive_suite_gets_no_advice() -> None:
    (metric,) = compared(results(*steady(200)), past(5, steady(200))).metrics
    assert metric.detectable_drop is not None
    assert metric.detectable_drop <= 0.05
    assert metric.advice is None


def test_too_few_cases() -> None:
    comparison = compared(results(*steady(4)), past(3, steady(4)))
    assert comparison.verdict == "unchanged"
    expected = "only 4 independent cases were compared; a change of the mean can be detected from 5 on"
    assert comparison.policy["reason"] == f"numeric: {expected}"


def test_nothing_in_common() -> None:
    comparison = compared(results(scored("new", 1)), past(2, [scored("old", 1)]))
    assert (comparison.verdict, comparison.metrics) == ("unproven", [])
    assert [item.change for item in comparison.cases] == ["new", "removed"]


def test_the_same_data_get_the_same_verdict() -> None:
    noisy = {f"c{number:02}": (1.0, float(number % 2), float(number % 3 == 0)) for number in range(20)}
    now, then = results(*steady(MANY, **noisy)), past(4, steady(MANY, c01=(1.0, 0.0, 1.0)))
    backwards = results(*reversed(steady(MANY, **noisy)))
    one, two, other = compared(now, then), compared(now, then), compared(backwards, then)
    assert one == two
    assert one.metrics == other.metrics


# Single cases


def test_a_broken_case_is_run_again_and_named() -> None:
    now, then = results(*worse_in(1)), past(3, steady(MANY))
    first = comparer(now, then).first_stage
    assert first is not None
    assert first.reruns.keys() == {f"{SUITE}::c00"}
    repeats = first.reruns[f"{SUITE}::c00"]
    comparison = confirmed(now, then, Confirmation(reruns=repeated("c00", *[0.0] * repeats)))
    assert comparison.verdict == "regressed"
    assert comparison.policy["confirmed"] is True
    assert comparison.policy["reason"] == "numeric: 1 case regressed: c00"
    assert comparison.policy["regressed_cases"] == [f"{SUITE}::c00"]
    assert comparison.policy["moved_means"] == []
    found = case_named(comparison, "c00")
    assert (found.change, found.notes) == ("regressed", [])
    assert found.history is not None
    assert (found.history.runs, found.history.iterations, found.history.pass_rate) == (3, 9, 1.0)
    assert [item.name for item in comparison.cases if item.change == "regressed"] == ["c00"]


def test_a_recovered_case_is_only_a_suspect() -> None:
    now, then = results(*worse_in(1)), past(3, steady(MANY))
    comparison = confirmed(now, then, Confirmation(reruns=repeated("c00", *[1.0] * 8)))
    assert comparison.verdict != "regressed"
    found = case_named(comparison, "c00")
    assert (found.change, found.notes) == ("unchanged", ["suspect"])
    assert (found.status_before, found.status_after) == ("passed", "failed")
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy(frozenset({"regressions"})))
    assert gate.passed


def test_a_case_without_reruns_is_a_suspect_with_the_required_iterations() -> None:
    comparison = compared(results(*worse_in(1)), past(3, steady(MANY)))
    assert case_named(comparison, "c00").notes == ["suspect"]
    (note,) = comparison.notes
    assert note.endswith("further iterations of 1 case would confirm or clear the suspected regressions")


def test_a_single_baseline_run_proves_no_single_case() -> None:
    now, then = results(*worse_in(1)), past(1, steady(MANY))
    first = comparer(now, then).first_stage
    assert first is not None
    assert first.reruns == {}
    comparison = compared(now, then)
    assert case_named(comparison, "c00").notes == ["suspect"]
    assert comparison.notes == []


def test_a_case_that_always_wavered_is_flaky_and_tells_its_history() -> None:
    wavering = {"c00": (1.0, 0.0, 1.0)}
    comparison = compared(results(*steady(MANY, **wavering)), past(4, steady(MANY, **wavering)))
    found = case_named(comparison, "c00")
    assert found.notes == ["flaky"]
    assert found.history is not None
    assert (found.history.runs, found.history.iterations) == (4, 12)
    assert found.history.pass_rate == pytest.approx(2 / 3)
    assert case_named(comparison, "c01").history is None


def test_where_answers_are_always_the_same_one_flip_is_proof() -> None:
    now, then = results(*steady(MANY, c00=(1.0, 1.0, 0.0))), past(1, steady(MANY))
    for chosen in (policy(deterministic=True), policy(recorded=frozenset({f"{SUITE}::c00"}))):
        comparison = compared(now, then, chosen)
        assert comparison.verdict == "regressed"
        assert case_named(comparison, "c00").change == "regressed"
    assert compared(now, then, policy(recorded=frozenset({f"{SUITE}::c01"}))).verdict != "regressed"


# The control beside it


def test_against_the_base_commit_a_drift_of_both_is_none() -> None:
    now, then = results(*worse_in(10)), past(3, steady(MANY))
    chosen = policy({"confirm": "against-base"})
    drifted = Confirmation(second=again(worse_in(10)), control=again(worse_in(10)))
    assert confirmed(now, then, drifted, chosen).verdict != "regressed"
    fallen = Confirmation(second=again(worse_in(10)), control=again(steady(MANY)))
    assert confirmed(now, then, fallen, chosen).verdict == "regressed"


@pytest.mark.parametrize("confirm", ["against-base", "both"])
def test_without_a_control_nothing_is_confirmed_against_it(confirm: str) -> None:
    now, then = results(*worse_in(10)), past(3, steady(MANY))
    comparison = confirmed(now, then, Confirmation(second=again(worse_in(10))), policy({"confirm": confirm}))
    assert (comparison.verdict, comparison.policy["confirmed"]) == ("unproven", False)


# Quarantine


@pytest.mark.parametrize(("days", "counts"), [(0, False), (-1, True)])
def test_a_case_in_quarantine_does_not_count_until_its_day(days: int, counts: bool) -> None:
    entry = Quarantine("c00", TODAY + timedelta(days=days))
    now, then = results(*worse_in(1)), past(3, steady(MANY))
    chosen = policy(quarantine=(entry,))
    first = comparer(now, then, chosen).first_stage
    assert first is not None
    assert bool(first.reruns) is counts
    comparison = compared(now, then, chosen)
    found = case_named(comparison, "c00")
    assert found.change == "unchanged"
    assert found.notes == (["suspect"] if counts else ["quarantined"])
    assert comparison.metrics[0].n == (MANY if counts else MANY - 1)


# Clusters


def test_cases_of_a_cluster_count_as_one() -> None:
    def clustered(cases: Sequence[CaseResult]) -> list[CaseResult]:
        return [item.model_copy(update={"cluster": f"book {index % 4}"}) for index, item in enumerate(cases)]

    comparison = compared(results(*clustered(worse_in(10))), past(3, clustered(steady(MANY))))
    (metric,) = comparison.metrics
    assert (metric.n, metric.units) == (MANY, 4)
    assert comparison.verdict == "unproven"
    assert metric.reason == "the first run suggests a drop (p = 0.002), and the confirmation run is missing"


# Several metrics


def two(number: int, numeric: float, f1: float) -> CaseResult:
    return case(f"c{number:02}", scores=[{"numeric": numeric, "f1": f1}] * 3)


def test_one_metric_that_fell_is_enough_and_named() -> None:
    now = results(*(two(n, 1.0, 0.0 if n < 12 else 1.0) for n in range(MANY)))
    then = past(3, [two(n, 1.0, 1.0) for n in range(MANY)])
    second = run_scores(now.cases())
    comparison = confirmed(now, then, Confirmation(second=second))
    verdicts = {metric.id: metric.verdict for metric in comparison.metrics}
    assert (comparison.verdict, verdicts) == ("regressed", {"numeric": "unchanged", "f1": "regressed"})
    assert comparison.policy["reason"].startswith("f1: the mean dropped by 30 points")
    assert comparison.policy["moved_means"] == ["f1"]


@pytest.mark.parametrize(("gating", "verdict"), [({"f1": False}, "unchanged"), ({}, "unproven")])
def test_a_metric_that_shall_not_count_is_only_reported(gating: dict[str, bool], verdict: str) -> None:
    now = results(*(two(n, 1.0, 0.0 if n < 12 else 1.0) for n in range(MANY)))
    then = past(3, [two(n, 1.0, 1.0) for n in range(MANY)])
    comparison = compared(now, then, policy(gating=gating))
    (f1,) = (metric for metric in comparison.metrics if metric.id == "f1")
    assert (f1.gating, comparison.verdict) == (gating.get("f1", True), verdict)
    assert f1.current == pytest.approx(0.7)


def test_a_metric_that_only_informs_does_not_gate() -> None:
    def told(number: int, bleu: float) -> CaseResult:
        only = turn(score("numeric"), score("bleu", bleu, None))
        iterations = [iteration("passed", only, index=index) for index in range(3)]
        return case(f"c{number:02}").model_copy(update={"iterations": iterations})

    now, then = results(*(told(n, 0.1) for n in range(MANY))), past(3, [told(n, 0.9) for n in range(MANY)])
    first = comparer(now, then).first_stage
    assert first is not None
    assert not first.second_run
    comparison = compared(now, then)
    bleu = next(metric for metric in comparison.metrics if metric.id == "bleu")
    assert (bleu.gating, bleu.verdict, comparison.verdict) == (False, "regressed", "unchanged")
    assert decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy()).passed


# Errors


def test_too_many_errors_leave_it_open() -> None:
    crash = iteration("error", turn(error="no model", response=None))
    lost = [case(f"c{n:02}", "error").model_copy(update={"iterations": [crash] * 3}) for n in range(5)]
    comparison = compared(results(*lost, *steady(MANY)[5:]), past(3, steady(MANY)))
    assert comparison.verdict == "unproven"
    points = [(point.what, point.mended_by) for point in comparison.unproven]
    assert points == [("scores", "change"), ("errors", "change")]
    assert "lost to errors" in comparison.policy["reason"]
    assert not [item for item in comparison.cases if item.change == "regressed"]


def test_a_judge_that_never_answered_leaves_it_open() -> None:
    def unjudged(number: int) -> CaseResult:
        only = iteration("passed", turn(score("numeric"), broken("f1")))
        return case(f"c{number:02}").model_copy(update={"iterations": [only] * 3})

    then = past(3, [two(n, 1.0, 1.0) for n in range(MANY)])
    comparison = compared(results(*map(unjudged, range(MANY))), then)
    assert comparison.verdict == "unproven"
    points = [(point.what, point.mended_by) for point in comparison.unproven]
    assert points == [("scores", "outside"), ("errors", "outside")]
    assert "f1: 100% of the iterations were lost to errors" in comparison.policy["reason"]


def test_a_few_errors_change_nothing() -> None:
    crash = iteration("error", turn(error="no model", response=None))
    one = case("c00").model_copy(update={"iterations": [*steady(1)[0].iterations[:2], crash]})
    assert compared(results(one, *steady(MANY)[1:]), past(3, steady(MANY))).verdict == "unchanged"


# Notes


def test_drifting_runs_are_reported() -> None:
    def drifted(day: int) -> list[CaseResult]:
        level = 0.9 if day % 2 else 0.6
        return [scored(f"c{n:02}", *[level + 0.002 * (n * day % 7)] * 3) for n in range(MANY)]

    then = history(*(base_run(day, drifted(day)) for day in range(1, 9)))
    notes = compared(results(*drifted(3)), then).notes
    assert [note for note in notes if note.startswith("numeric: the means of the 8 baseline runs vary by")]
    quiet = past(8, steady(MANY))
    assert compared(results(*steady(MANY)), quiet).notes == []


def test_omitted_parts_of_the_baseline_are_reported() -> None:
    now, then = results(*steady(MANY)), past(2, steady(MANY))
    from agenteval.compare.comparer import Comparer

    notes = ("1 run of the baseline's pool is damaged and omitted",)
    assert Comparer(now, then, set(), notes=notes).decide().notes[0] == notes[0]


# Time and money


def priced(cases: Sequence[CaseResult], latency_ms: float, cost_usd: float | None = 0.01) -> list[CaseResult]:
    def one(item: CaseResult) -> CaseResult:
        usage = Usage(input_tokens=80, output_tokens=20, cost_usd=cost_usd)
        iterations = [
            found.model_copy(
                update={
                    "turns": [
                        only.model_copy(update={"latency_ms": latency_ms, "usage": usage}) for only in found.turns
                    ]
                }
            )
            for found in item.iterations
        ]
        return item.model_copy(update={"iterations": iterations})

    return [one(item) for item in cases]


def resources(comparison: Comparison) -> dict[str, Any]:
    return {item.name: item for item in comparison.resources}


def test_time_tokens_and_money_are_compared() -> None:
    now, then = results(*priced(steady(5), 150, 0.02)), past(1, priced(steady(5), 100))
    found = resources(compared(now, then))
    assert list(found) == ["latency_ms", "tokens", "cost_usd"]
    latency = found["latency_ms"]
    assert (latency.n, latency.baseline, latency.current, latency.change) == (5, 100, 150, 0.5)
    assert (found["tokens"].change, found["cost_usd"].change) == (0, pytest.approx(1))
    assert not any(item.exceeded for item in found.values())


def test_unreported_resources_are_omitted() -> None:
    assert resources(compared(results(*steady(5)), past(1, steady(5)))) == {}


@pytest.mark.parametrize(
    ("before", "after", "allowed", "exceeded"),
    [(100, 120, 0.2, False), (100, 121, 0.2, True), (100, 100, 0.0, False), (100, 50, 0.0, False)],
)
def test_time_gates_where_a_limit_is_set(before: float, after: float, allowed: float, exceeded: bool) -> None:
    now, then = results(*priced(steady(MANY), after)), past(3, priced(steady(MANY), before))
    comparison = compared(now, then, policy(max_latency_increase=allowed))
    assert resources(comparison)["latency_ms"].exceeded is exceeded
    assert comparison.verdict == "unchanged"
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy(DEFAULT_FAIL_ON))
    assert gate.passed is not exceeded
    if exceeded:
        assert gate.headline == "the latency rose by 21%, 20% is allowed"


def test_a_cost_above_zero_exceeds_a_limit_if_the_baseline_was_free() -> None:
    now, then = results(*priced(steady(5), 100, 0.01)), past(1, priced(steady(5), 100, 0.0))
    comparison = compared(now, then, policy(max_cost_increase=0.5))
    assert resources(comparison)["cost_usd"].exceeded
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy())
    assert gate.headline == "the cost of an answer rose from nothing, 50% is allowed"


def test_time_of_other_questions_and_of_cases_in_quarantine_is_not_compared() -> None:
    now = results(*priced(steady(4), 900), *priced([scored("same", 1)], 100), fingerprints={"c00": "new"})
    then = past(1, [*priced(steady(4), 100), *priced([scored("same", 1)], 100)])
    held = tuple(Quarantine(f"c{n:02}", TODAY) for n in (1, 2, 3))
    found = resources(compared(now, then, policy(quarantine=held)))["latency_ms"]
    assert (found.n, found.baseline, found.current) == (1, 100, 100)
