"""The words of a decision follow from its figures, whatever was decided, and on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.agreement import Figures, check, form_of
from tests.unit.compare.regression.golden import world
from tests.unit.compare.regression.worlds import Driver, evidence_of

from agenteval.compare.compared import Compared
from agenteval.compare.regression.decide import decide, decide_rise
from agenteval.compare.regression.model import Answer, Burden, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.on_files import decide_on_files
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.statistical import compared_metric, unproven_points
from agenteval.compare.words import words_of

SETTINGS = GateSettings(draws=499, exact_limit=1024, head_to_head_calls=0)
_OFF = Unavailable("runs", "nothing runs again")
_BROKEN = Unavailable("control", "the base cannot be built")

Gate = Generator[Request, Answer | Unavailable, Decision]


def _burden(evidence: Evidence) -> Burden:
    return Burden(means={"m0": 0.2}, cases={("m0", case): 0.9 for case in list(evidence.first)[:2]})


def _without_control(asked: Request) -> Unavailable | None:
    return _BROKEN if "control" in asked.sides else None


def _limited(asked: Request) -> Unavailable | None:
    return _OFF if asked.stage == "head-to-head" else None


#: Ways to a decision: the gate, and why it does not get its runs.
WAYS: dict[str, tuple[Callable[[Evidence], Gate], Callable[[Request], Unavailable | None]]] = {
    "side by side": (lambda found: decide(found, SETTINGS), lambda _: None),
    "with a burden": (lambda found: decide(found, SETTINGS, _burden(found)), lambda _: None),
    "a rise": (lambda found: decide_rise(found, SETTINGS), lambda _: None),
    "off": (lambda found: decide(found, SETTINGS), lambda _: _OFF),
    "no control": (lambda found: decide(found, SETTINGS), _without_control),
    "a limit": (lambda found: decide(found, SETTINGS), _limited),
}


def _decision(number: int, way: str) -> tuple[Decision, Compared]:
    """A decision that is put into words; one about a rise is only if it is proven."""
    made = world(number)
    evidence = evidence_of(made.first, made.pool, made.thresholds, seed=number, units=made.units)
    compared = Compared(control="0123456789", runs=len(made.pool), is_final=way == "files", least=SETTINGS.min_effect)
    if way == "files":
        return decide_on_files(evidence, (), SETTINGS), compared
    gate, refused = WAYS[way]
    driver = Driver(
        {"current": made.agent(is_control=False), "control": made.agent(is_control=True)}, refused=refused
    )
    decision = driver.run(gate(evidence))
    if way == "a rise" and decision.verdict != "improved":
        return _decision(number, "side by side")
    return decision, compared


def _agree(decision: Decision, compared: Compared) -> None:
    for finding in decision.metrics:
        metric = compared_metric(decision, finding, compared, 3)
        check(metric.reason, Figures.of(metric))
        # A red by a mean is an interval below 0, and the other way round, but for drops that are too small to count.
        if finding.interval is not None and finding.stage == "head-to-head" and decision.verdict != "improved":
            is_large = finding.current - finding.control <= -SETTINGS.min_effect + 1e-9
            assert finding.proven == (finding.interval[1] < 0 and is_large)
        moved = [case.current - case.control for case in finding.moved]
        sign = 1 if decision.verdict == "improved" else -1
        assert all(sign * move > 0 for move in moved)
        assert moved == sorted(moved, key=lambda move: -sign * move)
        assert bool(moved) == finding.proven
    for case in decision.cases:
        if case.q is not None and case.limit is not None:
            assert case.proven == (case.q <= case.limit + 1e-9)
    _headline_names_what_decided(decision, compared)


def _headline_names_what_decided(decision: Decision, compared: Compared) -> None:
    said = words_of(decision, compared)
    headline = said["headline"]
    assert len(headline) <= 250
    assert "`" not in said["reason"] + headline
    assert (headline == "no regression") == (decision.verdict == "unchanged")
    assert bool(unproven_points(decision, compared)) == (decision.verdict == "unproven")
    if decision.verdict in {"regressed", "improved"}:
        for finding in decision.metrics:
            assert finding.proven or finding.metric not in headline.split()
        proven = {case.case_id for case in decision.cases if case.proven}
        for case in decision.cases:
            assert case.case_id in proven or f"'{case.case_id}'" not in headline
        assert proven or any(finding.proven for finding in decision.metrics)


@given(number=st.integers(0, 100_000), way=st.sampled_from([*WAYS, "files"]))
def test_no_sentence_contradicts_a_number(number: int, way: str) -> None:
    _agree(*_decision(number, way))


@pytest.mark.long
def test_every_sentence_occurs_among_real_decisions() -> None:
    said: Counter[str] = Counter()
    for number in range(60):
        for way in [*WAYS, "files"]:
            decision, compared = _decision(number, way)
            _agree(decision, compared)
            said.update(
                form_of(compared_metric(decision, finding, compared, 3).reason)[0] for finding in decision.metrics
            )
    # The others are rare.
    assert set(said) >= {"moved", "carried", "repeated", "second", "beside", "open", "like before", "earlier"}, said


def test_a_drop_that_is_too_small_to_count_is_not_called_unproven() -> None:
    decision, compared = next(
        found
        for number in range(200)
        if (found := _decision(number, "side by side"))[0].metrics
        and found[0].metrics[0].proven
        and found[0].metrics[0].stage == "head-to-head"
    )
    small = replace(decision.metrics[0], proven=False, moved=())
    decision = replace(decision, verdict="unchanged", metrics=(small,), cases=())
    metric = compared_metric(decision, small, compared, 3)
    assert "which does not count" in metric.reason
    check(metric.reason, Figures.of(metric))


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        (Figures("unchanged", -2.0, p=0.06, limit=0.1, bound=3.0), "m 90.0, base 92.0 (10 runs)"),
        (Figures("regressed", -2.0, (-4.0, 1.0), 0.2, 0.01), "m fell: side by side with x it scored 2 points less "
         "(1 run a side; at least 1 point, p = 0.2, needed ≤ 0.01)"),
        (Figures("unchanged", 2.0), "the first run of m looked worse (+2.0 points); "
         "a second run did not confirm it (+2.0)"),
        (Figures("unchanged", 2.0, (-4.0, -1.0), 0.001, 0.01), "the first run of m looked worse (−2.0 points); "
         "side by side with x that is not proven (+2.0, between −4.0 and −1.0)"),
    ],
)  # fmt: skip
def test_the_check_itself_finds_contradictions(figures: Figures, sentence: str) -> None:
    with pytest.raises(AssertionError):
        check(sentence, figures)
