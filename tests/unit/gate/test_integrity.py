"""What a comparison makes of accepted, renamed and withdrawn cases."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.unit.runs import case, results

from agenteval.gate.comparer import Comparer
from agenteval.gate.comparison import decide_files
from agenteval.gate.integrity import Accepted, Integrity, digests_of, with_ids_of
from agenteval.gate.pairing import own_cases
from agenteval.gate.values import ComparePolicy
from agenteval.results.comparison import Comparison
from agenteval.results.model import Results

FILES = ComparePolicy(can_run=False)
LATER = date(2999, 1, 1)


def compared(now: Results, then: Results, *accepted: Accepted, **more: Any) -> Comparison:
    known = {found.id for _, found in now.cases()}
    return decide_files(Comparer(now, then, known, FILES, integrity=Integrity(accepted=accepted, **more)))


def entry(name: str, change: Any, run: Results) -> Accepted:
    case_id = f"agent.yaml::{name}"
    digest = digests_of(own_cases(run))[case_id]
    return Accepted(change, "on purpose", LATER, case=case_id, fingerprint=digest, author="Ann")


NAMES = [f"c{number}" for number in range(9)]
DIGESTS = {name: f"question {name}" for name in [*NAMES, "a", "b"]}
PASSED = [case(name) for name in NAMES]
THEN = results(*PASSED, case("a"), run_id="then", fingerprints=DIGESTS)
BROKEN = results(*PASSED, case("a", "failed", [{"numeric": 0.0}]), fingerprints=DIGESTS)


def test_an_accepted_regression_is_noted_and_does_not_count() -> None:
    assert compared(BROKEN, THEN).state == "suspicious"
    comparison = compared(BROKEN, THEN, entry("a", "worse", BROKEN))
    assert comparison.state == "clear"
    (found,) = [item for item in comparison.cases if item.notes]
    assert (found.name, found.notes, found.change) == ("a", ["accepted"], "same")
    assert (found.status_before, found.status_after) == ("passed", "failed")
    assert "a was accepted by Ann: on purpose" in comparison.notes


def test_an_entry_for_another_content_does_not_count() -> None:
    other = results(*PASSED, case("a"), fingerprints={**DIGESTS, "a": "another question"})
    assert compared(BROKEN, THEN, entry("a", "worse", other)).state == "suspicious"


def test_a_removed_case_is_unproven_unless_accepted_or_gone_in_the_base() -> None:
    now = results(*PASSED, fingerprints=DIGESTS)
    assert compared(now, THEN).state == "unproven"
    assert compared(now, THEN, entry("a", "removed", THEN)).state == "clear"
    integrity = Integrity(base_cases=frozenset(own_cases(now)))
    assert integrity.gone_before(THEN) == {"agent.yaml::a"}
    assert Integrity().gone_before(THEN) == frozenset()


@pytest.mark.parametrize(("accepted_mean", "word"), [("0.9000", "clear"), ("0.9600", "unproven")])
def test_an_accepted_mean_covers_no_further_fall(accepted_mean: str, word: str) -> None:
    now = results(*(case(name, scores=[{"numeric": 0.9}]) for name in NAMES), fingerprints=DIGESTS)
    then = results(*PASSED, run_id="then", fingerprints=DIGESTS)
    assert compared(now, then).state == "unproven"
    mean = Accepted("worse", "shorter answers", LATER, metric="numeric", before="1.0", after=accepted_mean)
    comparison = compared(now, then, mean)
    assert comparison.state == word
    note = "the mean of numeric (1.00 → 0.90) was accepted: shorter answers"
    assert (note in comparison.notes) is (word == "clear")
    lower = "the mean of numeric is 0.90, and only 0.9600 was accepted"
    assert (lower in comparison.notes) is (word == "unproven")


def test_a_renamed_case_keeps_its_history() -> None:
    now = results(*PASSED, case("b", "failed", [{"numeric": 0.0}]), fingerprints={**DIGESTS, "b": DIGESTS["a"]})
    then = with_ids_of(now, THEN)
    assert [found.id for _, found in then.cases()][-1] == "agent.yaml::b"
    assert set(then.baseline_runs[0].cases) == set(own_cases(now))
    found = compared(now, then)
    assert found.state == "suspicious"
    assert {item.change for item in found.cases} == {"same"}
    # Another content is another case.
    other = results(*PASSED, case("b"), fingerprints=DIGESTS)
    assert with_ids_of(other, THEN) is THEN
