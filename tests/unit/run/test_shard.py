"""Every case belongs to exactly one shard, and shards differ by one case at most."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case, results

from agenteval.results.case import Criterion
from agenteval.run.plan import MOST_SHARDS, Shard, with_open_criteria
from agenteval.suite.evaluation import Aggregate, Criteria, Evaluation
from agenteval.suite.model import Suite

IDS = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=30)
COUNTS = st.integers(1, 9)


# Parsing


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), ("2/3", (2, 3)), ("0010/1000", (10, 1000))])
def test_one_of_so_many(text: str, shard: tuple[int, int]) -> None:
    assert Shard.parse(text) == Shard(*shard)


@given(count=st.integers(1, MOST_SHARDS), data=st.data())
def test_written_values_are_read(count: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(1, count)), count)
    assert Shard.parse(str(shard)) == shard


@pytest.mark.parametrize("text", ["", "1", "/", "1/", "/2", "a/b", "1/2/3", "-1/2", "1.0/2", "¹/2", " 1/2", "1" * 10])
def test_invalid_shards(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form I/N, as in 2/5"):
        Shard.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0/3", "asks for shard 0; there are shards 1 to 3"),
        ("4/3", "asks for shard 4; there are shards 1 to 3"),
        ("1/0", "asks for 0 shards; allowed are 1 to 1000"),
        ("1/1001", "asks for 1001 shards; allowed are 1 to 1000"),
    ],
)
def test_parts_that_there_are_not(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shard.parse(text)


# Distribution of cases


def divided(ids: list[str], count: int) -> list[frozenset[str]]:
    return [Shard(index, count).cases(ids) for index in range(1, count + 1)]


@given(ids=IDS, count=COUNTS, data=st.data())
def test_every_case_is_in_one_shard_in_any_order(ids: list[str], count: int, data: st.DataObject) -> None:
    parts = divided(ids, count)
    assert sorted(itertools.chain(*parts)) == sorted(ids)
    assert divided(data.draw(st.permutations(ids)), count) == parts
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_the_division_is_the_same_on_every_machine() -> None:
    ids = [f"agent.yaml::{name}" for name in "abcdefg"]
    parts = [sorted(item[-1] for item in part) for part in divided(ids, 3)]
    assert parts == [
        ["a", "d", "g"],
        ["b", "e"],
        ["c", "f"],
    ]


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4), count=COUNTS)
def test_the_cases_of_each_suite_are_spread(sizes: list[int], count: int) -> None:
    ids = [f"{suite}.yaml::{number}" for suite, size in enumerate(sizes) for number in range(size)]
    parts = divided(ids, count)
    for suite in range(len(sizes)):
        per_part = [sum(case_id.startswith(f"{suite}.yaml") for case_id in part) for part in parts]
        assert max(per_part) - min(per_part) <= 1


# Criteria of a shard


def test_criteria_are_undecided() -> None:
    criteria = Criteria(all_successful=True, avg_response_ms=500, quality={"numeric": None})
    asking = Suite("agent.yaml", "s", "fluxloop", (), aggregate=Aggregate(threshold=0.6))
    run = results(case("a"))
    assert with_open_criteria([asking], run).suites[0].criteria == []
    asked = replace(asking, evaluation=Evaluation(criteria=criteria))
    assert with_open_criteria([asked], run).suites[0].criteria == [
        Criterion(name="all_traces_successful", met=None, threshold=1.0),
        Criterion(name="avg_response_time", met=None, threshold=0.5),
        Criterion(name="quality.numeric", met=None, threshold=0.6),
    ]
