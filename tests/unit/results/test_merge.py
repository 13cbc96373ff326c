"""A merged run contains all cases of its parts once; parts that do not belong together are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import case, iteration, results, score, skipped, turn

from agenteval.core.errors import ConfigError
from agenteval.core.version import __version__
from agenteval.gate.run_scores import baseline_run
from agenteval.results.case import CaseResult, CaseStatus, Score, SuiteResult
from agenteval.results.merge import Merged, MissingShardError, RunToMerge, merge
from agenteval.results.model import Results, RunShard, RunUsage, Tool
from agenteval.results.rollup import case_status, mean
from agenteval.run.plan import divide
from agenteval.suite.model import Fingerprints

STATUSES: list[CaseStatus] = ["passed", "failed", "error", "skipped"]
Pass = tuple[CaseStatus, float | None]
PASSES = st.tuples(st.sampled_from(STATUSES), st.none() | st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]))
# Suites with cases, each with its iterations.
SUITES = st.lists(st.lists(st.lists(PASSES, min_size=1, max_size=3), max_size=5), min_size=1, max_size=3)


def built(name: str, passes: Sequence[Pass], suite: str = "agent.yaml") -> CaseResult:
    """A case rolled up from its iterations."""
    iterations = [
        iteration(status, turn(score(value=value), response=f"{name} {index}"), index=index)
        for index, (status, value) in enumerate(passes)
    ]
    return CaseResult(
        id=f"{suite}::{name}",
        name=name,
        status=case_status([item.status for item in iterations]),
        score=mean([item.score for item in iterations]),
        iterations=iterations,
    )


def run_of(suites: Mapping[str, Sequence[CaseResult]], run_id: str = "whole", **run: Any) -> Results:
    """A run of suites, with its entry in its baseline."""
    cases = [item for found in suites.values() for item in found]
    made = results(*cases, run_id=run_id)
    listed = [
        SuiteResult(path=path, name=path, format="holodeck", fingerprint=f"f {path}", cases=list(found))
        for path, found in suites.items()
    ]
    changes = {"suites": listed, "run": made.run.model_copy(update=run), "tool": Tool(version=__version__)}
    made = made.model_copy(update=changes)
    return with_baseline(made, {item.id: Fingerprints(f"print {item.id}", {"numeric": "m"}) for item in cases})


def with_baseline(run: Results, fingerprints: Mapping[str, Fingerprints]) -> Results:
    bare = run.model_copy(update={"baseline_runs": []})
    return bare.model_copy(update={"baseline_runs": [baseline_run(bare, fingerprints)] if run.cases() else []})


def whole_run(suites: Sequence[Sequence[Sequence[Pass]]]) -> Results:
    return run_of(
        {
            f"{number}.yaml": [
                built(f"c{place}", passes, f"{number}.yaml") for place, passes in enumerate(reversed(cases))
            ]
            for number, cases in enumerate(suites)
        }
    )


def shards_of(run: Results, count: int, divided_by: str | None = None, **fields: Any) -> list[Results]:
    """The run as so many machines would have run it."""
    ids = [item.id for _, item in run.cases()]
    shards = []
    for number, own in enumerate(divide(ids, count, {})):
        suites = {suite.path: [item for item in suite.cases if item.id in own] for suite in run.suites}
        shard = RunShard(index=number + 1, count=count, cases=ids, divided_by=divided_by)
        shards.append(run_of(suites, f"shard {number + 1}", shard=shard, **fields))
    return shards


def merged(*runs: Results) -> Merged:
    return merge([RunToMerge(f"{number}.json", run) for number, run in enumerate(runs)])


def said(run: Results) -> dict[str, Any]:
    """Everything that a run says but for its name, its times, and who wrote it."""
    about = {"id", "merged", "started_at", "finished_at", "duration_s"}
    return run.model_dump(exclude={"run": about, "tool": True, "baseline_runs": True})


def problems(*runs: Results) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        merged(*runs)
    return [str(problem) for problem in caught.value.problems]


# Shards


@given(suites=SUITES, count=st.integers(1, 5), data=st.data())
def test_the_shards_of_a_run_make_the_run(suites: list[list[list[Pass]]], count: int, data: st.DataObject) -> None:
    whole = whole_run(suites)
    again = merged(*data.draw(st.permutations(shards_of(whole, count))))
    assert said(again.results) == said(whole)
    assert again.results.tool == Tool(version=__version__)
    assert again.results.run.complete
    assert again.warnings == ()
    own = with_baseline(again.results, again.fingerprints)
    assert [entry.cases for entry in own.baseline_runs] == [entry.cases for entry in whole.baseline_runs]


def test_usage_is_that_of_all_shards() -> None:
    usages = [
        RunUsage(input_tokens=1, output_tokens=20, llm_calls=3, cost_usd=0.25),
        RunUsage(input_tokens=4, output_tokens=50, llm_calls=6, cost_usd=0.5),
    ]
    shards = [
        shard.model_copy(update={"summary": shard.summary.model_copy(update={"usage": usage})})
        for shard, usage in zip(shards_of(run_of({"a": [case("x"), case("y")]}), 2), usages, strict=True)
    ]
    summary = merged(*shards).results.summary
    assert summary.usage == RunUsage(input_tokens=5, output_tokens=70, llm_calls=9, cost_usd=0.75)
    assert summary.cases == 2


@pytest.mark.parametrize(("second", "unmeasured"), [(skipped("bleu"), ["bleu"]), (score("bleu", passed=None), [])])
def test_a_metric_measured_nothing_if_it_did_in_no_shard(second: Score, unmeasured: list[str]) -> None:
    cases = [
        case(name).model_copy(update={"iterations": [iteration("passed", turn(*scores))]})
        for name, scores in {"x": (score(), skipped("bleu")), "y": (second,)}.items()
    ]
    (suite,) = merged(*shards_of(run_of({"a": cases}), 2)).results.suites
    assert (suite.unmeasured, suite.undecided) == (unmeasured, 1)


# Further iterations


@given(
    passes=st.lists(
        st.lists(st.lists(PASSES, min_size=1, max_size=2), min_size=2, max_size=2), min_size=3, max_size=3
    ),
    costs=st.lists(st.integers(0, 100), min_size=3, max_size=3),
)
def test_merging_iterations_is_associative(passes: list[list[list[Pass]]], costs: list[int]) -> None:
    runs = []
    for number, (cases, cost) in enumerate(zip(passes, costs, strict=True)):
        run = run_of({"a": [built(f"c{place}", some) for place, some in enumerate(cases)]}, f"run {number}")
        usage = RunUsage(llm_calls=cost, cost_usd=cost / 4)
        runs.append(run.model_copy(update={"summary": run.summary.model_copy(update={"usage": usage})}))

    def together(*some: Results) -> Results:
        done = merged(*some)
        return with_baseline(done.results, done.fingerprints)

    one, two, three = runs
    expected = together(one, two, three)
    for other in (together(together(one, two), three), together(one, together(two, three))):
        assert said(other) == said(expected)
        assert other.run == expected.run
        assert [entry.cases for entry in other.baseline_runs] == [entry.cases for entry in expected.baseline_runs]


# What does not belong together

WHOLE = run_of({"a.yaml": [case(name, suite="a.yaml") for name in "uvwxyz"]})


def changed(run: Results, **fields: Any) -> Results:
    return run.model_copy(update={"run": run.run.model_copy(update=fields)})


def of_suite(run: Results, **fields: Any) -> Results:
    return run.model_copy(update={"suites": [suite.model_copy(update=fields) for suite in run.suites]})


def of_shard(run: Results, **fields: Any) -> Results:
    assert run.run.shard is not None
    return changed(run, shard=run.run.shard.model_copy(update=fields))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: changed(run, commit="d" * 40), "1.json: of another commit than 0.json"),
        (lambda run: of_suite(run, path="b.yaml"), "1.json: of other suites than 0.json"),
        (
            lambda run: run.model_copy(update={"tool": Tool(version="1.0")}),
            "1.json: written by another version of agenteval than 0.json",
        ),
        (lambda run: changed(run, complete=False), "1.json: shard 2 of 3 was interrupted; run it again"),
        (
            lambda run: run.model_copy(update={"baseline_runs": []}),
            "1.json: this run scored recorded traces; score them all in one run, with --traces FOLDER",
        ),
        (
            lambda run: of_suite(run, cases=run.suites[0].cases * 2),
            "1.json: names 2 cases (a.yaml::v, a.yaml::y) more than once",
        ),
        (lambda run: of_shard(run, index=4), "1.json: shard 4 of 3 does not exist"),
        (
            lambda run: of_shard(run, divided_by="base"),
            "1.json: its cases were divided by another baseline than those of 0.json; give all shards the same one",
        ),
        (
            lambda run: of_suite(run, cases=[*run.suites[0].cases, case("u", suite="a.yaml")]),
            "1.json: has 1 case (a.yaml::u) that 0.json has too",
        ),
        (
            lambda run: of_suite(run, cases=[*run.suites[0].cases, case("new", suite="a.yaml")]),
            "1.json: has 1 case (a.yaml::new) not in its own list of cases",
        ),
        (lambda run: of_suite(run, cases=run.suites[0].cases[:1]), "in no shard: 1 case (a.yaml::y)"),
    ],
)
def test_a_shard_that_does_not_belong(change: Callable[[Results], Results], reason: str) -> None:
    first, second, third = shards_of(WHOLE, 3)
    assert problems(first, change(second), third)[0] == reason


def test_shards_that_are_missing() -> None:
    shards = shards_of(WHOLE, 9)
    assert problems(*shards[1:]) == ["shard 1 of 9 is missing"]
    assert problems(*shards[7:]) == ["7 shards of 9 are missing: 1, 2, 3, 4, 5, …"]
    with pytest.raises(MissingShardError) as caught:
        merged(*shards[1:])
    assert caught.value.exit_status == 3


def test_runs_of_other_cases() -> None:
    other = run_of({"a.yaml": [case(name, suite="a.yaml") for name in "uvwxy!"]}, "other")
    assert problems(WHOLE, other) == [
        "1.json: lacks 1 case (a.yaml::z) that 0.json has",
        "1.json: has 1 case (a.yaml::!) that 0.json lacks",
    ]


def test_metrics_over_all_iterations_cannot_be_merged() -> None:
    alike = iteration("passed", turn(score("similar").model_copy(update={"kind": "consistency"})))
    cases = [case("x").model_copy(update={"iterations": [alike, alike]})]
    reason = "judges all iterations of 1 case (agent.yaml::x) together; run these once, with --iterations"
    assert problems(run_of({"a": cases}, "one"), run_of({"a": cases}, "two")) == [
        f"0.json: {reason}",
        f"1.json: {reason}",
    ]
    assert merged(run_of({"a": cases}, "one")).results.summary.cases == 1
