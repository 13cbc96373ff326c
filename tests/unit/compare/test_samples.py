"""The scores that the statistics get, and notes about omitted ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.compare.gate_runs import base_run, history, past, policy, scored, steady
from tests.unit.runs import SUITE, broken, case, iteration, results, score, skipped, turn

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.samples import Confirmation, Sides
from agenteval.compare.statistics.model import CaseRuns, ErrorCounts, MetricRuns
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score
from agenteval.results.model import Results
from agenteval.suite.model import OVERALL, MetricKind


def sides(
    now: Results, then: Results, chosen: ComparePolicy | None = None, quarantined: frozenset[str] = frozenset()
) -> Sides:
    return Sides(now, then, chosen or ComparePolicy(), quarantined)


def metric_of(given: Sides, name: str = "numeric") -> MetricRuns:
    (found,) = (metric for metric in given.metrics if metric.metric == name)
    return found


def case_of(metric: MetricRuns, name: str) -> CaseRuns:
    (found,) = (item for item in metric.cases if item.case_id == f"{SUITE}::{name}")
    return found


def made_of(name: str, *iterations: IterationResult, status: CaseStatus = "passed") -> CaseResult:
    numbered = [item.model_copy(update={"index": index}) for index, item in enumerate(iterations)]
    return case(name, status).model_copy(update={"iterations": numbered})


def answered(*scores: Score) -> IterationResult:
    return iteration("passed", turn(*scores))


CRASH = iteration("error", turn(error="no model", response=None))


# Both sides


def test_the_scores_of_every_run_the_oldest_first() -> None:
    runs = [base_run(day, [scored("a", *scores)]) for day, scores in enumerate([(0, 0, 0), (1, 0, 1)], start=1)]
    metric = metric_of(sides(results(scored("a", 1, 1, 0)), history(*runs)))
    found = case_of(metric, "a")
    assert (found.current, found.baseline) == ((1, 1, 0), ((0, 0, 0), (1, 0, 1)))
    assert (found.threshold, found.deterministic, found.quarantined) == (0.5, False, False)


def test_a_case_that_a_run_lacks_has_no_scores_there() -> None:
    then = history(base_run(1, [scored("a", 1)]), base_run(2, [scored("a", 1), scored("late", 0)]))
    metric = metric_of(sides(results(scored("a", 1), scored("late", 1), scored("new", 1)), then))
    assert [case_of(metric, name).baseline for name in ("a", "late", "new")] == [((1,), (1,)), ((), (0,)), ((), ())]


def test_the_same_data_have_the_same_seed_and_others_another() -> None:
    now, then = results(*steady(3)), past(2, steady(3))
    seeds = {metric_of(sides(run, then)).seed for run in (now, now, results(*steady(3), run_id="other"))}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("now", "then", "step"), [((1, 0), (0, 1), 1.0), ((1, 0.5), (0, 1), 0.1), ((1, 0), (0.25, 1), 0.1)]
)
def test_scores_between_0_and_1_have_a_smaller_step(now: Sequence[float], then: Sequence[float], step: float) -> None:
    assert metric_of(sides(results(scored("a", *now)), past(1, [scored("a", *then)]))).step == step


# From which score on an iteration passes


@pytest.mark.parametrize(
    ("scores", "threshold"),
    [
        ([score("numeric", 1.0, True, threshold=0.7)], 0.7),
        ([score("numeric", 1.0, True)], 0.5),
        ([score("numeric", 1.0, None)], None),
        ([score("numeric", 1.0, True, threshold=0.0)], 0.0),
    ],
)
def test_thresholds_are_those_of_the_run(scores: list[Score], threshold: float | None) -> None:
    now = results(made_of("a", answered(*scores)))
    metric = metric_of(sides(now, past(1, [scored("a", 1)])))
    assert case_of(metric, "a").threshold == threshold
    assert metric.gating is (threshold is not None)


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
def test_every_turn_of_a_conversation_has_to_pass(turns: int) -> None:
    def conversation(failing: int) -> IterationResult:
        values = [0.0] * failing + [1.0] * (turns - failing)
        return iteration("passed", *(turn(score("numeric", v, v > 0), index=i) for i, v in enumerate(values)))

    now = results(made_of("a", conversation(0), conversation(1)))
    found = case_of(metric_of(sides(now, past(1, [scored("a", 1)]))), "a")
    assert found.threshold is not None
    assert [value >= found.threshold for value in found.current] == [True, False]


@pytest.mark.parametrize(("kind", "expected"), [("standard", True), ("judge", False), ("geval", False)])
def test_judged_metrics_are_not_deterministic(kind: MetricKind, expected: bool) -> None:
    judged = Score(id="numeric", kind=kind, score=1.0, passed=True, status="scored")
    now = results(made_of("a", answered(judged)))
    for chosen in (policy(deterministic=True), policy(recorded=frozenset({f"{SUITE}::a"}))):
        assert case_of(metric_of(sides(now, past(1, [scored("a", 1)]), chosen)), "a").deterministic is expected


def test_a_score_that_all_others_become_is_a_metric_too() -> None:
    def overall(run: Results) -> Results:
        return run.model_copy(
            update={"suites": [suite.model_copy(update={"threshold": 0.7}) for suite in run.suites], "pool": []}
        )

    metrics = {item.metric: item for item in sides(overall(results(scored("a", 1, 0))), overall(past(1))).metrics}
    assert case_of(metrics[OVERALL], "a").current == (1, 0)
    assert case_of(metrics[OVERALL], "a").threshold == 0.7


def test_clusters_are_kept() -> None:
    now = results(scored("a", 1).model_copy(update={"cluster": "books"}))
    assert case_of(metric_of(sides(now, past(1, [scored("a", 1)]))), "a").cluster == "books"


# What is left out


def test_runs_that_asked_something_else_do_not_count_for_that_case() -> None:
    runs = [
        base_run(1, [scored("a", 0), scored("b", 1)], fingerprints={"a": "old"}),
        base_run(2, [scored("a", 1), scored("b", 1)]),
    ]
    given = sides(results(scored("a", 1), scored("b", 1)), history(*runs))
    metric = metric_of(given)
    assert case_of(metric, "a").baseline == ((), (1,))
    assert case_of(metric, "b").baseline == ((1,), (1,))
    assert given.earlier.notes == ("1 case changed since the baseline runs (question): not compared",)


def test_a_removed_case_is_not_an_imported_one() -> None:
    then = past(1, [scored("a", 1), scored("gone", 1)], fingerprints={"gone": "other"})
    assert sides(results(scored("a", 1)), then).earlier.notes == ()


def test_without_fingerprints_cases_are_taken_for_the_same() -> None:
    bare = past(1, [scored("a", 0)]).model_copy(update={"pool": []})
    for now in (results(scored("a", 1)), results(scored("a", 1)).model_copy(update={"pool": []})):
        assert case_of(metric_of(sides(now, bare)), "a").baseline == ((0,),)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1, 1e300])
def test_invalid_scores_are_omitted_with_a_note(value: float) -> None:
    then = past(1, [scored("a", 1, 1)])
    then.pool[0].cases[f"{SUITE}::a"].scores["numeric"].append(value)
    given = sides(results(scored("a", 1, 1)), then)
    assert case_of(metric_of(given), "a").baseline == ((1, 1),)
    assert given.earlier.notes == ("1 score of earlier runs outside 0..1, left out",)


def test_the_few_runs_with_another_number_of_iterations_are_left_out() -> None:
    runs = [base_run(1, [scored("a", 1)]), *(base_run(day, [scored("a", 1, 1, 1)]) for day in (2, 3))]
    given = sides(results(scored("a", 1, 1, 1)), history(*runs))
    assert given.earlier.run_ids == ("base-2", "base-3")
    assert given.earlier.notes == ("1 earlier run left out: another number of iterations than the others",)


def test_where_most_have_another_number_all_are_kept() -> None:
    runs = [*(base_run(day, [scored("a", 1)] * 4) for day in (1, 2)), base_run(3, [scored("a", 1, 1, 1)])]
    given = sides(results(scored("a", 1, 1, 1)), history(*runs))
    assert (given.earlier.run_ids, given.earlier.notes) == (("base-1", "base-2", "base-3"), ())


# Errors


def errors_of(now: Results, then: Results, quarantined: frozenset[str] = frozenset()) -> ErrorCounts:
    found = metric_of(sides(now, then, quarantined=quarantined)).errors
    assert found is not None
    return found


def test_a_missing_answer_is_an_error() -> None:
    now = results(made_of("a", answered(score()), CRASH, CRASH), made_of("b", CRASH, status="error"))
    metric = metric_of(sides(now, past(1, [scored("a", 1), scored("b", 1)])))
    assert case_of(metric, "a").current == (1,)
    assert [item.case_id for item in metric.cases] == [f"{SUITE}::a"]
    counts = metric.errors
    assert counts == ErrorCounts(
        current=3, current_iterations=4, lost_cases=1, cases=2, baseline=0, baseline_iterations=2
    )


def test_a_conversation_that_broke_off_is_lost_as_a_whole() -> None:
    half = iteration("error", turn(score()), turn(error="no model", response=None, index=1))
    now = results(made_of("a", half, answered(score())))
    counts = errors_of(now, past(1, [scored("a", 1)]))
    assert (counts.current, counts.current_iterations) == (1, 2)


def test_each_metric_counts_its_own_errors() -> None:
    both = made_of("a", answered(score(), broken("judge")), answered(score(), score("judge")))
    then = past(1, [case("a", scores=[{"numeric": 1.0, "judge": 1.0}])])
    given = sides(results(both), then)
    lost = {item.metric: item.errors.current for item in given.metrics if item.errors}
    assert lost == {"numeric": 0, "judge": 1}


def test_a_metric_that_only_broke_is_not_forgotten() -> None:
    now = results(made_of("a", answered(score(), broken("judge"))))
    then = past(1, [case("a", scores=[{"numeric": 1.0, "judge": 1.0}])])
    metric = metric_of(sides(now, then), "judge")
    assert (metric.cases, metric.gating) == ((), True)
    assert not metric_of(sides(now, then, policy(gating={"judge": False})), "judge").gating


def test_skipped_metrics_are_not_losses() -> None:
    now = results(made_of("a", answered(score(), skipped("judge")), answered(score(), skipped("judge"))))
    then = past(1, [case("a", scores=[{"numeric": 1.0, "judge": 1.0}])])
    assert [item.metric for item in sides(now, then).metrics] == ["numeric"]


def test_errors_of_the_baseline_are_compared() -> None:
    then = past(1, [made_of("a", CRASH, answered(score())), made_of("elsewhere", CRASH)])
    counts = errors_of(results(scored("a", 1)), then)
    assert (counts.baseline, counts.baseline_iterations) == (1, 2)


def test_errors_in_quarantine_do_not_count() -> None:
    now = results(scored("a", 1), made_of("b", CRASH, status="error"))
    then = past(1, [scored("a", 1), scored("b", 1)])
    assert errors_of(now, then).current == 1
    assert errors_of(now, then, frozenset({f"{SUITE}::b"})).current == 0


# Confirming runs


def test_confirming_scores_join_their_cases() -> None:
    metric = metric_of(sides(results(scored("a", 1), scored("b", 1)), past(1, [scored("a", 1), scored("b", 1)])))
    key = f"{SUITE}::a"
    scores: dict[str, Any] = {
        "second": {key: {"numeric": (0.0,), "other": (1.0,)}},
        "control": {key: {"numeric": (1.0,)}},
        "reruns": {key: {"numeric": (0.0, 0.0)}},
        "control_reruns": {key: {"numeric": (1.0, 1.0)}},
    }
    joined = Confirmation(**scores).add_to(metric)
    found, other = case_of(joined, "a"), case_of(joined, "b")
    assert (found.second, found.control, found.reruns, found.control_reruns) == ((0,), (1,), (0, 0), (1, 1))
    assert (other.second, other.control, other.reruns, other.control_reruns) == ((), (), (), ())
    assert found.current == (1,)


def test_without_any_a_metric_stays_as_it_is() -> None:
    metric = metric_of(sides(results(scored("a", 1)), past(1, [scored("a", 1)])))
    assert Confirmation(not_run_because="no time").add_to(metric) is metric
