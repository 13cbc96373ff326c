"""Which runs are whole, and can be a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.runs import case, results

from agenteval.core.errors import ConfigError
from agenteval.gate.baseline import usable_runs
from agenteval.results.case import CaseStatus
from agenteval.results.history import why_no_baseline, why_partial
from agenteval.results.model import Coverage, Results, RunShard, RunUsage
from agenteval.results.store import IN_MEMORY, results_json
from agenteval.run.compare import compare_first
from agenteval.run.context import FoundBaseline, check_baseline, read_baseline
from agenteval.run.evaluate import compare
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.spec import RunSpec

WHOLE = {"cases": 3, "selected": 3, "finished": 3}
PARTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (WHOLE | {"selected": 2, "filter": "x"}, {}, "it is partial: 2 of 3 cases selected (filter 'x')"),
    (WHOLE | {"selected": 1, "tags": ["a", "b"]}, {}, "it is partial: 1 of 3 cases selected (tags a, b)"),
    (WHOLE | {"cases": None, "tags": ["a"]}, {}, "it is partial: only selected traces (tag a)"),
    (WHOLE | {"ended_by": "signal"}, {"complete": False}, "it was interrupted"),
    (WHOLE | {"ended_by": "time"}, {"complete": False}, "its time limit was reached"),
    (WHOLE | {"ended_by": "budget"}, {}, "its budget of model calls ended before every case was evaluated"),
    (WHOLE, {"complete": False}, "its evaluation was not complete"),
    (WHOLE, {"shard": RunShard(index=1, count=2, cases=["a"])}, "it is shard 1 of 2 of a run; "),
]


def run(coverage: dict[str, Any] | None, **more: Any) -> Results:
    covered = None if coverage is None else Coverage(**coverage)
    whole = results(case("a"), case("b"), case("c"))
    return whole.model_copy(update={"run": whole.run.model_copy(update={"coverage": covered, **more})})


@pytest.mark.parametrize(("coverage", "more", "why"), PARTS)
def test_a_part_of_the_suites_is_refused_everywhere(
    coverage: dict[str, Any], more: dict[str, Any], why: str, tmp_path: Path
) -> None:
    part = run(coverage, **more)
    assert why_partial(part.run).startswith(why)
    with pytest.raises(ConfigError, match="cannot be a baseline"):
        check_baseline(part, None)
    with pytest.raises(ConfigError, match="cannot be a baseline"):
        compare(run(WHOLE), part)
    file = tmp_path / "results.json"
    file.write_text("".join(results_json(part, IN_MEMORY)), encoding="utf-8")
    with pytest.raises(ConfigError, match="--baseline: this run cannot be a baseline"):
        read_baseline(file, ())


@pytest.mark.parametrize(
    "coverage",
    [
        None,
        WHOLE | {"filter": "x"},
        WHOLE | {"max_llm_calls": 9, "time_limit_s": 5.0},
    ],
)
def test_limits_that_left_nothing_out_make_no_part(coverage: dict[str, Any] | None) -> None:
    whole = run(coverage)
    assert why_partial(whole.run) == ""
    check_baseline(whole, None)
    assert compare(whole, whole).state == "clear"


@pytest.mark.parametrize(
    ("statuses", "why"),
    [
        ("", "it contains no case"),
        ("ees", "none of its cases was evaluated: of 3, 2 ended in an error, 1 skipped"),
        ("ss", "none of its cases was evaluated: of 2, 2 skipped"),
        ("pee", "most of its cases were not evaluated: of 3, 2 ended in an error"),
        ("pe", ""),
        ("fsss", ""),
    ],
)
def test_a_run_that_evaluated_too_little_is_refused_and_adds_nothing_to_the_baseline(
    statuses: str, why: str, tmp_path: Path
) -> None:
    names: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}
    cases = [case(str(number), names[letter]) for number, letter in enumerate(statuses)]
    before = results(*cases, run_id="before")
    assert why_no_baseline(before) == why
    file = tmp_path / "results.json"
    file.write_text("".join(results_json(before, IN_MEMORY)), encoding="utf-8")
    old = FoundBaseline(results(case("0"), run_id="old"))
    execution = RunExecution("before", 0.0, 1.0, {}, before.summary, RunUsage(), len(statuses))
    kept = compare_first(before, RunSpec(), old, execution).results.baseline_runs
    assert [entry.run_id for entry in kept] == (["before"] if why else ["old", "before"])
    if why:
        with pytest.raises(ConfigError, match="--baseline: this run cannot be a baseline"):
            read_baseline(file, ())
    else:
        assert read_baseline(file, ()).results.run.id == "before"


def test_a_run_without_scores_in_an_old_baseline_is_left_out() -> None:
    empty = results(case("a", "error", scores=[]), run_id="empty").baseline_runs
    baseline = results(case("a"), run_id="base")
    usable = usable_runs(baseline.model_copy(update={"baseline_runs": [*empty, *baseline.baseline_runs]}), "now")
    assert [entry.run_id for entry in usable.runs] == ["base"]
    assert usable.notes == ("1 of the baseline's runs left out: most of the iterations have no score",)
