"""What the gate asks for, and its word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence

import pytest

from agenteval.gate.decide import THIN, Evidence, decide, decide_improvement, decline
from agenteval.gate.proof import Ask, CannotRunError, GateOutcome
from agenteval.gate.suspicion import may_stop
from agenteval.gate.values import Constants, GateMetric, Pass, Run

_METRICS = {"m": GateMetric(0.5)}
_CASES = [f"c{number}" for number in range(10)]


def _run(failing: Collection[str] = (), passes: int = 3, value: float = 1.0) -> Run:
    return {"m": {case: [0.0 if case in failing else value] * passes for case in _CASES}}


def _play(asking: Generator[Ask, Pass, GateOutcome], answer: Callable[[Ask], Pass]) -> tuple[GateOutcome, list[Ask]]:
    """Answer a generator; return its outcome and what it asked."""
    asks: list[Ask] = []
    try:
        ask = next(asking)
        while True:
            asks.append(ask)
            try:
                seen = answer(ask)
            except CannotRunError as error:
                ask = asking.throw(error)
            else:
                ask = asking.send(seen)
    except StopIteration as end:
        return end.value, asks


def _agents(failing: Collection[str] = (), base_failing: Collection[str] = ()) -> Callable[[Ask], Pass]:
    def answer(ask: Ask) -> Pass:
        bad = failing if ask.side == "pr" else base_failing
        return {"m": {case: float(case not in bad) for case in ask.cases}}

    return answer


def test_a_run_that_is_not_lower_asks_for_nothing() -> None:
    found, asks = _play(decide(Evidence(_run(), [_run()], _METRICS)), _agents())
    assert (found.state, asks) == ("clear", [])


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("runs", range(1, 11))
def test_a_broken_case_is_proven_whatever_the_baseline(passes: int, runs: int) -> None:
    evidence = Evidence(_run({"c3"}, passes), [_run(passes=passes)] * runs, _METRICS)
    found, asks = _play(decide(evidence), _agents({"c3"}))
    assert found.state == "proven"
    assert [(test.case, test.failed, test.base_failed) for test in found.proofs] == [("c3", 8, 0)]
    assert {ask.cases for ask in asks if ask.stage == "beside"} == {("c3",)}, "only this case is asked"


def test_a_case_that_passes_again_is_cleared_by_the_second_run() -> None:
    found, asks = _play(decide(Evidence(_run({"c3"}, 1), [_run(passes=1)], _METRICS)), _agents())
    assert (found.state, found.stage) == ("cleared", "second")
    assert [ask.cases for ask in asks] == [("c3",)] * 3


def test_a_bad_day_of_both_sides_is_cleared_side_by_side() -> None:
    bad = set(_CASES[:5])
    found, _ = _play(decide(Evidence(_run(bad), [_run()] * 5, _METRICS)), _agents(bad, bad))
    assert (found.state, found.stage) == ("cleared", "beside")


def test_a_mean_without_threshold_is_proven() -> None:
    evidence = Evidence(_run(value=0.7), [_run(value=0.9)] * 3, {"m": GateMetric()})
    found, _ = _play(decide(evidence), lambda ask: {"m": dict.fromkeys(ask.cases, 0.7 if ask.side == "pr" else 0.9)})
    assert found.state == "proven"
    test = found.proofs[0]
    assert test.difference == pytest.approx(-0.2)
    assert test.here == pytest.approx([0.7] * len(test.here))


def test_the_base_that_cannot_run_leaves_unproven_what_never_passes() -> None:
    def answer(ask: Ask) -> Pass:
        if ask.side == "base":
            raise CannotRunError("its setup fails", "outside", "base")
        return _agents({"c3"})(ask)

    found, asks = _play(decide(Evidence(_run({"c3"}, 1), [_run(passes=1)] * 2, _METRICS)), answer)
    assert (found.state, found.stage, found.why) == ("unproven", "alone", "its setup fails")
    assert sum(ask.stage == "alone" for ask in asks) == 5


def test_a_budget_that_ends_leaves_unproven() -> None:
    def answer(ask: Ask) -> Pass:
        raise CannotRunError("the budget is used up")

    found, _ = _play(decide(Evidence(_run({"c3"}), [_run()], _METRICS)), answer)
    assert (found.state, found.why, found.mended_by) == ("unproven", "the budget is used up", "outside")


def test_files_alone_are_suspicious() -> None:
    found, asks = _play(decide(Evidence(_run({"c3"}, 1), [_run(passes=1)] * 3, _METRICS, can_run=False)), _agents())
    assert (found.state, asks) == ("suspicious", [])
    found, _ = _play(decide(Evidence(_run({"c3"}), [_run()] * 10, _METRICS, can_run=False)), _agents())
    assert found.state == "unproven"


def test_an_outage_of_the_base_clears_nothing() -> None:
    def answer(ask: Ask) -> Pass:
        return {"m": dict.fromkeys(ask.cases, None if ask.side == "base" else 0.0)}

    found, _ = _play(decide(Evidence(_run({"c3"}), [_run()], _METRICS)), answer)
    assert (found.state, found.why) == ("unproven", THIN)


def test_failures_that_become_losses_are_found() -> None:
    lost = set(_CASES[:4])
    first = {"m": {case: [None if case in lost else 1.0] * 3 for case in _CASES}}

    def answer(ask: Ask) -> Pass:
        return {"m": {case: None if case in lost and ask.side == "pr" else 1.0 for case in ask.cases}}

    found, _ = _play(decide(Evidence(first, [_run()] * 5, _METRICS)), answer)
    assert found.state == "proven"
    assert {test.metric for test in found.proofs} == {"answered"}


@pytest.mark.parametrize("more", range(9))
def test_more_failures_never_clear_a_case(more: int) -> None:
    """A case that is proven stays proven if any further pass of the change fails."""
    failing = [True] * 8

    def word(fails: Sequence[bool]) -> str:
        made = iter(fails)

        def answer(ask: Ask) -> Pass:
            bad = ask.side == "pr" and (ask.stage != "beside" or next(made, True))
            return {"m": dict.fromkeys(ask.cases, 0.0 if bad else 1.0)}

        return _play(decide(Evidence(_run({"c3"}), [_run()] * 3, _METRICS)), answer)[0].state

    fewer = [number < more for number in range(8)]
    order = ["cleared", "proven"]
    assert order.index(word(failing)) >= order.index(word(fewer))


def test_an_improvement_is_proven_by_turned_scores() -> None:
    metrics = {"m": GateMetric(1.0)}
    evidence = Evidence(_run(), [_run({"c3"})] * 3, metrics)
    found, _ = _play(decide_improvement(evidence), _agents(base_failing={"c3"}))
    assert found.state == "proven"
    assert found.proofs[0].case == "c3"
    assert _play(decide(evidence), _agents())[0].state == "clear"


def test_a_slow_decline_is_proven() -> None:
    def answer(ask: Ask) -> Pass:
        return {"m": dict.fromkeys(ask.cases, 0.8 if ask.side == "pr" else 0.9)}

    runs = [_run(value=0.9)] * 3, [_run(value=0.8)] * 3
    found, _ = _play(decline(runs[1], runs[0], {"m": GateMetric()}), answer)
    assert found.state == "proven"
    assert _play(decline(runs[0], runs[0], {"m": GateMetric()}), answer)[0].state == "clear"


def test_a_first_run_stops_where_nothing_looks_low() -> None:
    assert may_stop(_run(passes=1), [_run()], _METRICS, Constants())
    assert not may_stop(_run({"c3"}, passes=1), [_run()], _METRICS, Constants())
