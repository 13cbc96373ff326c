"""What a decision of the gate says about a run, in the words of results.json."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.compare.gate_runs import (
    BAD,
    MANY,
    PAST,
    TODAY,
    WAVERING,
    WEAK,
    Agents,
    case_named,
    compared,
    comparer,
    names,
    past,
    policy,
    proven,
    scored,
    steady,
    weaker_in,
    worse_in,
)
from tests.unit.runs import SUITE, broken, case, iteration, results, score, turn

from agenteval.compare import driving
from agenteval.compare.gate import DEFAULT_FAIL_ON, GatePolicy, decide_gate
from agenteval.compare.phrases import p_text, points
from agenteval.compare.policy import ComparePolicy, Quarantine
from agenteval.compare.regression.model import Side, Unavailable
from agenteval.results.case import CaseResult, Usage
from agenteval.results.comparison import Comparison, FailedOf
from agenteval.results.model import Results

# Verdicts


def test_nothing_changed() -> None:
    now = results(*steady(MANY, **WAVERING))
    comparison = compared(now, PAST)
    assert not comparer(now, PAST).needs_runs
    (metric,) = comparison.metrics
    assert (comparison.verdict, comparison.stage, comparison.cost) == ("unchanged", "screen", None)
    assert (metric.baseline, metric.current, metric.difference) == (0.975, 0.975, 0)
    assert (metric.n, metric.units, metric.runs, metric.iterations) == (MANY, MANY, 3, 3)
    assert metric.bound is not None
    assert comparison.policy["reason"] == (
        f"No regression: numeric 97.5, base 97.5 (3 runs); worse by more than {points(metric.bound)} is "
        "excluded (95 %)"
    )
    assert (comparison.policy["name"], comparison.policy["confirm"]) == ("statistics", "against-base")
    assert comparison.policy["settings"]["min_effect"] == 0.01


def test_an_agent_that_never_varies_needs_no_statistics() -> None:
    comparison = compared(results(*steady(MANY)), past(3, steady(MANY)))
    assert comparison.policy["reason"] == "No regression: every score is the same as in the earlier runs"
    agents = Agents({"current": names(1)})
    broken_case = proven(results(*steady(MANY, c00=BAD)), past(3, steady(MANY)), agents)
    assert (broken_case.verdict, broken_case.stage) == ("regressed", "repeats")
    assert (
        "'c00' fails 3 of 3 re-runs, 0 of 3 on the base beside it; both repeat exactly"
        in broken_case.policy["reason"]
    )
    assert " p " not in broken_case.policy["reason"]


def test_a_fall_that_shows_side_by_side_is_a_regression() -> None:
    comparison = proven(results(*weaker_in(24)), PAST, Agents(weak={"current": names(24)}))
    assert (comparison.verdict, comparison.stage) == ("regressed", "head-to-head")
    (metric,) = comparison.metrics
    assert (metric.verdict, metric.runs_a_side) == ("regressed", 1)
    assert metric.p is not None
    assert metric.limit is not None
    assert metric.interval is not None
    assert metric.p <= metric.limit
    assert metric.interval[1] < 0
    assert comparison.policy["reason"] == (
        "Regressed: numeric fell: side by side with the base it scored 20 points less (1 run a side; at least "
        f"{points(metric.interval[1])}, {p_text(metric.p, metric.limit)})"
    )
    assert [(look.runs, look.p, look.limit) for look in comparison.looks] == [(1, metric.p, metric.limit)]
    # A mean marks no case; those behind it are listed.
    assert not [item for item in comparison.cases if item.change == "regressed"]
    assert [case.id for case in metric.moved] == [f"{SUITE}::c{number:02}" for number in range(24)]
    assert {(case.baseline_failures, case.current_failures) for case in metric.moved} == {
        (FailedOf(failed=0, of=3), FailedOf(failed=1, of=3))
    }
    assert {case.baseline for case in metric.moved} == {1.0}
    assert comparison.headline == "numeric fell by 20 points"
    assert comparison.begins_epoch


def test_what_needs_no_further_run_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(driving, name)

        def call(*arguments: Any) -> Any:
            asked.append(name)
            return real(*arguments)

        return call

    for name in ("decide", "decide_rise"):
        monkeypatch.setattr(driving, name, counted(name))
    clean = comparer(results(*steady(MANY, **WAVERING)), PAST)
    clean.decide()
    assert not clean.needs_runs
    assert asked == ["decide"]
    asked.clear()
    # With a suspicion there are two decisions: without further runs, and with them.
    suspicious = comparer(results(*weaker_in(24)), PAST)
    suspicious.decide()
    assert suspicious.needs_runs
    suspicious.prove(Agents(weak={"current": names(24)}).answer)
    assert asked == ["decide", "decide"]


def test_a_suspicion_that_red_leaves_open_is_told() -> None:
    # Six cases are broken, and the mean is lower too: the cases are red first, and then nothing checks the mean.
    broken = results(*worse_in(6))
    comparison = proven(broken, PAST, Agents({"current": names(6)}))
    (metric,) = comparison.metrics
    assert (comparison.verdict, comparison.stage, metric.verdict) == ("regressed", "cases", "unproven")
    assert metric.reason == "the first run of numeric looked worse (−15.0 points), which was not checked"
    assert (metric.p, metric.limit, metric.bound) == (None, None, None)
    assert comparison.headline == "'c00' and 5 more cases broke"


def test_a_drift_of_both_sides_is_none() -> None:
    both = Agents(weak={"current": names(24), "control": names(24)})
    comparison = proven(results(*weaker_in(24)), PAST, both)
    assert comparison.verdict == "unchanged"
    assert re.search(
        r"the first run of numeric looked worse \(−20\.0 points\); side by side with the base that is not proven "
        r"\(\+0\.0, between −\d+\.\d and \+\d+\.\d\)",
        comparison.policy["reason"],
    )
    assert not comparison.begins_epoch


def test_a_fall_that_the_second_run_does_not_repeat_is_none() -> None:
    agents = Agents()
    comparison = proven(results(*worse_in(10)), PAST, agents)
    assert comparison.verdict == "unchanged"
    assert all("control" not in request.sides for request in agents.asked)
    assert "a second run did not confirm it (+2.5)" in comparison.policy["reason"]


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (policy(), "further runs would prove or clear it"),
        (policy(confirm="off"), "'confirm: off' runs nothing again; 'confirm: against-base' would prove or clear it"),
    ],
)
def test_a_suspicion_without_further_runs_is_unproven(chosen: ComparePolicy, why: str) -> None:
    now = results(*worse_in(10))
    comparison = compared(now, PAST, chosen)
    assert comparison.verdict == "unproven"
    assert [(point.what, point.mended_by) for point in comparison.unproven] == [("confirmation", "outside")]
    assert comparison.policy["reason"].startswith("Unproven: the first run of numeric looked worse (−25.0 points); ")
    assert comparison.policy["reason"].endswith(why)
    assert comparison.policy["confirmed"] is False
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy(frozenset({"unproven"})))
    assert (gate.verdict, gate.exit_status) == ("unproven", 3)


@pytest.mark.parametrize("what", ["runs", "limit"])
def test_why_further_runs_are_missing(what: Any) -> None:
    missing = Unavailable(what, "the LLM budget is exhausted")
    comparison = proven(results(*worse_in(10)), PAST, Agents(unavailable={"current": missing}))
    assert comparison.verdict == "unproven"
    assert comparison.policy["reason"].endswith("; the LLM budget is exhausted")


def test_without_a_control_three_earlier_runs_decide() -> None:
    missing = {"control": Unavailable("control", "the base cannot be built")}
    agents = Agents(weak={"current": names(24)}, unavailable=missing)  # type: ignore[arg-type]
    comparison = proven(results(*weaker_in(24)), PAST, agents)
    assert (comparison.verdict, comparison.stage) == ("regressed", "earlier-runs")
    assert "points less than in 3 earlier runs (p " in comparison.policy["reason"]
    assert "so drift cannot be told from regression" in comparison.policy["reason"]
    few = proven(results(*weaker_in(24)), past(2, steady(MANY, **WAVERING)), agents)
    assert few.verdict == "unproven"
    assert few.policy["reason"].endswith(
        "the base cannot be built; without it, 3 earlier runs are needed, and there are 2"
    )


def test_results_alone_prove_an_unmistakable_drop() -> None:
    final = policy().without_confirmation()
    now, then = ([scored(f"c{number:02}", float(number < passing)) for number in range(20)] for passing in (10, 20))
    comparison = compared(results(*now), past(1, then), final)
    assert (comparison.verdict, comparison.stage) == ("regressed", "files")
    assert "numeric fell: it scored 50 points less than in 1 earlier run (p = " in comparison.policy["reason"]
    assert not comparison.begins_epoch
    small = compared(results(*worse_in(1)), PAST, final)
    assert small.verdict == "unproven"
    assert small.policy["reason"].startswith("Unproven: 'c00' passed less often than before; ")


def test_a_rise_in_one_run_is_told_and_no_verdict() -> None:
    comparison = compared(results(*steady(MANY, **WAVERING)), past(3, worse_in(10)))
    assert comparison.verdict == "unchanged"
    assert comparison.policy["reason"].endswith("; looks better (+25.0 points in one run)")


@pytest.mark.parametrize(("confirm", "verdict"), [("against-base", "improved"), ("rerun", "unchanged")])
def test_on_the_base_branch_a_rise_is_proven_side_by_side(confirm: Any, verdict: str) -> None:
    now, then = results(*steady(MANY, **WAVERING)), past(3, weaker_in(24))
    merged = now.model_copy(update={"run": now.run.model_copy(update={"workflow_run_id": "7"})})
    deciding = comparer(merged, then, policy(confirm=confirm))
    assert deciding.needs_runs is (confirm == "against-base")
    comparison = deciding.concluded(deciding.prove(Agents(weak={"control": names(24)}).answer))
    assert comparison.verdict == verdict
    assert comparison.begins_epoch is (verdict == "improved")
    if verdict == "improved":
        assert "numeric rose: side by side with the base it scored 20 points more (" in comparison.policy["reason"]
        decided = merged.model_copy(update={"comparison": comparison})
        assert decide_gate(decided, GatePolicy(frozenset({"regressions", "unproven"}))).passed


BETTER, WORSE_PAST = results(*steady(MANY, **WAVERING)), past(3, weaker_in(24))
ON_REQUEST = policy(asked_by="octocat")


def test_on_request_a_change_is_proven_better_by_the_runs_that_the_base_branch_makes() -> None:
    assert not comparer(BETTER, WORSE_PAST).needs_runs
    agents = Agents(weak={"control": names(24)})
    asked = proven(BETTER, WORSE_PAST, agents, ON_REQUEST)
    merged = BETTER.model_copy(update={"run": BETTER.run.model_copy(update={"workflow_run_id": "7"})})
    same = Agents(weak={"control": names(24)})
    on_base = proven(merged, WORSE_PAST, same, ON_REQUEST)
    assert asked.verdict == on_base.verdict == "improved"
    assert agents.asked == same.asked
    assert asked.metrics == on_base.metrics
    assert asked.requested is not None
    assert asked.requested.model_dump() == {
        "by": "octocat",
        "verdict": "improved",
        "reason": "numeric rose by 20 points, proven side by side with the base on request of octocat",
    }
    # Nobody needs to ask there.
    assert on_base.requested is None


def unlike(side: Side, what: str, why: str) -> Agents:
    return Agents(weak={"control": names(24)}, unavailable={side: Unavailable(what, why)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "agents", "chosen", "verdict", "said"),
    [
        # The first run was lucky.
        (BETTER, Agents(), ON_REQUEST, "unchanged", "further runs do not prove one"),
        (
            BETTER,
            unlike("current", "limit", "`max_confirmation` allows 10 calls"),
            ON_REQUEST,
            "unproven",
            "it could not be finished: 'max_confirmation' allows 10 calls",
        ),
        (
            BETTER,
            unlike("control", "control", "the suite of the base commit is broken"),
            ON_REQUEST,
            "unproven",
            "it could not be finished: the suite of the base commit is broken",
        ),
    ],
)
def test_a_request_turns_nothing_red(
    now: Results, agents: Agents, chosen: ComparePolicy, verdict: str, said: str
) -> None:
    comparison = proven(now, WORSE_PAST, agents, chosen)
    assert (comparison.verdict, comparison.unproven) == ("unchanged", [])
    assert comparison.requested is not None
    assert comparison.requested.verdict == verdict
    assert comparison.requested.reason.startswith(f"octocat asked for the proof of an improvement: {said}")


@pytest.mark.parametrize(
    ("now", "chosen", "verdict", "said"),
    [
        (results(*weaker_in(24)), ON_REQUEST, "unchanged", "the first run does not look better, so nothing ran"),
        (BETTER, policy(asked_by="octocat", confirm="rerun"), "unproven", "that needs runs side by side"),
        (BETTER, policy(asked_by="octocat", confirm="off"), "unproven", "that needs runs side by side"),
        (BETTER, ON_REQUEST.without_confirmation(), "unproven", "nothing can run again here"),
        (BETTER, policy(asked_by="octocat", name="any-flip"), "unproven", "that needs runs side by side"),
    ],
)
def test_a_request_says_why_nothing_ran(now: Results, chosen: ComparePolicy, verdict: str, said: str) -> None:
    deciding = comparer(now, WORSE_PAST, chosen)
    assert not deciding.needs_runs
    requested = deciding.decide().requested
    assert requested is not None
    assert requested.verdict == verdict
    assert requested.reason.startswith(f"octocat asked for the proof of an improvement: {said}")


def test_a_request_turns_no_red_into_a_green() -> None:
    """A case that broke stays proven, although the mean rises."""
    now = results(*steady(MANY, **WAVERING, c00=BAD))
    agents = Agents(weak={"control": " ".join(f"c{number:02}" for number in range(1, 24))}, broken={"current": "c00"})
    then = past(3, steady(MANY, **WAVERING, **{f"c{number:02}": WEAK for number in range(1, 24)}))
    comparison = proven(now, then, agents, ON_REQUEST)
    assert comparison.verdict == "regressed"
    assert comparison.requested is not None
    assert comparison.requested.reason.endswith("none was looked for, because the change is regressed")
    decided = now.model_copy(update={"comparison": comparison})
    assert not decide_gate(decided, GatePolicy(frozenset({"regressions", "unproven"}))).passed


@pytest.mark.parametrize(("on_low", "dispatches"), [("warn", False), ("dispatch", True)])
def test_a_control_that_is_lower_than_the_pool_is_recorded(on_low: Any, dispatches: bool) -> None:
    now, then = results(*weaker_in(24)), past(3, steady(MANY, **WAVERING))
    chosen = policy(on_low_control=on_low)
    both = proven(now, then, Agents(weak={"current": names(24), "control": names(24)}), chosen)
    assert both.verdict == "unchanged"
    assert both.low_control is not None
    assert both.low_control.p <= 0.3
    assert (both.low_control.epoch_began_at, both.low_control.dispatches) == (then.pool[0].created_at, dispatches)
    mine = proven(now, then, Agents(weak={"current": names(24)}), chosen)
    assert (mine.verdict, mine.low_control) == ("regressed", None)
    assert compared(now, then, chosen).low_control is None


def test_nothing_in_common() -> None:
    comparison = compared(results(scored("new", 1)), past(2, [scored("old", 1)]))
    assert (comparison.verdict, comparison.metrics) == ("unproven", [])
    assert [item.change for item in comparison.cases] == ["new", "removed"]


def test_the_same_data_get_the_same_verdict() -> None:
    noisy = {f"c{number:02}": (1.0, float(number % 2), float(number % 3 == 0)) for number in range(20)}
    now, then = results(*steady(MANY, **noisy)), past(4, steady(MANY, c01=(1.0, 0.0, 1.0)))
    assert compared(now, then) == compared(now, then)


# Single cases


def test_a_broken_case_is_proven_and_named() -> None:
    now = results(*worse_in(1))
    agents = Agents({"current": names(1)})
    comparison = proven(now, PAST, agents)
    assert (comparison.verdict, comparison.stage) == ("regressed", "cases")
    assert comparison.policy["confirmed"] is True
    (proof,) = comparison.proofs
    assert (proof.id, proof.metric, proof.proven) == (f"{SUITE}::c00", "numeric", True)
    assert proof.current.failed == proof.current.of == proof.control.of > proof.control.failed == 0
    assert proof.q is not None
    assert proof.limit is not None
    assert proof.q <= proof.limit
    of = proof.current.of
    assert f"'c00' fails {of} of {of} re-runs, 0 of {of} on the base beside it" in comparison.policy["reason"]
    found = case_named(comparison, "c00")
    assert (found.change, found.notes) == ("regressed", [])
    assert found.history is not None
    assert (found.history.runs, found.history.iterations, found.history.pass_rate) == (3, 9, 1.0)
    assert [item.name for item in comparison.cases if item.change == "regressed"] == ["c00"]
    assert comparison.cost is not None
    assert comparison.cost.calls == sum(
        len(request.sides) * sum(request.iterations.values()) for request in agents.asked
    )
    # A case alone begins no epoch.
    assert not comparison.begins_epoch


def test_a_recovered_case_is_only_a_suspect() -> None:
    now = results(*worse_in(1))
    comparison = proven(now, PAST, Agents())
    assert comparison.verdict == "unchanged"
    assert "'c00' failed in the first run, not when repeated" in comparison.policy["reason"]
    found = case_named(comparison, "c00")
    assert (found.change, found.notes) == ("unchanged", ["suspect"])
    assert (found.status_before, found.status_after) == ("passed", "failed")
    gate = decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy(frozenset({"regressions"})))
    assert gate.passed


def test_a_case_without_reruns_is_a_suspect() -> None:
    assert case_named(compared(results(*worse_in(1)), PAST), "c00").notes == ["suspect"]


def test_one_baseline_run_is_enough_for_a_single_case() -> None:
    comparison = proven(results(*worse_in(1)), past(1, steady(MANY, **WAVERING)), Agents({"current": names(1)}))
    assert comparison.verdict == "regressed"


def test_a_case_that_always_wavered_is_flaky_and_tells_its_history() -> None:
    wavering = {"c00": (1.0, 0.0, 1.0)}
    comparison = compared(results(*steady(MANY, **wavering)), past(4, steady(MANY, **wavering)))
    found = case_named(comparison, "c00")
    assert found.notes == ["flaky"]
    assert found.history is not None
    assert (found.history.runs, found.history.iterations) == (4, 12)
    assert found.history.pass_rate == pytest.approx(2 / 3)
    assert case_named(comparison, "c01").history is None


def test_where_answers_are_declared_to_repeat_one_flip_is_proof() -> None:
    now, then = results(*steady(MANY, c00=BAD)), past(1, steady(MANY))
    recorded = frozenset(f"{SUITE}::c{number:02}" for number in range(MANY))
    for chosen in (policy(deterministic=True), policy(recorded=recorded)):
        comparison = compared(now, then, chosen.without_confirmation())
        assert comparison.verdict == "regressed"
        assert case_named(comparison, "c00").change == "regressed"


# Quarantine


@pytest.mark.parametrize(("days", "counts"), [(0, False), (-1, True)])
def test_a_case_in_quarantine_does_not_count_until_its_day(days: int, counts: bool) -> None:
    entry = Quarantine("c00", TODAY + timedelta(days=days))
    now, chosen = results(*worse_in(1)), policy(quarantine=(entry,))
    assert comparer(now, PAST, chosen).needs_runs is counts
    comparison = compared(now, PAST, chosen)
    found = case_named(comparison, "c00")
    assert found.change == "unchanged"
    assert found.notes == (["suspect"] if counts else ["quarantined"])
    assert comparison.metrics[0].n == (MANY if counts else MANY - 1)


# Clusters


def test_cases_of_a_cluster_count_as_one() -> None:
    def clustered(cases: Sequence[CaseResult]) -> list[CaseResult]:
        return [item.model_copy(update={"cluster": f"book {index % 4}"}) for index, item in enumerate(cases)]

    (metric,) = compared(results(*clustered(worse_in(10))), past(3, clustered(steady(MANY, **WAVERING)))).metrics
    assert (metric.n, metric.units) == (MANY, 4)


# Several metrics


def two(number: int, numeric: float, f1: float) -> CaseResult:
    # The last case varies.
    scores = [{"numeric": numeric, "f1": f1}] * 2
    return case(f"c{number:02}", scores=[*scores, {"numeric": numeric, "f1": 0.0 if number == MANY - 1 else f1}])


@pytest.mark.parametrize(("gating", "verdict"), [({"f1": False}, "unchanged"), ({}, "unproven")])
def test_a_metric_that_shall_not_count_is_only_reported(gating: dict[str, bool], verdict: str) -> None:
    now = results(*(two(n, 1.0, 0.0 if n < 12 else 1.0) for n in range(MANY)))
    comparison = compared(now, past(3, [two(n, 1.0, 1.0) for n in range(MANY)]), policy(gating=gating))
    (f1,) = (metric for metric in comparison.metrics if metric.id == "f1")
    assert (f1.gating, f1.verdict, comparison.verdict) == (gating.get("f1", True), verdict, verdict)
    assert f1.difference == pytest.approx(-0.3)
    numeric = next(metric for metric in comparison.metrics if metric.id == "numeric")
    assert numeric.verdict == "unchanged"


def test_a_metric_that_only_informs_does_not_gate() -> None:
    def told(number: int, bleu: float) -> CaseResult:
        only = turn(score("numeric"), score("bleu", bleu, None))
        iterations = [iteration("passed", only, index=index) for index in range(3)]
        return case(f"c{number:02}").model_copy(update={"iterations": iterations})

    now, then = results(*(told(n, 0.1) for n in range(MANY))), past(3, [told(n, 0.9) for n in range(MANY)])
    assert not comparer(now, then).needs_runs
    comparison = compared(now, then)
    bleu = next(metric for metric in comparison.metrics if metric.id == "bleu")
    assert (bleu.gating, bleu.verdict, bleu.reason) == (False, "unchanged", "only reported")
    assert bleu.difference == pytest.approx(-0.8)
    assert decide_gate(now.model_copy(update={"comparison": comparison}), GatePolicy()).passed


# Errors


def test_an_agent_that_fails_is_a_suspect_like_one_that_answers_wrong() -> None:
    crash = iteration("error", turn(error="no model", response=None))
    lost = [case(f"c{n:02}", "error").model_copy(update={"iterations": [crash] * 3}) for n in range(5)]
    now = results(*lost, *steady(MANY, **WAVERING)[5:])
    comparison = compared(now, PAST)
    assert (comparison.verdict, [point.what for point in comparison.unproven]) == ("unproven", ["confirmation"])
    assert proven(now, PAST, Agents({"current": names(5)})).verdict == "regressed"


def test_a_judge_that_never_answered_leaves_it_open() -> None:
    def unjudged(number: int) -> CaseResult:
        only = iteration("passed", turn(score("numeric"), broken("f1")))
        return case(f"c{number:02}").model_copy(update={"iterations": [only] * 3})

    comparison = compared(results(*map(unjudged, range(MANY))), past(3, [two(n, 1.0, 1.0) for n in range(MANY)]))
    assert comparison.verdict == "unproven"
    assert {(point.what, point.mended_by) for point in comparison.unproven} >= {("scores", "outside")}


def test_one_failed_iteration_changes_nothing() -> None:
    crash = iteration("error", turn(error="no model", response=None))
    one = case("c00").model_copy(update={"iterations": [*steady(1)[0].iterations[:2], crash]})
    now = results(one, *steady(MANY, **WAVERING)[1:])
    assert compared(now, PAST).verdict == "unchanged"


# Notes


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
