"""Which stored answers are scored again by which metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runs import iteration, score, turn

from agenteval.gate.run_scores import baseline_case
from agenteval.results.case import CaseResult, IterationResult, Shortened, ToolCall
from agenteval.results.comparison import BaselineCase
from agenteval.run.rescore import rescorable, why_not_whole
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import OVERALL, Case, MetricConfig, Turn

ROUGE = MetricConfig("rouge", "rouge", "standard", 0.5, options={"variant": "rouge1"})
OTHER_ROUGE = replace(ROUGE, options={"variant": "rougeL"})
JUDGE = MetricConfig("quality", "judge", "judge", 0.5, options={"prompt": "Good?"})
OTHER_JUDGE = replace(JUDGE, options={"prompt": "Bad?"})
LATENCY = MetricConfig("latency", "latency", "performance", options={"maximum": 1.0})
OTHER_LATENCY = replace(LATENCY, options={"maximum": 2.0})


def asking(*metrics: MetricConfig, question: str = "q", truth: str = "a", **keys: Any) -> Case:
    return Case("s::c", "c", (Turn(question, ground_truth=truth, metrics=metrics),), **keys)


def aggregated(*metrics: MetricConfig, threshold: float = 0.5) -> Case:
    return asking(*metrics, aggregate=Aggregate(method="average", threshold=threshold, weights={}))


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        (asking(ROUGE), asking(ROUGE), set()),
        (asking(ROUGE), asking(OTHER_ROUGE), {"rouge"}),
        (asking(ROUGE), asking(replace(ROUGE, threshold=0.9)), {"rouge"}),
        (asking(ROUGE), asking(replace(ROUGE, response_path="$.a")), {"rouge"}),
        (asking(ROUGE, JUDGE), asking(ROUGE, JUDGE, truth="b"), {"rouge"}),
        (asking(ROUGE, JUDGE), asking(OTHER_ROUGE, OTHER_JUDGE), {"rouge"}),
        (asking(JUDGE), asking(OTHER_JUDGE), set()),
        (asking(JUDGE), asking(replace(ROUGE, id="quality")), {"quality"}),
        (asking(replace(ROUGE, id="quality")), asking(JUDGE), set()),
        (asking(ROUGE), asking(OTHER_ROUGE, question="other"), set()),
        (asking(ROUGE), asking(ROUGE, replace(ROUGE, id="added")), set()),
        (asking(ROUGE, metrics=(LATENCY,)), asking(ROUGE, metrics=(OTHER_LATENCY,)), {"latency"}),
        # One id in two places: one of them needs a judge.
        (asking(ROUGE), asking(OTHER_ROUGE, metrics=(replace(LATENCY, id="rouge", type="consistency"),)), set()),
        (aggregated(ROUGE, JUDGE), aggregated(OTHER_ROUGE, JUDGE), {"rouge", OVERALL}),
        (aggregated(ROUGE, JUDGE), aggregated(ROUGE, JUDGE, threshold=0.9), {OVERALL}),
        (aggregated(ROUGE, JUDGE), aggregated(OTHER_ROUGE, OTHER_JUDGE), {"rouge"}),
        (aggregated(ROUGE, JUDGE), aggregated(OTHER_ROUGE), {"rouge"}),
    ],
)
def test_the_metrics_that_score_again(before: Case, now: Case, names: set[str]) -> None:
    assert rescorable(now, baseline_case(before.fingerprints, {})) == names


@pytest.mark.parametrize("then", [None, *(BaselineCase(fingerprint=text, scores={}) for text in ("", "x"))])
def test_an_unknown_question_is_not_scored_again(then: BaselineCase | None) -> None:
    assert rescorable(asking(ROUGE), then) == frozenset()


CUT = {"response": Shortened(characters=9, bytes=9, sha256="0")}
OK = iteration("passed", turn(score()))


@pytest.mark.parametrize(
    ("iterations", "why"),
    [
        ([OK], None),
        ([OK, iteration("error", turn(response=None, error="boom"), index=1)], None),
        ([iteration("passed", turn(score(), shortened={"input": CUT["response"]}))], None),
        ([], "missing"),
        ([OK, OK], "missing"),
        ([iteration("passed", turn(score(), index=1))], "missing"),
        ([iteration("passed", turn(score()), turn(score(), index=1))], "missing"),
        ([iteration("passed", turn(score(), response=None))], "missing"),
        ([iteration("passed", turn(score(), shortened=CUT))], "shortened"),
        ([iteration("passed", turn(score(), shortened={"tool_calls": CUT["response"]}))], "shortened"),
        ([iteration("passed", turn(score(), response="the key is ***"))], "masked"),
        ([iteration("passed", turn(score(), tool_calls=[ToolCall(name="t", args={"key": ["***"]})]))], "masked"),
        ([iteration("passed", turn(score(), retrieval_context=["***"]))], "masked"),
        ([OK, iteration("passed", turn(score(), response="***"), index=1)], "masked"),
    ],
)
def test_only_whole_answers_are_scored_again(iterations: list[IterationResult], why: str | None) -> None:
    stored = CaseResult(id="s::c", name="c", status="passed", score=1.0, iterations=iterations)
    found = why_not_whole(asking(ROUGE), stored)
    assert found is None if why is None else why in str(found)
