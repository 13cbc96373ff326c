"""Which case of the base commit a case of the change is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agenteval.gate.integrity import renamed
from agenteval.run.rules.differences import pair
from agenteval.suite.model import Case, MetricConfig, Turn

EQUALITY = MetricConfig(id="equality", type="equality", kind="standard", threshold=1.0)
IDS = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.sampled_from(["", "1", "2", "3"]), max_size=8)


def case(name: str, text: str = "", metric: MetricConfig = EQUALITY, **turn: Any) -> Case:
    return Case(id=name, name=name, turns=(Turn(input=text or name, metrics=(metric,), **turn),))


def test_pairs_by_id_then_by_fingerprint() -> None:
    lenient = MetricConfig(id="equality", type="equality", kind="standard", threshold=0.1)
    ours = [
        case("same"),
        case("looser", metric=lenient),
        case("question", "changed"),
        case("answer", ground_truth="b"),
        case("new name", "asked"),
        case("new"),
    ]
    theirs = [
        case("same"),
        case("looser"),
        case("question"),
        case("answer", ground_truth="a"),
        case("old name", "asked"),
        case("gone"),
    ]
    pairs = pair(ours, theirs)
    assert {case_id: base.id for case_id, base in pairs.base.items()} == {
        "same": "same",
        "looser": "looser",
        "question": "question",
        "answer": "answer",
        "new name": "old name",
    }
    assert pairs.renamed == {"new name": "old name"}
    assert pairs.edited == {"question", "answer"}
    assert pairs.new == ["new"]
    assert set(pairs.removed) == {"gone"}


def test_a_new_name_with_another_threshold_is_another_case() -> None:
    lenient = MetricConfig(id="equality", type="equality", kind="standard", threshold=0.1)
    pairs = pair([case("b", "asked", lenient)], [case("a", "asked")])
    assert (set(pairs.new), set(pairs.removed), len(pairs.renamed)) == ({"b"}, {"a"}, 0)


@given(IDS, IDS)
def test_each_case_is_renamed_at_most_once_and_to_the_same_content(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = renamed(before, after, ())
    assert len(set(found.values())) == len(found)
    for old, new in found.items():
        assert old not in after
        assert new not in before
        assert before[old] == after[new] != ""
    # The rest has no counterpart.
    left = [before[name] for name in before if name not in after and name not in found and before[name]]
    free = [after[name] for name in after if name not in before and name not in found.values()]
    assert not set(left) & set(free)
