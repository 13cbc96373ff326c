"""Cases: their hashes are computed on demand, and belong to one case alone."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

from agenteval.suite.model import Case, MetricConfig, Turn


def case_of(text: str) -> Case:
    metric = MetricConfig(id="equality", type="equality", kind="match", options={"b": 1, "a": [2]})
    return Case(id=f"s.yaml::{text}", name=text, turns=(Turn(text, ground_truth="yes", metrics=(metric,)),))


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    case = case_of("one")
    before = case.fingerprint
    assert replace(case, name="another", line=3).fingerprint == before
    changed = replace(case, turns=case_of("two").turns)
    assert changed.fingerprint == case_of("two").fingerprint != before
    assert case.fingerprint == before


def test_a_fingerprint_is_no_part_of_the_value() -> None:
    asked, not_asked = case_of("one"), case_of("one")
    assert asked.fingerprint
    assert (asked, hash(asked.id), repr(asked)) == (not_asked, hash(not_asked.id), repr(not_asked))


def test_copies_and_pickles_keep_it() -> None:
    for case in (case_of("one"), case_of("one")):
        for again in (copy.copy(case), copy.deepcopy(case), pickle.loads(pickle.dumps(case))):
            assert (again, again.fingerprint) == (case, case_of("one").fingerprint)
        assert case.fingerprint == case_of("one").fingerprint
