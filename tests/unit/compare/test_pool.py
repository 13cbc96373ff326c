"""The runs that a results file carries along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.gate_runs import base_run, compared, dated, history, past, scored, steady
from tests.unit.runs import SUITE, results

from agenteval.compare.pool import baseline_pool, extended_pool
from agenteval.core.errors import ConfigError
from agenteval.results.comparison import (
    BaselineInfo,
    CaseProof,
    ComparedMetric,
    Comparison,
    FailedOf,
    PoolEntry,
    RunVerdict,
    Stage,
)
from agenteval.results.model import Results
from agenteval.results.store import InMemory, read_baseline, results_json


def ids(entries: tuple[PoolEntry, ...] | list[PoolEntry]) -> list[str]:
    return [entry.run_id for entry in entries]


def comparison(verdict: RunVerdict = "unchanged", stage: Stage | None = "head-to-head", **more: Any) -> Comparison:
    info = BaselineInfo(run_id="base-1", created_at="2026-01-01T00:00:00.000Z")
    found: dict[str, Any] = {"metrics": [], "cases": [], "policy": {}, **more}
    return Comparison(baseline=info, verdict=verdict, stage=stage, **found)


def mean(verdict: RunVerdict, *, gating: bool = True) -> ComparedMetric:
    return ComparedMetric(
        id="numeric", n=2, baseline=1, current=0, difference=-1, verdict=verdict, reason="", gating=gating
    )


def proof(name: str, *, proven: bool) -> CaseProof:
    none = FailedOf(failed=0, of=3)
    return CaseProof(
        id=f"{SUITE}::{name}", metric="numeric", pool=none, first=none, current=none, control=none, proven=proven
    )


OWN = base_run(20, steady(2)).pool[0]


# What a baseline offers


def test_the_newest_runs_in_their_order() -> None:
    runs = [base_run(day, steady(2)) for day in (3, 1, 2)]
    assert ids(baseline_pool(history(*runs), "now", 10).runs) == ["base-1", "base-2", "base-3"]
    assert ids(baseline_pool(history(*runs), "now", 2).runs) == ["base-2", "base-3"]


def test_a_baseline_without_a_pool_entry_is_added_to_the_pool() -> None:
    bare = base_run(1, [scored("a", 1, 0, 1)]).model_copy(update={"pool": []})
    (entry,) = baseline_pool(bare, "now", 10).runs
    assert (entry.run_id, entry.cases[f"{SUITE}::a"].scores) == ("base-1", {"numeric": [1, 0, 1]})


def test_a_duplicate_run_counts_once_with_a_note() -> None:
    once = past(2, steady(2))
    twice = once.model_copy(update={"pool": [*once.pool, once.pool[0]]})
    pool = baseline_pool(twice, "now", 10)
    assert ids(pool.runs) == ["base-1", "base-2"]
    assert pool.notes == ("the baseline's pool contains 1 of its runs more than once; each counts once",)
    assert baseline_pool(once, "now", 10).notes == ()


def test_a_run_is_not_compared_with_itself() -> None:
    later = past(3, steady(2))
    assert ids(baseline_pool(later, "base-2", 10).runs) == ["base-1", "base-3"]


def test_a_run_can_be_compared_with_itself() -> None:
    run = past(1, steady(30))
    assert ids(baseline_pool(run, "base-1", 10).runs) == ["base-1"]
    assert compared(run, run).verdict == "unchanged"


def test_runs_of_another_history_are_left_out_unless_there_is_no_other() -> None:
    runs = [base_run(day, steady(2)) for day in (1, 2)]
    entries = [run.pool[0].model_copy(update={"commit": str(day) * 40}) for day, run in enumerate(runs, start=1)]
    earlier = runs[-1].model_copy(update={"pool": entries})
    pool = baseline_pool(earlier, "now", 10, {"1" * 40})
    assert ids(pool.runs) == ["base-2"]
    assert pool.notes == ("1 of the baseline's runs left out: its commit is not in the history of the base commit",)
    assert ids(baseline_pool(earlier, "now", 10, {"1" * 40, "2" * 40}).runs) == ["base-1", "base-2"]


# The pool of a run


def test_a_first_run_begins_an_epoch() -> None:
    assert OWN.commit
    assert OWN.epoch == OWN.commit


@given(earlier=st.integers(1, 14), window=st.integers(1, 12))
def test_the_window_limits_the_pool_and_the_run_comes_last(earlier: int, window: int) -> None:
    kept = extended_pool(OWN, past(earlier, steady(1)), comparison(), window)
    earlier_ids = [f"base-{day}" for day in range(1, earlier + 1)]
    assert ids(kept) == [*earlier_ids, OWN.run_id][-window:]


@pytest.mark.parametrize("verdict", ["regressed", "improved"])
def test_a_new_epoch_begins_where_a_mean_is_proven_to_have_changed(verdict: RunVerdict) -> None:
    moved = comparison(verdict, metrics=[mean(verdict)])
    begun = OWN.model_copy(update={"begun_by": "proven"})
    assert extended_pool(OWN, past(3), moved, 10) == [begun]
    # It begins with all runs of the changed agent, within the window.
    again = [OWN.model_copy(update={"run_id": f"{OWN.run_id}.{number}"}) for number in (1, 2)]
    assert ids(extended_pool(OWN, past(3), moved, 10, again)) == [OWN.run_id, *(entry.run_id for entry in again)]
    assert len(extended_pool(OWN, past(3), moved, 2, again)) == 2


@pytest.mark.parametrize(
    "unproven",
    [
        comparison("regressed", metrics=[mean("unchanged")]),
        comparison("unproven", metrics=[mean("unproven")]),
        comparison("unchanged", metrics=[mean("regressed", gating=False)]),
        comparison("regressed", "files", metrics=[mean("regressed")]),
        comparison("regressed", "earlier-runs", metrics=[mean("regressed")]),
        comparison("regressed", "memory", metrics=[mean("regressed")]),
        comparison("regressed", None, policy={"name": "any-flip"}),
        comparison("improved", None, policy={"name": "mean-drop"}),
    ],
)
def test_nothing_else_begins_an_epoch(unproven: Comparison) -> None:
    again = [OWN.model_copy(update={"run_id": "again"})]
    kept = extended_pool(OWN, past(3), unproven, 10, again)
    assert ids(kept) == ["base-1", "base-2", "base-3", OWN.run_id]
    assert kept[-1].epoch == past(3).pool[0].commit


def test_the_epoch_is_handed_on() -> None:
    entries = [entry.model_copy(update={"epoch": "e" * 40}) for entry in past(3).pool]
    earlier = past(3).model_copy(update={"pool": entries})
    assert extended_pool(OWN, earlier, comparison(), 2)[-1].epoch == "e" * 40


def test_where_a_case_broke_its_past_is_forgotten_and_no_other() -> None:
    broken = comparison("regressed", proofs=[proof("c01", proven=True), proof("c02", proven=False)])
    kept = extended_pool(OWN, past(3, steady(3)), broken, 10)
    assert ids(kept) == ["base-1", "base-2", "base-3", OWN.run_id]
    assert [f"{SUITE}::c01" in entry.cases for entry in kept] == [False, False, False, True]
    assert all(f"{SUITE}::c02" in entry.cases for entry in kept[:-1])


def test_a_repeated_run_replaces_its_pool_entry() -> None:
    again = base_run(2, steady(2)).pool[0]
    assert ids(extended_pool(again, past(2), comparison(), 10)) == ["base-1", "base-2"]


def test_a_whole_history_of_comparisons_hands_the_pool_on() -> None:
    newest = dated(results(*steady(), run_id="run-1"), 1)
    for day in range(2, 14):
        run = dated(results(*steady(), run_id=f"run-{day}"), day)
        kept = extended_pool(run.pool[0], newest, compared(run, newest), 10)
        newest = run.model_copy(update={"pool": kept})
    assert ids(newest.pool) == [f"run-{day}" for day in range(4, 14)]


# Pools that are broken


def written(folder: Path, run: Results, change: Any) -> Path:
    content = json.loads("".join(results_json(run, InMemory())))
    change(content)
    path = folder / "results.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_broken_runs_of_a_pool_are_omitted_with_a_note(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["pool"][0] = "nonsense"
        content["pool"][1]["cases"][f"{SUITE}::c00"]["scores"]["numeric"] = ["high"]
        del content["pool"][2]["run_id"]

    run = past(5, steady(2))
    baseline, notes = read_baseline(written(tmp_path, run, change))
    assert ids(baseline.pool) == ["base-4", "base-5"]
    assert baseline.suites == run.suites
    assert notes == ("3 runs of the baseline's pool are damaged and omitted",)


@pytest.mark.parametrize("pool", [None, {}, "x", 7])
def test_a_pool_that_is_none_leaves_the_run_itself(tmp_path: Path, pool: Any) -> None:
    baseline, notes = read_baseline(written(tmp_path, past(3), lambda content: content.update(pool=pool)))
    assert baseline.pool == []
    assert notes == ("the baseline's pool of earlier runs is damaged and omitted",)
    assert ids(baseline_pool(baseline, "now", 10).runs) == ["base-3"]


def test_a_sound_baseline_needs_no_note(tmp_path: Path) -> None:
    run = past(2)
    assert read_baseline(written(tmp_path, run, lambda _: None)) == (run, ())


def test_damage_outside_the_pool_is_an_error(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["pool"] = "x"
        content["suites"][0]["cases"][0]["status"] = "fine"

    with pytest.raises(ConfigError, match="not a results file of agenteval"):
        read_baseline(written(tmp_path, past(2), change))
    with pytest.raises(ConfigError, match="no such results file"):
        read_baseline(tmp_path / "none.json")
