"""Every case belongs to exactly one shard, and all shards take about the same time."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case, iteration, results, turn

from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import LlmSettings
from agenteval.results.case import CaseResult, Criterion
from agenteval.run.options import read_shard
from agenteval.run.plan import Shard, divide, durations_of, with_open_criteria
from agenteval.run.resolve.spec import llm_share
from agenteval.suite.evaluation import Aggregate, Criteria, Evaluation
from agenteval.suite.model import Suite

IDS = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=30)
COUNTS = st.integers(1, 9)
TIMES = st.floats(0, 1e6, allow_subnormal=False)


# Parsing


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), ("2/3", (2, 3)), ("0010/1000", (10, 1000))])
def test_one_of_so_many(text: str, shard: tuple[int, int]) -> None:
    assert Shard.parse(text) == Shard(*shard)


@given(number=st.integers(0, 1000), count=st.integers(1, 20))
def test_budgets_and_rates_of_all_shards_are_those_of_the_run(number: int, count: int) -> None:
    run = LlmSettings(Limits(number, number / 7), requests_per_minute=number + 1)
    parts = [llm_share(run, Shard(index, count)) for index in range(1, count + 1)]
    assert sum(part.limits.max_calls or 0 for part in parts) == number
    assert {part.limits.max_calls for part in parts} <= {number // count, number // count + 1}
    assert sum(part.limits.max_cost_usd or 0.0 for part in parts) == pytest.approx(number / 7)
    assert [Shard(index, 3, (2, 0, 1)).share(3 * number) for index in (1, 2, 3)] == [2 * number, 0, number]
    # No share of a rate is 0, which would be no limit.
    assert sum(part.requests_per_minute or 0.0 for part in parts) == pytest.approx(number + 1)
    assert llm_share(LlmSettings(), Shard(1, count)) == LlmSettings()


@pytest.mark.parametrize("text", ["", "1", "/", "1/", "/2", "a/b", "1/2/3", "-1/2", "1.0/2", "¹/2", " 1/2", "1" * 10])
def test_invalid_shards(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form I/N, as in 2/5"):
        Shard.parse(text)


# The shard of a parallel job

AUTO = [
    ("STRATEGY_JOB_INDEX=0 STRATEGY_JOB_TOTAL=3", "1/3"),
    ("CI_NODE_INDEX=3 CI_NODE_TOTAL=3", "3/3"),
    ("JOB_COMPLETION_INDEX=2 JOB_COMPLETIONS=3", "3/3"),
    ("AWS_BATCH_JOB_ARRAY_INDEX=1 AWS_BATCH_JOB_ARRAY_SIZE=3", "2/3"),
    (
        "SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2",
        "3/3",
    ),
    ("BUILDKITE_PARALLEL_JOB=0 BUILDKITE_PARALLEL_JOB_COUNT=1", "1/1"),
    ("CIRCLE_NODE_INDEX=1 CIRCLE_NODE_TOTAL=2", "2/2"),
    # An engine inside another one, and the variable of every job of GitLab.
    ("CI_NODE_INDEX=2 CI_NODE_TOTAL=3 JOB_COMPLETION_INDEX=1 JOB_COMPLETIONS=3", "2/3"),
    ("CI_NODE_TOTAL=1", "1/1"),
    ("CI_NODE_TOTAL=1 JOB_COMPLETION_INDEX=1 JOB_COMPLETIONS=3 STRATEGY_JOB_INDEX=", "2/3"),
]


@pytest.mark.parametrize(("text", "shard"), AUTO)
def test_the_engine_names_the_shard(text: str, shard: str) -> None:
    assert str(read_shard("auto", variables(text))) == shard
    assert str(read_shard("4/9", variables(text))) == "4/9"


def variables(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CI_NODE_TOTAL=3",
            "'auto' finds no shard, as none of STRATEGY_JOB_INDEX, CI_NODE_INDEX, JOB_COMPLETION_INDEX, "
            "AWS_BATCH_JOB_ARRAY_INDEX, SLURM_ARRAY_TASK_ID, BUILDKITE_PARALLEL_JOB, CIRCLE_NODE_INDEX is set",
        ),
        (
            "JOB_COMPLETION_INDEX=0",
            "'auto' finds JOB_COMPLETION_INDEX, but not JOB_COMPLETIONS; set it to the number of shards, or",
        ),
        (
            "JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=3",
            "'auto' finds no shard, as JOB_COMPLETION_INDEX is '3', JOB_COMPLETIONS is '3', and indexes start at '0'",
        ),
        ("CI_NODE_INDEX=0 CI_NODE_TOTAL=3", "CI_NODE_INDEX is '0', CI_NODE_TOTAL is '3', and indexes start at '1'"),
        ("CIRCLE_NODE_INDEX=-1 CIRCLE_NODE_TOTAL=x", "CIRCLE_NODE_INDEX is '-1', CIRCLE_NODE_TOTAL is 'x'"),
        ("CI_NODE_INDEX=1 CI_NODE_TOTAL=1001", "'1/1001' asks for 1001 shards; allowed are 1 to 1000"),
        # `--array=1,2,7` is no range, and has no step that divides it.
        (
            "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1",
            "SLURM_ARRAY_TASK_ID is '7', SLURM_ARRAY_TASK_COUNT is '3', and indexes start at '1' in steps of '1'",
        ),
        (
            "CI_NODE_INDEX=2 CI_NODE_TOTAL=3 CIRCLE_NODE_INDEX=2 CIRCLE_NODE_TOTAL=3",
            "'auto' finds 2/3 from CI_NODE_INDEX (GitLab) and 3/3 from CIRCLE_NODE_INDEX (CircleCI); write I/N",
        ),
    ],
)
def test_variables_that_name_no_shard(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_shard("auto", variables(text))


# Distribution of cases


@given(ids=IDS, count=COUNTS, data=st.data())
def test_every_case_is_in_one_shard_in_any_order(ids: list[str], count: int, data: st.DataObject) -> None:
    durations = data.draw(st.dictionaries(st.sampled_from([*ids, "other"]), TIMES))
    parts = divide(ids, count, durations)
    assert len(parts) == count
    assert sorted(itertools.chain(*parts)) == sorted(ids)
    assert divide(data.draw(st.permutations(ids)), count, dict(reversed(durations.items()))) == parts
    assert [Shard(index, count).cases(ids, durations) for index in range(1, count + 1)] == list(parts)


def test_the_division_is_the_same_on_every_machine() -> None:
    ids = [f"agent.yaml::{name}" for name in "abcdefg"]
    assert [sorted(item[-1] for item in part) for part in divide(ids, 3, {})] == [
        ["a", "d", "g"],
        ["b", "e"],
        ["c", "f"],
    ]
    durations = dict(zip(ids, (7, 1, 3, 5, 4, 2, 2), strict=True))
    assert [sorted(item[-1] for item in part) for part in divide(ids, 3, durations)] == [
        ["a", "g"],
        ["b", "d", "f"],
        ["c", "e"],
    ]


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4), count=COUNTS)
def test_the_cases_of_each_suite_are_spread(sizes: list[int], count: int) -> None:
    ids = [f"{suite}.yaml::{number}" for suite, size in enumerate(sizes) for number in range(size)]
    parts = divide(ids, count, {})
    for suite in range(len(sizes)):
        per_part = [sum(case_id.startswith(f"{suite}.yaml") for case_id in part) for part in parts]
        assert max(per_part) - min(per_part) <= 1


@given(times=st.lists(TIMES, min_size=1, max_size=30), count=COUNTS)
def test_no_part_is_longer_than_its_share_and_one_case(times: list[float], count: int) -> None:
    durations = {str(number): time for number, time in enumerate(times)}
    longest = max(sum(durations[case_id] for case_id in part) for part in divide(durations, count, durations))
    bound = sum(times) / count + (1 - 1 / count) * max(times)
    assert longest <= bound * (1 + 1e-9)


def test_a_case_without_a_duration_counts_as_the_mean() -> None:
    parts = divide(["a", "b", "new"], 2, {"a": 10.0, "b": 20.0, "gone": 1000.0})
    assert parts == (frozenset({"b"}), frozenset({"a", "new"}))


# Durations in an earlier run


def timed(name: str, *latencies: float | None) -> CaseResult:
    iterations = [
        iteration("passed", turn(latency_ms=latency), index=index) for index, latency in enumerate(latencies)
    ]
    return case(name).model_copy(update={"iterations": iterations})


def test_durations_are_those_of_all_turns_and_iterations() -> None:
    run = results(timed("twice", 1.5, 2.0), timed("partly", None, 4.0), timed("unknown", None), timed("never"))
    assert durations_of(run) == {"agent.yaml::twice": 3.5, "agent.yaml::partly": 4.0}


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
