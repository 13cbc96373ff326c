"""What people accepted on the CI host becomes entries for the changes of one commit."""

from __future__ import annotations

from datetime import date

import pytest
from tests.unit.runs import case, results

from agenteval.core.redact import Redactor
from agenteval.gate.integrity.accepted import Accepted, accepted_of, settled
from agenteval.gate.integrity.integrity import Integrity
from agenteval.results.model import Difference
from agenteval.run.context import Given, GivenAcceptance, Named, named
from agenteval.suite.model import Case, Turn

CASES = [
    Case(id=f"agent.yaml::{name}", name=name, turns=(Turn("hello"),)) for name in ("night", "night train", "a: b")
]
TWINS = [Case(id=f"{file}.yaml::twin", name="twin", turns=(Turn("hello"),)) for file in ("one", "two")]


def accepted(words: str, reason: str = "") -> Named:
    found = Given((GivenAcceptance(words, "ada", reason),), ("kept",))
    return named(found, [*CASES, *TWINS], None, Redactor({"hush-hush"}))


@pytest.mark.parametrize(
    ("words", "case", "reason"),
    [
        ("night no trains", "night", "no trains"),
        ("night train: no trains", "night train", "no trains"),
        ("night trainspotters left", "night", "trainspotters left"),
        ("agent.yaml::night because", "night", "because"),
        ("a: b: because", "a: b", "because"),
        ("night it said hush-hush", "night", "it said ***"),
    ],
)
def test_the_longest_name_counts(words: str, case: str, reason: str) -> None:
    found = accepted(words)
    assert [(entry.case, entry.change) for entry in found.entries] == [
        (f"agent.yaml::{case}", change) for change in ("edited", "removed", "regressed")
    ]
    assert {(entry.author, entry.reason) for entry in found.entries} == {("ada", reason)}
    assert found.warnings == ("kept",)


@pytest.mark.parametrize(
    ("words", "reason", "said"),
    [
        ("morning because", "", "begins with no id or name of a case"),
        ("* because", "", "begins with no id or name of a case"),
        ("nightly because", "", "begins with no id or name of a case"),
        ("night", "", "gives no reason"),
        ("night :", "", "gives no reason"),
        ("twin because", "", "2 cases have this name; give the id of one"),
        ("night train now", "a label", "begins with no id or name of a case"),
    ],
)
def test_what_is_not_clear_accepts_nothing(words: str, reason: str, said: str) -> None:
    found = accepted(words, reason)
    assert found.entries == ()
    assert said in found.warnings[1]


def test_only_the_change_that_the_case_has_is_accepted() -> None:
    entries = accepted("night", "a label").entries
    case = "agent.yaml::night"
    for kind, change in (("removed", "removed"), ("edited", "edited"), ("renamed", "regressed")):
        difference = Difference(kind=kind, case=case, effect="listed")
        assert [entry.change for entry in settled(entries, [difference])] == [change]
    assert [entry.change for entry in settled(entries, [])] == ["regressed"]
    assert accepted_of(entries, "removed", case, "any content") is entries[1]
    assert accepted_of(entries, "removed", "agent.yaml::night train", "any content") is None


def test_a_mean_is_accepted_down_to_a_limit() -> None:
    baseline = results(case("c0", scores=[{"equality": 1.0}]))
    rows = [
        # What was written, the reason of a label, the limit, the reason, the problem.
        ("equality 0.85 prices changed", "", "0.85", "prices changed", ""),
        ("equality: 0.85, prices changed", "", "0.85", "prices changed", ""),
        ("equality .5: prices changed", "", ".5", "prices changed", ""),
        ("equality 0 nothing matters", "", "0", "nothing matters", ""),
        ("equality 0.85", "a label", "0.85", "a label", ""),
        ("equality 0.85", "", "", "", "gives no reason"),
        ("equality", "a label", "", "", "write the lowest mean that is right"),
        ("equality prices changed", "", "", "", "write the lowest mean that is right"),
        ("equality 85 prices changed", "", "", "", "write the lowest mean that is right"),
        ("equality -0.1 prices changed", "", "", "", "write the lowest mean that is right"),
        ("equality nan prices changed", "", "", "", "write the lowest mean that is right"),
        ("equality 1e-9 prices changed", "", "", "", "write the lowest mean that is right"),
        ("equality 0.85x prices changed", "", "", "", "write the lowest mean that is right"),
    ]
    wrong = []
    for words, label, limit, reason, said in rows:
        found = named(Given((GivenAcceptance(words, "ada", label),)), [], baseline, Redactor(()))
        entries = [(entry.metric, entry.after, entry.reason) for entry in found.entries]
        expected = [] if said else [("equality", limit, reason)]
        if entries != expected or said not in "".join(found.warnings) or (not said and found.warnings):
            wrong.append((words, entries, found.warnings))
    assert not wrong


def test_a_mean_below_its_limit_is_not_accepted() -> None:
    entry = Accepted("regressed", "x", date.max, metric="equality", after="0.85", for_commit=True)
    rows = {1.0: True, 0.85: True, 0.81: True, 0.79: False, 0.0: False}
    found = {mean: bool(Integrity(accepted=(entry,)).accepted_metrics({"equality": mean}, 0.05)) for mean in rows}
    assert found == rows
    assert Integrity(accepted=(entry,)).accepted_metrics({"other": 0.9}, 0.05) == {}
