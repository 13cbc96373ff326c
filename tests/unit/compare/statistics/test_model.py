"""What the gate accepts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.compare.statistics.designs import case, metric

from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import GateParameters


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"confirm": "twice"}, "allowed are rerun, against-base, both, off"),
        ({"screen": 1.5}, "screen is 1.5"),
        ({"tolerance": -0.1}, "between 0 and 1"),
        ({"confidence": 1.0}, "strictly between"),
        ({"alpha_single": 0.0}, "strictly between"),
        ({"window": 0}, "window is 0"),
        ({"draws": 0}, "at least 1"),
        ({"case_drop": 0.0}, "above 0"),
        ({"chart_runs": 1}, "at least 2"),
        ({"min_repeats": 9}, "above max_repeats"),
    ],
)
def test_parameters_out_of_range(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GateParameters(**wrong)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
@pytest.mark.parametrize("side", ["current", "second", "control", "reruns", "control_reruns"])
def test_a_score_is_between_0_and_1(score: float, side: str) -> None:
    runs: dict[str, Any] = {"current": (1.0,), side: (1.0, score)}
    with pytest.raises(ValueError, match="case a has a score outside"):
        metric(CaseRuns(case_id="a", baseline=((1.0,),), **runs))


def test_a_baseline_score_is_too() -> None:
    with pytest.raises(ValueError, match="case a has a score outside"):
        metric(CaseRuns(case_id="a", current=(1.0,), baseline=((1.0,), (2.0,))))


def test_ids_are_unique() -> None:
    with pytest.raises(ValueError, match="same id"):
        metric(case("a", "1", "1"), case("a", "1", "1"))


def test_runs_are_aligned() -> None:
    with pytest.raises(ValueError, match="different numbers of baseline runs"):
        metric(case("a", "1", "1", "1"), case("b", "1", "1"))


@pytest.mark.parametrize("wrong", [{"step": 0.0}, {"step": 1.5}, {"seed": -1}])
def test_step_and_seed(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must (be|not)"):
        MetricRuns(**{"metric": "exact", "cases": (), "seed": 1, **wrong})


def test_compared_are_cases_with_scores_on_both_sides_by_id() -> None:
    quarantined = CaseRuns(case_id="q", current=(1.0,), baseline=((1.0,),), quarantined=True)
    found = metric(case("b", "1", "1"), case("new", "1", ""), case("gone", "", "1"), quarantined, case("a", "0", "1"))
    assert [c.case_id for c in found.compared] == ["a", "b"]
