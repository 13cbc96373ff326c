"""Requests of a confirmation: the cases of both sides, their scores, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.compare.policy import ConfirmationLimits
from agenteval.compare.regression.model import Request, Scores, Side
from agenteval.core.llm.budget import Limits
from agenteval.results.case import CaseResult, IterationResult, Score, SuiteResult, TurnResult
from agenteval.run.confirm.requests import FinishedRuns, request_key
from agenteval.run.confirm.round import Round, comparable
from agenteval.run.confirm.spent import Spent, narrowed, refusal
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.control import ControlCase
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import OVERALL, AgentSpec, Case, MetricConfig, Suite, Turn

CURRENT = AgentSpec(kind="command", target=("new",), directory="here")
CONTROL = AgentSpec(kind="command", target=("old",), directory="there")
BOTH: tuple[Side, ...] = ("current", "control")


def case(name: str, question: str = "q", **thresholds: float) -> Case:
    metrics = tuple(
        MetricConfig(id=metric, type=metric, kind="standard", threshold=threshold)
        for metric, threshold in (thresholds or {"exact": 0.5}).items()
    )
    return Case(id=f"s::{name}", name=name, turns=(Turn(input=question, metrics=metrics),))


def suite_of(cases: list[Case]) -> Suite:
    return Suite(path="s", name="s", format="holodeck", cases=tuple(cases))


def planned(cases: list[Case], iterations: int = 3) -> list[PlannedCase]:
    return [PlannedCase(suite_of(cases), item, CURRENT, iterations) for item in cases]


def control(cases: list[Case]) -> dict[str, ControlCase]:
    return {item.id: ControlCase(suite_of(cases), item, CONTROL) for item in cases}


def whole(iterations: dict[str, int], sides: tuple[Side, ...] = BOTH) -> Request:
    return Request(stage="head-to-head", sides=sides, iterations=iterations, is_whole=True)


def reruns(iterations: dict[str, int], sides: tuple[Side, ...] = BOTH) -> Request:
    return Request(stage="cases", sides=sides, iterations=iterations, is_whole=False)


def sides(items: list[PlannedCase]) -> list[str]:
    return ["P" if item.agent.target == ("new",) else "C" for item in items]


@given(count=st.integers(0, 9), iterations=st.integers(1, 5), known=st.integers(0, 9))
def test_sides_alternate_and_every_run_is_a_separate_session(count: int, iterations: int, known: int) -> None:
    cases = [case(str(number)) for number in range(count)]
    made = Round(whole(dict.fromkeys((item.id for item in cases), iterations)), "run.1")
    items = list(made.planned(planned(cases), control(cases[:known]), {}))
    for place, item in enumerate(cases):
        pair = [found for found in items if found.origin == item.id]
        expected = ["P", "C"] if place < known else ["P"]
        assert sides(pair) == (expected if place % 2 == 0 else expected[::-1])
        assert {(found.iterations, found.first_iteration) for found in pair} == {(iterations, 3)}
        # Both sides wait in the queue of the agent under test.
        assert len({id(found.beside or found.agent) for found in pair}) == 1
    assert len({item.case.id for item in items}) == len(items)
    assert {item.agent.env["AGENTEVAL_SESSION"] for item in items} <= {"run.1.current", "run.1.control"}
    assert len({id(item.agent) for item in items}) == len({item.agent.target for item in items})


def test_only_requested_cases_and_sides_run() -> None:
    cases = [case("a"), case("b"), case("c")]
    request = reruns({"s::b": 4}, ("control",))
    (item,) = Round(request, "run.2").planned(planned(cases), control(cases), {"s::b": 6})
    assert (item.origin, sides([item]), item.iterations, item.first_iteration) == ("s::b", ["C"], 4, 6)


@pytest.mark.parametrize(
    ("theirs", "metrics"),
    [
        pytest.param(case("a", exact=0.5, f1=0.5), {"exact", "f1"}, id="equal"),
        pytest.param(case("a", exact=0.5, f1=0.9), {"exact"}, id="another threshold"),
        pytest.param(case("a", exact=0.5), {"exact"}, id="a metric less"),
        pytest.param(case("a", exact=0.5, f1=0.5, rouge=0.5), {"exact", "f1"}, id="a metric more"),
        pytest.param(case("a", "another question", exact=0.5, f1=0.5), None, id="another question"),
        pytest.param(case("a", rouge=0.5), None, id="no metric in common"),
    ],
)
def test_a_case_of_the_control_is_compared_by_what_it_shares(theirs: Case, metrics: set[str] | None) -> None:
    found = comparable(theirs, case("a", exact=0.5, f1=0.5))
    assert (None if found is None else {metric.id for metric in found.all_metrics}) == metrics


ROUGE = MetricConfig("rouge", "rouge", "standard", 0.5, options={"variant": "rouge1"})
OTHER_ROUGE = replace(ROUGE, options={"variant": "rougeL"})
JUDGE = MetricConfig("quality", "judge", "judge", 0.5, options={"prompt": "Good?"})
OTHER_JUDGE = replace(JUDGE, options={"prompt": "Bad?"})
LATENCY = MetricConfig("latency", "latency", "performance", options={"maximum": 1.0})
OTHER_LATENCY = replace(LATENCY, options={"maximum": 2.0})


def expecting(truth: str, *metrics: MetricConfig, **keys: Any) -> Case:
    return Case("s::c", "c", (Turn("q", ground_truth=truth, metrics=metrics),), **keys)


def weighed(*metrics: MetricConfig, threshold: float = 0.5) -> Case:
    return expecting("a", *metrics, aggregate=Aggregate(method="average", threshold=threshold, weights={}))


@pytest.mark.parametrize(
    ("theirs", "ours", "metrics"),
    [
        pytest.param(expecting("a", ROUGE), expecting("a", OTHER_ROUGE), [OTHER_ROUGE], id="another variant"),
        pytest.param(expecting("a", ROUGE), expecting("b", ROUGE), [ROUGE], id="another expected answer"),
        pytest.param(
            expecting("a", JUDGE, ROUGE), expecting("a", JUDGE, OTHER_ROUGE), [JUDGE, OTHER_ROUGE], id="one"
        ),
        pytest.param(expecting("a", JUDGE, ROUGE), expecting("b", OTHER_JUDGE, ROUGE), [ROUGE], id="a judge"),
        pytest.param(
            expecting("a", ROUGE, metrics=(LATENCY,)),
            expecting("a", ROUGE, metrics=(OTHER_LATENCY,)),
            [ROUGE, OTHER_LATENCY],
            id="over iterations",
        ),
        pytest.param(weighed(ROUGE), weighed(OTHER_ROUGE), [OTHER_ROUGE], id="aggregated"),
        pytest.param(weighed(ROUGE), weighed(ROUGE, threshold=0.9), [ROUGE], id="another aggregation"),
        pytest.param(weighed(ROUGE, JUDGE), weighed(OTHER_ROUGE, OTHER_JUDGE), [OTHER_ROUGE], id="no aggregation"),
    ],
)
def test_metrics_that_need_an_answer_score_both_sides_by_the_same_rules(
    theirs: Case, ours: Case, metrics: list[MetricConfig]
) -> None:
    found = comparable(theirs, ours)
    assert found is not None
    assert list(found.all_metrics) == metrics
    assert found.turns[0].ground_truth == ours.turns[0].ground_truth
    prints = ours.fingerprints.metrics
    whole = len(metrics) == len(ours.all_metrics)
    assert found.aggregate == (ours.aggregate if whole else None)
    assert found.fingerprints.metrics == {name: prints[name] for name in found.fingerprints.metrics}


def result(name: str, *scores: float | None, unavailable: bool = False) -> CaseResult:
    def turn(score: float | None) -> TurnResult:
        if score is None:
            return TurnResult(
                index=0, input="q", ground_truth=None, response=None, error="no", unavailable=unavailable
            )
        scored = Score(id="exact", kind="standard", score=score, passed=None, status="scored")
        return TurnResult(index=0, input="q", ground_truth=None, response="r", scores=[scored])

    iterations = [
        IterationResult(index=index, status="passed", score=score, turns=[turn(score)])
        for index, score in enumerate(scores)
    ]
    return CaseResult(id=f"s::{name}", name=name, status="passed", score=None, iterations=iterations)


def scores_of(finished: FinishedRuns, side: Side, threshold: float | None = None) -> Scores:
    suite = SuiteResult(path="s", name="s", format="holodeck", fingerprint="f", threshold=threshold, cases=[])
    return finished.scores(side, {"s": suite}, {"s::a": ("exact",), "s::b": ("exact",)})


def test_a_failed_iteration_scores_0_and_a_lost_one_keeps_its_place() -> None:
    finished = FinishedRuns({"current": (("s", result("a", 1.0, None, 0.0)), ("s", result("b", None)))})
    assert scores_of(finished, "current") == {"s::a": {"exact": (1.0, 0.0, 0.0)}, "s::b": {"exact": (0.0,)}}
    assert scores_of(finished, "control") == {}
    assert scores_of(finished, "current", 0.5)["s::a"][OVERALL] == (1.0, 0.0, 0.0)
    lost = FinishedRuns({"control": (("s", result("a", 1.0, None, unavailable=True)),)})
    assert scores_of(lost, "control") == {"s::a": {"exact": (1.0, None)}}


def test_a_conversation_with_a_skipped_turn_is_lost_on_both_sides() -> None:
    turns = [
        TurnResult(
            index=index,
            input="q",
            ground_truth=None,
            response="r",
            scores=[Score(id="exact", kind="standard", score=score, passed=None, status=status)],
        )
        for index, (score, status) in enumerate([(1.0, "scored"), (None, "skipped")])
    ]
    partly = [IterationResult(index=0, status="passed", score=1.0, turns=turns)]
    case = result("a", 1.0).model_copy(update={"iterations": partly})
    finished = FinishedRuns({"current": (("s", case),), "control": (("s", case),)})
    suites = {"s": SuiteResult(path="s", name="s", format="holodeck", fingerprint="f", cases=[])}
    for side in finished.cases:
        found = finished.scores(side, suites, {"s::a": ("exact",)}, {"s::a": {"exact": 2}})
        assert found == {"s::a": {"exact": (None,)}}
        assert finished.scores(side, suites, {}, {"s::a": {"exact": 1}}) == {"s::a": {"exact": (1.0,)}}


def test_equal_requests_have_equal_keys() -> None:
    requests = [
        whole({"a": 1}),
        whole({"a": 1}, ("current",)),
        whole({"a": 2}),
        reruns({"a": 1}),
        reruns({"a": 2}),
        reruns({"a": 1}, ("current",)),
    ]
    keys = [str(request_key(request)) for request in requests]
    assert len(set(keys)) == len(keys)
    assert request_key(reruns({"a": 1, "b": 2})) == request_key(reruns({"b": 2, "a": 1}))


@pytest.mark.parametrize(
    ("limits", "spent", "wanted", "said"),
    [
        (ConfirmationLimits(), Spent(10_000), 10_000, ""),
        (ConfirmationLimits(runs=8), Spent(776), 24, ""),
        (
            ConfirmationLimits(runs=8),
            Spent(777),
            24,
            "{runs: 8}` ended the confirmation (777 calls were made, 24 more are needed; one run of the suite",
        ),
        (ConfirmationLimits(calls=100), Spent(76), 24, ""),
        (
            ConfirmationLimits(calls=99),
            Spent(76),
            24,
            "{calls: 99}` ended the confirmation (76 calls were made",
        ),
        (ConfirmationLimits(cost_usd=1.0), Spent(10, 0.5), 5, ""),
        (ConfirmationLimits(cost_usd=0.9), Spent(10, 0.5), 5, "about 0.50 USD more are needed"),
        (ConfirmationLimits(runs=0, calls=0), Spent(), 1, "{runs: 0}`"),
    ],
)
def test_limits_end_a_confirmation(limits: ConfirmationLimits, spent: Spent, wanted: int, said: str) -> None:
    found = refusal(limits, spent, wanted, run_calls=100, call_usd=0.1)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("models", "cost_usd", "expected"),
    [(None, None, None), (3.0, None, 3.0), (None, 2.0, 1.5), (1.0, 2.0, 1.0), (3.0, 2.0, 1.5), (3.0, 0.1, 0.0)],
)
def test_model_calls_keep_within_the_limit_of_the_confirmation(
    models: float | None, cost_usd: float | None, expected: float | None
) -> None:
    limits = replace(ConfirmationLimits(), cost_usd=cost_usd)
    found = narrowed(Limits(max_calls=7, max_cost_usd=models), limits, Spent(cost_usd=0.5))
    assert found == Limits(max_calls=7, max_cost_usd=expected)
