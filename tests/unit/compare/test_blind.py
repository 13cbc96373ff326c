"""Suites that are too small for a suspicion about a mean are said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.unit.compare.regression.worlds import Driver, evidence_of, fixed

from agenteval.compare.blind import blind_notes
from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Unavailable
from agenteval.compare.regression.power import Blind, blind
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings

SETTINGS = GateSettings()
REFUSED = Unavailable("runs", "nothing runs again")


def test_a_suite_is_blind_exactly_if_the_largest_drop_raises_no_suspicion() -> None:
    generator = np.random.default_rng(1)
    for settings in NAMED_SETTINGS.values():
        for units in range(1, 5):
            for runs in range(1, 9):
                # The pool varies a little, so that the agent does not seem to repeat its answers.
                pool = [[generator.uniform(0.9, 1.0, (units, 2))] for _ in range(runs)]
                first = [generator.uniform(0.0, 0.1, (units, 2))]
                evidence = evidence_of(first, pool, [None])
                driver = Driver({"current": fixed(first), "control": fixed(pool[0])}, lambda _: REFUSED)
                decision = driver.run(decide(evidence, settings))
                found = blind(units, runs, settings)
                assert (decision.verdict == "unchanged") == (found is not None), (settings, units, runs)
                notes = list(blind_notes(evidence, decision, settings))
                assert len(notes) == (found is not None)


def test_the_note_says_what_would_suffice() -> None:
    assert blind(1, 2, SETTINGS) == Blind(units=1, runs=2, least_runs=5)
    assert blind(2, 1, SETTINGS) == Blind(units=2, runs=1, least_runs=2)
    assert blind(0, 0, SETTINGS) is None
    scores = [np.array([[0.5, 0.7]])]
    evidence = evidence_of(scores, [scores, [np.array([[0.6, 0.7]])]], [None])
    driver = Driver({"current": fixed(scores), "control": fixed(scores)})
    decision = driver.run(decide(evidence, SETTINGS))
    (note,) = blind_notes(evidence, decision, SETTINGS)
    assert note == (
        "the gate cannot see a drop of 'm0': 1 independent case and 2 earlier runs are too few for a suspicion; "
        "5 earlier runs, three cases or a threshold of the metric would suffice"
    )
    gating = replace(evidence, metrics=(replace(evidence.metrics[0], thresholds={"case-0000": 0.5}),))
    assert not list(blind_notes(gating, decision, SETTINGS))
    assert not list(blind_notes(evidence, replace(decision, repeats=True), SETTINGS))


def test_no_large_suite_is_blind() -> None:
    assert [blind(units, runs, SETTINGS) for units in (3, 400, 100_000) for runs in (1, 2, 10)] == [None] * 9
