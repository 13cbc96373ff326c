"""What people accepted on the CI host becomes entries for the changes of one commit."""

from __future__ import annotations

from datetime import date

import pytest

from agenteval.compare.integrity.accepted import Accepted, accepted_of, settled
from agenteval.compare.integrity.integrity import Integrity
from agenteval.core.text.redact import Redactor
from agenteval.results.integrity import Difference
from agenteval.run.integrity.given import Given, GivenAcceptance, Named, named
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


def test_an_accepted_mean_may_fall_by_any_amount_in_this_commit() -> None:
    entry = Accepted("regressed", "x", date.max, metric="equality", for_commit=True)
    assert Integrity(accepted=(entry,)).accepted_metrics({"equality": 0.0, "other": 0.0}, 0.0) == {"equality": entry}
