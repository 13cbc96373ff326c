"""Which runs a base commit judges, and what people accepted on the CI host."""

from __future__ import annotations

from datetime import date

import pytest
from tests.unit.runs import case, results

from agenteval.core.redact import Redactor
from agenteval.gate.integrity import Accepted, Integrity, accepted_of, settled
from agenteval.results.model import Difference, Results
from agenteval.run.base_commit import Kind
from agenteval.run.context import Given, GivenAcceptance, is_judged_by_base, named
from agenteval.suite.model import Case, Turn

RUN = results(case("a"))
BASELINE = RUN.model_copy(update={"run": RUN.run.model_copy(update={"commit": "c0ffee0"})})
FOREIGN = BASELINE.model_copy(update={"tool": BASELINE.tool.model_copy(update={"name": "promptfoo"})})
WITHOUT_COMMIT = BASELINE.model_copy(update={"run": BASELINE.run.model_copy(update={"commit": None})})


@pytest.mark.parametrize(
    ("kind", "ref", "baseline", "judged"),
    [
        ("pull-request", "refs/pull/7/merge", None, True),
        ("pull-request", "refs/pull/7/merge", BASELINE, True),
        ("previous", "refs/heads/gh-readonly-queue/main/pr-7", BASELINE, True),
        ("previous", "refs/heads/gh-readonly-queue/main/pr-7", None, True),
        ("previous", "refs/heads/main", BASELINE, False),
        ("first-parent", "refs/heads/main", BASELINE, False),
        ("merge-base", "refs/heads/feature", BASELINE, True),
        ("merge-base", None, BASELINE, True),
        ("merge-base", None, None, False),
        ("merge-base", None, FOREIGN, False),
        ("merge-base", None, WITHOUT_COMMIT, False),
    ],
)
def test_only_what_is_not_merged_is_judged(
    kind: Kind, ref: str | None, baseline: Results | None, judged: bool
) -> None:
    assert is_judged_by_base(kind, ref, baseline) is judged


CASES = [
    Case(id=f"agent.yaml::{name}", name=name, turns=(Turn("hello"),)) for name in ("night", "night train", "a: b")
]
TWINS = [Case(id=f"{file}.yaml::twin", name="twin", turns=(Turn("hello"),)) for file in ("one", "two")]


def accepted(words: str) -> tuple[list[Accepted], list[str]]:
    return named(Given((GivenAcceptance(words, "ada"),), ("kept",)), [*CASES, *TWINS], None, Redactor(()))


@pytest.mark.parametrize("words", ["night", "night train", "agent.yaml::night", "a: b"])
def test_a_name_or_an_id_accepts_its_case(words: str) -> None:
    entries, warnings = accepted(words)
    case = f"agent.yaml::{words.removeprefix('agent.yaml::')}"
    assert [(entry.case, entry.change) for entry in entries] == [
        (case, change) for change in ("edited", "removed", "worse")
    ]
    assert {(entry.author, entry.reason) for entry in entries} == {("ada", "by a label of the pull request")}
    assert warnings == ["kept"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("morning", "is no id or name of a case"),
        ("*", "is no id or name of a case"),
        ("nightly", "is no id or name of a case"),
        ("twin", "2 cases have this name; give the id of one"),
        ("night train now", "is no id or name of a case"),
    ],
)
def test_what_is_not_clear_accepts_nothing(words: str, said: str) -> None:
    entries, warnings = accepted(words)
    assert entries == []
    assert said in warnings[1]


def test_only_the_change_that_the_case_has_is_accepted() -> None:
    entries = accepted("night")[0]
    case = "agent.yaml::night"
    for kind, change in (("removed", "removed"), ("edited", "edited"), ("renamed", "worse")):
        difference = Difference(kind=kind, case=case, effect="listed")
        assert [entry.change for entry in settled(entries, [difference])] == [change]
    assert [entry.change for entry in settled(entries, [])] == ["worse"]
    assert accepted_of(entries, "removed", case, "any content") is entries[1]
    assert accepted_of(entries, "removed", "agent.yaml::night train", "any content") is None


def test_a_mean_is_accepted_down_to_a_limit() -> None:
    baseline = results(case("c0", scores=[{"equality": 1.0}]))
    lowest = "write the lowest mean that is right"
    rows = [
        ("equality 0.85", "0.85", ""),
        ("equality .5", ".5", ""),
        ("equality 0", "0", ""),
        ("equality", "", lowest),
        ("equality prices", "", lowest),
        ("equality 85", "", lowest),
        ("equality -0.1", "", lowest),
        ("equality nan", "", lowest),
        ("equality 1e-9", "", lowest),
        ("equality 0.85x", "", lowest),
    ]
    wrong = []
    for words, limit, said in rows:
        found, warnings = named(Given((GivenAcceptance(words, "ada"),)), [], baseline, Redactor(()))
        entries = [(entry.metric, entry.after) for entry in found]
        expected = [] if said else [("equality", limit)]
        if entries != expected or said not in "".join(warnings) or (not said and warnings):
            wrong.append((words, entries, warnings))
    assert not wrong


def test_a_mean_below_its_limit_is_not_accepted() -> None:
    entry = Accepted("worse", "x", date.max, metric="equality", after="0.85", for_commit=True)
    rows = {1.0: True, 0.85: True, 0.81: True, 0.79: False, 0.0: False}
    found = {mean: bool(Integrity(accepted=(entry,)).accepted_metrics({"equality": mean}, 0.05)) for mean in rows}
    assert found == rows
    assert Integrity(accepted=(entry,)).accepted_metrics({"other": 0.9}, 0.05) == {}
