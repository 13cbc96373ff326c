"""The epoch of the base branch over its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.gate_runs import TODAY, dated, scored
from tests.unit.compare.test_pool import comparison, mean, proof
from tests.unit.runs import SUITE, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.epoch import (
    Watch,
    commits_of,
    epoch_after,
    epoch_of,
    is_long_look_due,
    looked_back,
    runs_since,
)
from agenteval.compare.integrity.accepted import Accepted
from agenteval.compare.integrity.integrity import Integrity
from agenteval.compare.integrity.pairs import digests_of
from agenteval.compare.pairing import own_cases
from agenteval.compare.pool import extended_pool
from agenteval.results.case import CaseResult
from agenteval.results.comparison import Comparison, Stage
from agenteval.results.epoch import Epoch, MadeWith
from agenteval.results.model import Results

WATCH = Watch(frozenset({"numeric"}), 0.01)
RATES = st.lists(st.integers(0, 3), min_size=8, max_size=8)


def run(day: int, cases: Sequence[CaseResult], **about: object) -> Results:
    """A run of another commit each day, as a workflow on the base branch makes it."""
    made = dated(results(*cases, run_id=f"run-{day}"), day)
    commit = f"{day:040x}"
    entry = made.pool[0].model_copy(update={"commit": commit, "epoch": commit, **about})
    of_run = made.run.model_copy(update={"commit": commit, "workflow_run_id": str(day)})
    return made.model_copy(update={"run": of_run, "pool": [entry]})


def cases_of(passed: Sequence[int], first: int = 0) -> list[CaseResult]:
    """Cases of which each passes so many of three iterations."""
    return [
        scored(f"c{number:02}", *([1.0] * count + [0.0] * (3 - count)))
        for number, count in enumerate(passed, start=first)
    ]


def handed_on(now: Results, before: Results, found: Comparison | None = None) -> Results:
    found = found or comparison()
    epoch = epoch_after(now.pool, before, found, WATCH)
    return now.model_copy(update={"pool": extended_pool(now.pool[0], before, found, 10), "epoch": epoch})


def chain(*all_cases: Sequence[CaseResult]) -> Results:
    newest = run(1, all_cases[0])
    for day, cases in enumerate(all_cases[1:], start=2):
        newest = handed_on(run(day, cases), newest)
    return newest


@given(st.lists(RATES, min_size=2, max_size=14))
def test_without_changes_of_the_suite_the_levels_are_the_means(history: list[list[int]]) -> None:
    epoch = epoch_of(chain(*map(cases_of, history)))
    assert [found.levels["numeric"] for found in epoch.runs] == pytest.approx(
        [fmean(passed) / 3 for passed in history]
    )
    assert epoch.merges == len(history) - 1


def test_added_and_removed_cases_do_not_move_the_level() -> None:
    hard = [scored("hard", 0, 0, 0)]
    epoch = epoch_of(chain(cases_of([3, 2, 3]), [*cases_of([3, 2, 3]), *hard], [*cases_of([3, 2]), *hard]))
    assert len({round(found.levels["numeric"], 9) for found in epoch.runs}) == 1


def test_the_state_survives_the_window_and_the_file() -> None:
    newest = chain(*[cases_of([3, 2, 3, 2, 3, 3, 1, 3])] * 25)
    read = Results.model_validate_json(newest.model_dump_json())
    epoch = epoch_of(read)
    assert len(read.pool) == 10
    assert (len(epoch.runs), epoch.merges) == (25, 24)
    assert commits_of(epoch)[0] == f"{1:040x}"


def test_an_epoch_of_earlier_versions_follows_from_the_pool() -> None:
    newest = chain(*[cases_of([3, 2, 3])] * 4)
    known = epoch_of(newest)
    assert epoch_of(newest.model_copy(update={"epoch": None})).runs == known.runs


def test_a_long_history_keeps_its_beginning_and_its_newest_runs() -> None:
    newest = run(1, cases_of([3]))
    for number in range(2, 140):
        now = run(2, cases_of([3]))
        entry = now.pool[0].model_copy(update={"commit": f"{number:040x}", "run_id": f"run-{number}"})
        newest = handed_on(now.model_copy(update={"pool": [entry]}), newest)
    commits = [int(found.commit or "", 16) for found in epoch_of(newest).runs]
    assert commits == [*range(1, 11), *range(50, 140)]


def test_runs_of_the_same_commit_are_no_merges_and_a_repeated_run_counts_once() -> None:
    newest = chain(*[cases_of([3, 2])] * 3)
    again = run(4, cases_of([3, 2]))
    entry = again.pool[0].model_copy(update={"commit": newest.pool[-1].commit})
    nightly = handed_on(again.model_copy(update={"pool": [entry]}), newest)
    assert (epoch_of(nightly).merges, len(epoch_of(nightly).runs)) == (2, 4)
    assert handed_on(again.model_copy(update={"pool": [entry]}), nightly).epoch == nightly.epoch


def test_ten_merges_and_a_decline_make_a_long_look_due() -> None:
    steady = [cases_of([3, 2, 3, 2, 3, 2])] * 10
    assert not is_long_look_due(epoch_of(chain(*steady)))
    assert is_long_look_due(epoch_of(chain(*steady, steady[0])))
    lower = chain(*steady[:4], *[cases_of([2, 2, 2, 2, 3, 2])] * 2)
    assert is_long_look_due(epoch_of(lower))
    cleared = looked_back(epoch_of(lower), f"{2:040x}")
    assert not is_long_look_due(cleared)
    assert (cleared.merges, set(cleared.sums.values())) == (0, {0.0})
    assert commits_of(cleared)[0] == f"{2:040x}"
    assert [found.run_id for found in runs_since(cleared, f"{5:040x}")] == ["run-5", "run-6"]


def test_only_gating_metrics_and_cases_that_count_are_summed() -> None:
    steady = [cases_of([3, 2, 3])] * 4
    lower = run(5, cases_of([0, 2, 3]))
    assert is_long_look_due(epoch_after(lower.pool, chain(*steady), comparison(), WATCH))
    out = Watch(WATCH.gating, 0.01, frozenset({f"{SUITE}::c00"}))
    assert not is_long_look_due(epoch_after(lower.pool, chain(*steady), comparison(), out))
    assert not is_long_look_due(epoch_after(lower.pool, chain(*steady), comparison(), Watch(frozenset(), 0.01)))


def test_a_case_that_is_proven_to_have_changed_moves_no_level_and_is_left_out_of_long_looks() -> None:
    before = chain(*[cases_of([3, 2, 3])] * 4)
    broken = comparison("regressed", "cases", proofs=[proof("c00", proven=True), proof("c01", proven=False)])
    now = handed_on(run(5, cases_of([0, 2, 3])), before, broken)
    epoch = epoch_of(now)
    assert epoch.changed == [f"{SUITE}::c00"]
    assert epoch.runs[-1].levels == pytest.approx(epoch.runs[-2].levels)
    after = handed_on(run(6, cases_of([0, 2, 3])), now)
    assert epoch_of(after).changed == epoch.changed


def test_a_proof_begins_an_epoch_with_all_runs_of_the_new_agent() -> None:
    before = chain(*[cases_of([1, 1])] * 12)
    risen = comparison("improved", metrics=[mean("improved")])
    now = run(13, cases_of([3, 3]))
    again = [now.pool[0].model_copy(update={"run_id": f"run-13.{number}"}) for number in (1, 2)]
    epoch = epoch_after([now.pool[0], *again], before, risen, WATCH)
    assert (epoch.cause, epoch.merges, epoch.sums, epoch.changed) == ("proven", 0, {}, [])
    assert [found.run_id for found in epoch.runs] == ["run-13", "run-13.1", "run-13.2"]
    kept = extended_pool(now.pool[0], before, risen, 10, again)
    assert [entry.begun_by for entry in kept] == ["proven", None, None]


# Declared and accepted changes


def compared(now: Results, before: Results, **keys: Any) -> Comparison:
    known = {case.id for _, case in now.cases()}
    return Comparer(now, before, known, today=TODAY, **keys).decide()


MADE = MadeWith(agents=["a-1"], judges=["j-1"], iterations=3, engine="1")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"agents": ["a-2"]}, "the model of the agent changed from a-1 to a-2"),
        ({"judges": ["j-2"]}, "the model of the judge changed from j-1 to j-2"),
        ({"iterations": 5}, "iterations changed from 3 to 5"),
        ({"engine": "2"}, "the major version of agenteval changed from 1 to 2"),
        ({}, ""),
        # Unknown values and an added judge are no change.
        ({"agents": [], "judges": [], "iterations": None, "engine": ""}, ""),
        ({"judges": ["j-1", "j-2"]}, ""),
    ],
)
def test_a_declared_change_begins_an_epoch_and_is_said_in_one_line(changes: Mapping[str, object], text: str) -> None:
    before = run(1, cases_of([3, 2, 3]), made_with=MADE)
    now = run(2, cases_of([3, 2, 3]), made_with=MADE.model_copy(update=dict(changes)))
    found = compared(now, before)
    assert found.epoch_cause == ("declared" if text else None)
    said = [note for note in found.notes if note.startswith("earlier runs do not count")]
    assert said == ([f"earlier runs do not count from now on: {text}"] if text else [])
    kept = extended_pool(now.pool[0], before, found, 10)
    assert [(entry.run_id, entry.begun_by) for entry in kept] == (
        [("run-2", "declared")] if text else [("run-1", None), ("run-2", None)]
    )


def test_a_pull_request_begins_no_epoch() -> None:
    before = run(1, cases_of([3, 2, 3]), made_with=MADE)
    now = run(2, cases_of([3, 2, 3]), made_with=MADE.model_copy(update={"engine": "2"}))
    of_pull_request = now.model_copy(update={"run": now.run.model_copy(update={"ref": "refs/pull/7/merge"})})
    assert compared(of_pull_request, before).begins is None


def test_an_accepted_mean_begins_an_epoch() -> None:
    before = chain(*[cases_of([3, 3, 3])] * 3)
    now = run(4, cases_of([0, 3, 3]))
    until = TODAY.replace(year=2030)
    of_mean = Accepted("regressed", "cheaper", until, metric="numeric", before="1.0", after="0.66", author="Ann")
    found = compared(now, before, integrity=Integrity(accepted=(of_mean,)))
    assert found.epoch_cause == "accepted"
    assert "the mean of numeric was accepted by Ann: cheaper" in found.notes[-1]
    assert [entry.begun_by for entry in extended_pool(now.pool[0], before, found, 10)] == ["accepted"]
    assert epoch_after(now.pool, before, found, WATCH).cause == "accepted"


def test_of_an_accepted_case_earlier_runs_do_not_count() -> None:
    before = chain(*[cases_of([3, 3, 3])] * 3)
    now = run(4, cases_of([0, 3, 3]))
    digest = digests_of(own_cases(now))[f"{SUITE}::c00"]
    until = TODAY.replace(year=2030)
    entry = Accepted("regressed", "cheaper", until, case=f"{SUITE}::c00", fingerprint=digest, author="Ann")
    found = compared(now, before, integrity=Integrity(accepted=(entry,)))
    assert found.begins is None
    kept = extended_pool(now.pool[0], before, found, 10)
    assert [f"{SUITE}::c00" in item.cases for item in kept] == [False, False, False, True]
    assert epoch_after(now.pool, before, found, WATCH).changed == [f"{SUITE}::c00"]


def test_no_rule_other_than_the_statistics_begins_an_epoch() -> None:
    stages: tuple[Stage | None, ...] = (None, "earlier-runs", "files", "memory", "screen", "second", "cases")
    for stage in stages:
        assert not comparison("regressed", stage, metrics=[mean("regressed")]).begins_epoch
    assert comparison("regressed", "head-to-head", metrics=[mean("regressed")]).begins_epoch
    assert comparison("regressed", "repeats", metrics=[mean("regressed")]).begins_epoch


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e308, 1e308, 1.5])
def test_scores_that_are_none_do_not_count_in_the_levels(value: float) -> None:
    newest = run(1, cases_of([3, 3, 0, 3]))
    for case in (newest.pool[0].cases[f"{SUITE}::c00"], newest.pool[0].cases[f"{SUITE}::c01"]):
        case.scores["numeric"] = [value] * 3
    assert epoch_of(newest).runs[0].levels == {"numeric": 0.5}
    following = handed_on(run(2, cases_of([0, 0, 0, 3])), newest)
    assert epoch_of(following).runs[1].levels == {"numeric": 0.5}


def test_an_epoch_without_runs_is_rebuilt() -> None:
    newest = chain(*[cases_of([3, 2])] * 2).model_copy(update={"epoch": Epoch(runs=[])})
    assert len(epoch_of(newest).runs) == 2
