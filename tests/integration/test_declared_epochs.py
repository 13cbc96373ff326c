"""A declared change of the base branch begins an epoch without a test."""

from __future__ import annotations

from tests.git_server import git
from tests.integration.pushed_branch import Branch, branch

__all__ = ["branch"]

EXACT = {"type": "standard", "metric": "equality", "threshold": 1.0, "case_insensitive": True}


def test_another_number_of_iterations_begins_an_epoch(branch: Branch) -> None:
    first = branch.push(EXACT)
    tip = git(branch.folder, "rev-parse", "HEAD")
    second = branch.push(EXACT)
    assert [(entry.epoch, entry.begun_by) for entry in second.pool] == [(tip, None)] * 2
    third = branch.push(EXACT, iterations=5)
    tip = git(branch.folder, "rev-parse", "HEAD")
    assert [(entry.epoch, entry.begun_by, entry.run_id) for entry in third.pool] == [(tip, "declared", third.run.id)]
    assert third.comparison is not None
    assert third.comparison.verdict == "unchanged"
    assert "iterations changed from 3 to 5" in " ".join(third.comparison.notes)
    # The next run is compared with this one alone.
    fourth = branch.push(EXACT, iterations=5)
    assert [entry.run_id for entry in fourth.pool] == [third.run.id, fourth.run.id]
    assert fourth.comparison is not None
    assert fourth.comparison.metric("equality").runs == 1
    assert first.run.id not in {entry.run_id for entry in fourth.pool}
