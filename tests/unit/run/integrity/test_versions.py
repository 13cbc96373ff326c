"""The versions of cases that run."""

from __future__ import annotations

from agenteval.run.rules.differences import pair
from agenteval.run.rules.versions import Versions, pair_suites
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import Case, MetricConfig, Suite, Turn

STRICT = MetricConfig(id="m", type="equality", kind="standard", threshold=0.9)
LOOSE = MetricConfig(id="m", type="equality", kind="standard", threshold=0.1)
ADDED = MetricConfig(id="n", type="bleu", kind="standard", threshold=0.5)


def case(name: str, text: str, *metrics: MetricConfig, aggregate: Aggregate | None = None) -> Case:
    return Case(id=name, name=name, turns=(Turn(input=text, metrics=metrics),), aggregate=aggregate)


def versions(ours: list[Case], theirs: list[Case], *accepted: str) -> Versions:
    return Versions(pair(ours, theirs), accepted)


def test_an_edited_case_runs_twice_with_two_ids() -> None:
    ours, taken = case("a", "new", LOOSE), case("a (edited)", "y", LOOSE)
    base, edited = versions([ours, taken], [case("a", "old", STRICT)]).of(ours.id)
    assert (base.id, base.turns[0].input, base.turns[0].metrics) == ("a", "old", (STRICT,))
    assert (edited.id, edited.turns[0].input) == ("a (edited) (edited)", "new")


def test_an_accepted_edit_and_a_new_case_are_ours_alone() -> None:
    ours, new = case("a", "new", LOOSE), case("n", "n", LOOSE)
    found = versions([ours, new], [case("a", "old", STRICT)], "a")
    assert (found.of("a"), found.of("n")) == ((ours,), (new,))


def test_an_added_metric_is_only_reported() -> None:
    ours = case("a", "x", STRICT, ADDED)
    (found,) = versions([ours], [case("a", "x", STRICT)]).of(ours.id)
    kept, added = found.turns[0].metrics
    assert kept == STRICT
    assert (added.id, added.gating, added.threshold, added.fail_on_error) == ("n", False, None, False)
    # A combined score stays what it was.
    weighed = case("a", "x", STRICT, aggregate=Aggregate(threshold=0.5, weights={"m": 1.0}))
    (same,) = versions([ours], [weighed]).of(ours.id)
    assert same.turns[0].metrics == (STRICT,)


def test_a_case_in_another_suite_is_removed_and_new() -> None:
    def suite(path: str, *names: str) -> Suite:
        return Suite(path, path, "holodeck", tuple(case(f"{path}::{name}", name, STRICT) for name in names))

    now, then = [suite("a", "x"), suite("b", "y", "z")], [suite("a", "x", "z"), suite("b", "y")]
    pairs, base = pair_suites(now, then)
    assert (set(pairs.new), set(pairs.removed), dict(pairs.renamed)) == ({"b::z"}, {"a::z"}, {})
    assert [item.path if item else None for item in base.values()] == ["a", "b"]
