"""The evidence that the statistics get, and notes about omitted scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from tests.unit.compare.gate_runs import base_run, dated, history, past, policy, scored, steady
from tests.unit.runs import SUITE, broken, case, iteration, not_asked, results, score, skipped, turn

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.model import Evidence, GatingMetric
from agenteval.compare.sides import Sides
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, NotAsked, Score
from agenteval.results.model import Results
from agenteval.suite.model import OVERALL, MetricKind

A, B = f"{SUITE}::a", f"{SUITE}::b"


def sides(
    now: Results, then: Results, chosen: ComparePolicy | None = None, quarantined: frozenset[str] = frozenset()
) -> Sides:
    return Sides(now, then, chosen or ComparePolicy(), quarantined)


def evidence(now: Results, then: Results, chosen: ComparePolicy | None = None) -> Evidence:
    return sides(now, then, chosen).evidence


def metric_of(given: Evidence, name: str = "numeric") -> GatingMetric:
    (found,) = (metric for metric in given.metrics if metric.id == name)
    return found


def made_of(name: str, *iterations: IterationResult, status: CaseStatus = "passed") -> CaseResult:
    numbered = [item.model_copy(update={"index": index}) for index, item in enumerate(iterations)]
    return case(name, status).model_copy(update={"iterations": numbered})


def answered(*scores: Score) -> IterationResult:
    return iteration("passed", turn(*scores))


CRASH = iteration("error", turn(error="no model", response=None))
BUSY = iteration("error", turn(error="503", response=None, unavailable=True))
LIMITED = iteration("error", turn(error="no", response=None, not_asked=NotAsked(cause="budget", limit="budget of 1")))


# Both sides


def test_the_scores_of_every_run_the_oldest_first() -> None:
    runs = [base_run(day, [scored("a", *scores)]) for day, scores in enumerate([(0, 0, 0), (1, 0, 1)], start=1)]
    found = evidence(results(scored("a", 1, 1, 0)), history(*runs))
    assert found.first == {A: {"numeric": (1, 1, 0)}}
    assert found.pool == ({A: {"numeric": (0, 0, 0)}}, {A: {"numeric": (1, 0, 1)}})
    assert found.metrics == (GatingMetric(id="numeric", thresholds={A: 0.5}),)
    assert (found.iterations, found.repeats, found.clusters) == ({A: 3}, False, {})


def test_a_case_that_no_run_has_is_not_compared() -> None:
    then = history(base_run(1, [scored("a", 1)]), base_run(2, [scored("a", 1), scored("b", 0), scored("gone", 1)]))
    found = evidence(results(scored("a", 1), scored("b", 1), scored("new", 1)), then)
    assert list(found.first) == [A, B]
    assert [list(run) for run in found.pool] == [[A], [A, B]]


def test_the_same_data_have_the_same_seed_and_others_another() -> None:
    now, then = results(*steady(3)), past(2, steady(3))
    seeds = {evidence(run, then).seed for run in (now, now, results(*steady(3), run_id="other"))}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("now", "then", "step"), [((1, 0), (0, 1), 1.0), ((1, 0.5), (0, 1), 0.1), ((1, 0), (0.25, 1), 0.1)]
)
def test_scores_between_0_and_1_have_a_smaller_step(now: Sequence[float], then: Sequence[float], step: float) -> None:
    assert metric_of(evidence(results(scored("a", *now)), past(1, [scored("a", *then)]))).step == step


def test_cases_in_quarantine_do_not_count() -> None:
    cases = [scored("a", 1), scored("b", 1)]
    assert list(sides(results(*cases), past(1, cases), quarantined=frozenset({A})).evidence.first) == [B]


def test_further_runs_of_the_change_are_those_that_the_baseline_lacks() -> None:
    then = past(2, [scored("a", 1)])
    runs = [base_run(day, [scored("a", 0)]) for day in (5, 4)]
    own = results(scored("a", 0), run_id="now")
    now = own.model_copy(update={"pool": [*own.pool, *then.pool, *(run.pool[0] for run in runs)]})
    assert sides(now, then).runs[:-1] == ({A: {"numeric": (0,)}},) * 2


# From which score on an iteration passes


@pytest.mark.parametrize(
    ("scores", "threshold"),
    [
        ([score("numeric", 1.0, True, threshold=0.7)], 0.7),
        ([score("numeric", 1.0, True)], 0.5),
        ([score("numeric", 1.0, True, threshold=0.0)], 0.0),
    ],
)
def test_thresholds_are_those_of_the_run(scores: list[Score], threshold: float) -> None:
    found = evidence(results(made_of("a", answered(*scores))), past(1, [scored("a", 1)]))
    assert metric_of(found).thresholds == {A: threshold}


def test_a_metric_without_a_threshold_does_not_gate_unless_it_shall() -> None:
    only = made_of("a", answered(score("numeric", 1.0, None)))
    then = past(1, [only])
    assert evidence(results(only), then).metrics == ()
    found = evidence(results(only), then, policy(gating={"numeric": True}))
    assert found.metrics == (GatingMetric(id="numeric", thresholds={}),)


def test_a_case_without_any_answer_is_graded_as_it_was_before() -> None:
    before = past(1, [made_of("a", answered(score("numeric", 1.0, True, threshold=0.7)))])
    found = evidence(results(made_of("a", CRASH, status="error")), before)
    assert (found.first, metric_of(found).thresholds) == ({A: {"numeric": (0.0,)}}, {A: 0.7})


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
def test_every_turn_of_a_conversation_has_to_pass(turns: int) -> None:
    def conversation(failing: int) -> IterationResult:
        values = [0.0] * failing + [1.0] * (turns - failing)
        return iteration("passed", *(turn(score("numeric", v, v > 0), index=i) for i, v in enumerate(values)))

    now = results(made_of("a", conversation(0), conversation(1)))
    found = evidence(now, past(1, [scored("a", 1)]))
    threshold = metric_of(found).thresholds[A]
    assert [value is not None and value >= threshold for value in found.first[A]["numeric"]] == [True, False]


@pytest.mark.parametrize(("kind", "expected"), [("standard", True), ("judge", False), ("geval", False)])
def test_judged_metrics_do_not_repeat(kind: MetricKind, expected: bool) -> None:
    judged = Score(id="numeric", kind=kind, score=1.0, passed=True, status="scored")
    now = results(made_of("a", answered(judged)))
    for chosen in (policy(deterministic=True), policy(recorded=frozenset({A}))):
        assert evidence(now, past(1, [scored("a", 1)]), chosen).repeats is expected


def test_one_case_that_may_vary_is_enough() -> None:
    cases = [scored("a", 1), scored("b", 1)]
    assert not evidence(results(*cases), past(1, cases), policy(recorded=frozenset({A}))).repeats


def test_a_score_that_all_others_become_is_a_metric_too() -> None:
    def overall(run: Results) -> Results:
        return run.model_copy(
            update={"suites": [suite.model_copy(update={"threshold": 0.7}) for suite in run.suites], "pool": []}
        )

    found = evidence(overall(results(scored("a", 1, 0))), overall(past(1, [scored("a", 1, 1)])))
    assert found.first[A][OVERALL] == (1, 0)
    assert metric_of(found, OVERALL).thresholds == {A: 0.7}


def test_clusters_are_kept() -> None:
    now = results(scored("a", 1).model_copy(update={"cluster": "books"}))
    assert evidence(now, past(1, [scored("a", 1)])).clusters == {A: "books"}


# What is left out


def test_runs_that_asked_something_else_do_not_count_for_that_case() -> None:
    runs = [
        base_run(1, [scored("a", 0), scored("b", 1)], fingerprints={"a": "old"}),
        base_run(2, [scored("a", 1), scored("b", 1)]),
    ]
    given = sides(results(scored("a", 1), scored("b", 1)), history(*runs))
    assert given.evidence.pool == ({B: {"numeric": (1,)}}, {A: {"numeric": (1,)}, B: {"numeric": (1,)}})
    assert given.earlier.notes == ("the question of 1 case changed since the baseline runs: not compared",)


def test_a_removed_case_is_not_an_imported_one() -> None:
    then = past(1, [scored("a", 1), scored("gone", 1)], fingerprints={"gone": "other"})
    assert sides(results(scored("a", 1)), then).earlier.notes == ()


def test_without_fingerprints_cases_are_taken_for_the_same() -> None:
    bare = past(1, [scored("a", 0)]).model_copy(update={"pool": []})
    for now in (results(scored("a", 1)), results(scored("a", 1)).model_copy(update={"pool": []})):
        assert evidence(now, bare).pool == ({A: {"numeric": (0,)}},)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1, 1e300])
def test_invalid_scores_are_lost_with_a_note(value: float) -> None:
    then = past(1, [scored("a", 1, 1)])
    then.pool[0].cases[A].scores["numeric"].append(value)
    given = sides(results(scored("a", 1, value)), then)
    assert given.evidence.first[A]["numeric"] == (1, None)
    assert given.evidence.pool[0][A]["numeric"] == (1, 1, None)
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


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([answered(score()), CRASH], (1, 0)),
        ([answered(score()), BUSY], (1, None)),
        ([answered(score()), LIMITED], (1,)),
        ([answered(score()), answered(broken())], (1, None)),
        ([CRASH, CRASH], (0, 0)),
        ([BUSY, CRASH], (None, 0)),
        # A conversation counts as a whole.
        ([iteration("error", turn(score()), turn(error="no model", response=None, index=1))], (0,)),
        ([iteration("error", turn(score()), turn(error="503", response=None, index=1, unavailable=True))], (None,)),
    ],
)
def test_what_the_agent_fails_scores_0_and_what_is_lost_stays_missing(
    made: list[IterationResult], expected: tuple[float | None, ...]
) -> None:
    then = past(1, [scored("a", 1)])
    assert evidence(results(made_of("a", *made)), then).first[A]["numeric"] == expected
    # The same in the pool.
    earlier = past(1, [made_of("a", *made), scored("b", 1)], metrics={"a": {"numeric": "1"}})
    now = results(scored("a", 1), scored("b", 1), metrics={"a": {"numeric": "1"}})
    pooled = evidence(now, earlier).pool[0][A]["numeric"]
    assert sorted(map(str, pooled)) == sorted(map(str, (s if s is None else float(s) for s in expected)))


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        # A change that has a metric skipped may hide failures.
        ([scored("a", 1, 1)], (1, None)),
        ([scored("a", 1, 1), made_of("a", answered(score()), BUSY)], (1, None)),
        # These earlier runs have answers to which it did not apply.
        ([scored("a", 1, 1), made_of("a", answered(score()), answered(skipped()))], (1,)),
        ([made_of("a", answered(score(), score("f1")), answered(skipped(), score("f1")))], (1,)),
        ([scored("a", 0, metric="f1"), scored("a", 1, 1)], (1, None)),
    ],
)
def test_a_skipped_score_is_lost_where_the_metric_has_always_applied(
    earlier: Sequence[CaseResult], expected: tuple[float | None, ...]
) -> None:
    then = history(*(base_run(day, [made, scored("b", 1, 1)]) for day, made in enumerate(earlier, start=1)))
    now = results(made_of("a", answered(score()), answered(skipped())), scored("b", 1, 1))
    assert evidence(now, then).first[A]["numeric"] == expected


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [(scored("a", 1, 1), (1, None)), (made_of("a", answered(score()), answered(skipped())), (1,))],
)
def test_a_skipped_score_is_lost_in_further_runs_of_the_change_too(
    earlier: CaseResult, expected: tuple[float | None, ...]
) -> None:
    then = past(1, [earlier, scored("b", 1, 1)])
    leaving_out = [made_of("a", answered(score()), answered(skipped())), scored("b", 1, 1)]
    before = dated(results(*leaving_out, run_id="change-1"), 2)
    now = dated(results(*leaving_out), 3)
    now = now.model_copy(update={"pool": [*before.pool, *now.pool]})
    assert [run[A]["numeric"] for run in sides(now, then).runs] == [expected, expected]


def conversation(*scores: Score) -> IterationResult:
    return iteration("passed", *(turn(item, index=index) for index, item in enumerate(scores)))


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        # Its mean would be 1 without the turn that was skipped.
        ((score(), score()), None),
        # The second turn has no score in the baseline's run, so its configuration may be the reason.
        ((score(), skipped()), 1),
    ],
)
def test_a_conversation_is_lost_if_a_turn_is_skipped_that_was_always_scored(
    earlier: tuple[Score, Score], expected: float | None
) -> None:
    then = past(1, [made_of("a", conversation(*earlier), conversation(*earlier))])
    now = results(made_of("a", conversation(score(), skipped()), conversation(score(), score(value=0.0))))
    assert evidence(now, then).first[A]["numeric"] == (expected, 0.5)


def test_a_score_that_a_limit_left_out_is_not_lost() -> None:
    now = results(made_of("a", answered(score()), answered(not_asked("numeric"))))
    assert evidence(now, past(1, [scored("a", 1, 1)])).first[A]["numeric"] == (1,)


def test_each_metric_has_its_own_losses() -> None:
    both = made_of("a", answered(score(), broken("judge")), answered(score(), score("judge")))
    then = past(1, [case("a", scores=[{"numeric": 1.0, "judge": 1.0}])])
    assert evidence(results(both), then).first == {A: {"numeric": (1, 1), "judge": (None, 1)}}
