"""The verdict from the evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agenteval.compare.statistics.mean_comparison import Aggregate
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.verdict import Evidence, Verdict, judge_metric, points, worst

PARAMETERS = GateParameters()

AGGREGATE = Aggregate(
    current_mean=0.85,
    baseline_mean=0.9,
    difference=-0.05,
    interval=(-0.08, -0.02),
    p_low=0.01,
    p_high=0.99,
    p_chart=None,
    method="exact",
    cases=50,
    units=50,
    current_runs=2,
    baseline_runs=3,
    iterations=3,
)
EVIDENCE = Evidence(
    first=AGGREGATE,
    deciding=(AGGREGATE,),
    suspicious=True,
    detectable_drop=0.06,
    regressed=(),
    suspects=(),
    problem=None,
)


def test_p_is_the_largest_of_the_deciding_comparisons() -> None:
    assert replace(EVIDENCE, deciding=(AGGREGATE, replace(AGGREGATE, p_low=0.2))).p == 0.2


def test_without_a_deciding_comparison_nothing_fell() -> None:
    undecided = replace(EVIDENCE, deciding=())
    assert undecided.p == 1.0
    assert not undecided.fell(PARAMETERS)


@pytest.mark.parametrize(
    ("change", "fell"),
    [
        ({}, True),
        ({"difference": -0.01}, True),
        ({"difference": -0.009}, False),
        ({"p_chart": 0.1}, True),
        ({"p_chart": 0.11}, False),
    ],
)
def test_a_drop_must_matter_in_every_deciding_comparison(change: dict[str, float], fell: bool) -> None:
    changed = replace(AGGREGATE, **change)  # type: ignore[arg-type]
    assert replace(EVIDENCE, deciding=(changed,)).fell(PARAMETERS) is fell
    assert replace(EVIDENCE, deciding=(AGGREGATE, changed)).fell(PARAMETERS) is fell


@pytest.mark.parametrize(
    ("interval", "excluded"),
    [
        ((-0.05, 0.02), "5 points"),
        ((-0.01, 0.02), "5 points"),
        ((-0.08, 0.02), "8 points"),
        ((-0.2, -0.1), "20 points"),
    ],
)
def test_unchanged_states_the_drop_that_is_excluded(interval: tuple[float, float], excluded: str) -> None:
    evidence = replace(EVIDENCE, deciding=(replace(AGGREGATE, interval=interval),))
    verdict, reason = judge_metric(evidence, mean_regressed=False, alpha_improved=0.04, parameters=PARAMETERS)
    assert verdict == "unchanged"
    assert reason.startswith(f"a drop of more than {excluded} is excluded: ")


@pytest.mark.parametrize(
    ("p", "gain", "alpha", "verdict"),
    [
        (0.04, 0.01, 0.04, "improved"),
        (0.04, 0.01, 0.02, "unchanged"),
        (0.05, 0.01, 0.04, "unchanged"),
        (0.04, 0.009, 0.04, "unchanged"),
    ],
)
def test_improved_needs_a_gain_that_matters(p: float, gain: float, alpha: float, verdict: Verdict) -> None:
    better = replace(AGGREGATE, difference=gain, interval=(0.0, 0.02), p_low=1 - p, p_high=p)
    evidence = replace(EVIDENCE, deciding=(better,))
    assert judge_metric(evidence, mean_regressed=False, alpha_improved=alpha, parameters=PARAMETERS)[0] == verdict


def test_reasons_are_in_points() -> None:
    _, reason = judge_metric(EVIDENCE, mean_regressed=True, alpha_improved=0.04, parameters=PARAMETERS)
    assert reason == "the mean dropped by 5 points, from 0.900 to 0.850 (p = 0.01)"
    undecided = judge_metric(EVIDENCE, mean_regressed=False, alpha_improved=0.04, parameters=PARAMETERS)[1]
    assert undecided == (
        "a drop of more than 8 points is excluded: the mean changed by -8.0 to -2.0 points; "
        "a drop of 6 points would probably have been detected"
    )


@pytest.mark.parametrize(
    ("difference", "text"), [(0.01, "1 point"), (-0.025, "2.5 points"), (0.1, "10 points"), (0.0, "0 points")]
)
def test_points(difference: float, text: str) -> None:
    assert points(difference) == text


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        (["unchanged", "improved", "unproven", "regressed"], "regressed"),
        (["unchanged", "improved", "unproven"], "unproven"),
        (["unchanged", "improved"], "improved"),
        (["unchanged"], "unchanged"),
        ([], "unchanged"),
    ],
)
def test_the_worst_verdict(verdicts: list[Verdict], found: Verdict) -> None:
    assert worst(verdicts) == found
