"""Which cases earlier runs settle, and how a first run that asks them once is judged."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Evidence, GatingMetric, Request, Scores
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.settled import settled_cases

ONES, ZEROS = (1.0,) * 3, (0.0,) * 3


def runs(*scores: Sequence[float | None] | None) -> list[Scores]:
    """Runs of the case a with these scores, where it exists, beside the case b, which never varies."""
    return [{"b": {"m": ONES * 20}, **({} if row is None else {"a": {"m": tuple(row)}})} for row in scores]


def test_a_case_is_settled_if_nine_earlier_iterations_scored_the_same() -> None:
    table = {
        "always passed": (runs(ONES, ONES, ONES), True),
        "always failed": (runs(ZEROS, ZEROS, ZEROS), True),
        "always half": (runs((0.5,) * 9), True),
        "too few": (runs(ONES, ONES, (1.0, 1.0)), False),
        "one other": (runs(ONES, (1.0, 0.0, 1.0), ONES, ONES), False),
        "lost one": (runs(ONES, ONES, ONES, (1.0, None, 1.0)), False),
        "only lost": (runs((None,)), False),
        "new since": (runs(ONES, ONES, ONES, None), True),
        "in no run": (runs(None, None, None), False),
        "without a run": ([], False),
    }
    wrong = {name for name, (pool, expected) in table.items() if ("a" in settled_cases(pool)) is not expected}
    assert not wrong


def test_every_metric_of_a_case_must_be_settled() -> None:
    pool = [{"a": {"m": ONES * 3, "n": (0.5,) * 8 + (0.6,)}, "b": {"m": ONES * 3, "n": (0.5,) * 9}, "c": {}}]
    assert settled_cases(pool) == {"b"}


def test_no_case_is_settled_if_earlier_runs_lost_more_than_one_in_a_hundred() -> None:
    row = (1.0,) * 100
    few: Scores = {"a": {"m": row}, "b": {"m": (*row[:98], None, None)}}
    more: Scores = {"a": {"m": row}, "b": {"m": (*row[:97], None, None, None)}}
    assert settled_cases([few]) == {"a"}
    assert settled_cases([more]) == set()


def evidence(first: Scores, *, is_staged: bool = True) -> Evidence:
    cases = [f"c{number:02}" for number in range(30)]
    return Evidence(
        metrics=(GatingMetric(id="m", thresholds=dict.fromkeys(cases, 0.5)),),
        first=first,
        pool=({case: {"m": ONES} for case in cases},) * 3,
        iterations=dict.fromkeys(cases, 3),
        is_staged=is_staged,
        seed=1,
    )


def test_a_case_that_fails_its_only_iteration_runs_again_and_a_second_run_is_whole() -> None:
    first = {f"c{number:02}": {"m": (0.0,) if number == 7 else (1.0,)} for number in range(30)}
    request = next(decide(evidence(first), GateSettings()))
    # Nothing varies: each changed case repeats on both sides.
    assert request == Request(stage="repeats", sides=("current", "control"), iterations={"c07": 3}, is_whole=False)
    worse = {case: {"m": (0.0,) if int(case[1:]) % 3 == 0 else (1.0,)} for case in first}
    varying = evidence(worse)
    pool = ({**varying.pool[0], "c29": {"m": (1.0, 0.0, 1.0)}}, *varying.pool[1:])
    gate = decide(Evidence(**{**vars(varying), "pool": pool}), GateSettings(max_cases=0))
    second = next(gate)
    assert (second.stage, second.is_whole, len(second.iterations)) == ("second", True, 30)


def varying(failing: int, *, asked: int, is_staged: bool) -> Evidence:
    """Evidence of 60 cases: half of them fail now and then in the pool, and so many of these in the first run."""
    cases = [f"c{number:02}" for number in range(60)]
    pool = tuple(
        {
            case: {"m": tuple(float(number % 2 or (number + 3 * run + again) % 5 > 0) for again in range(3))}
            for number, case in enumerate(cases)
        }
        for run in range(4)
    )
    first = {
        case: {"m": (0.0 if number % 2 == 0 and number < 2 * failing else 1.0,) * (3 if number % 2 == 0 else asked)}
        for number, case in enumerate(cases)
    }
    return Evidence(
        metrics=(GatingMetric(id="m", thresholds={}),),
        first=first,
        pool=pool,
        iterations=dict.fromkeys(cases, 3),
        is_staged=is_staged,
        seed=1,
    )


def suspicious(given: Evidence) -> bool:
    gate = decide(given, GateSettings(tolerance=0.01))
    try:
        return next(gate).stage == "second"
    except StopIteration:
        return False


def test_a_staged_first_run_is_suspicious_a_little_earlier() -> None:
    found = {
        is_staged: [suspicious(varying(failing, asked=1, is_staged=is_staged)) for failing in range(16)]
        for is_staged in (True, False)
    }
    assert all(staged or not whole for staged, whole in zip(found[True], found[False], strict=True))
    assert sum(found[True]) > sum(found[False]) > 0


def test_a_staged_first_run_excludes_less() -> None:
    found = []
    for asked, is_staged in ((3, False), (1, True)):
        gate = decide(varying(5, asked=asked, is_staged=is_staged), GateSettings(tolerance=0.03))
        try:
            raise AssertionError(next(gate))
        except StopIteration as stop:
            (metric,) = stop.value.metrics
            found.append(metric)
    whole, staged = found
    assert (whole.finer is not None, staged.finer) == (True, None)
    assert 0 < whole.bound < staged.bound
