"""A metric changes on the base branch: its new configuration scores the answers of the base commit's agent too."""

from __future__ import annotations

import pytest
from tests.git_server import git
from tests.integration.pushed_branch import Branch, branch

__all__ = ["branch"]

EXACT = {"type": "standard", "metric": "equality", "threshold": 1.0}
LENIENT = {**EXACT, "case_insensitive": True}


@pytest.mark.parametrize(("wrong", "verdict"), [(0.0, "unchanged"), (0.5, "regressed")])
def test_both_sides_are_scored_by_the_same_rules(branch: Branch, wrong: float, verdict: str) -> None:
    branch.push(EXACT)
    base = git(branch.folder, "rev-parse", "HEAD")
    found = branch.push(LENIENT, wrong).comparison
    assert found is not None
    # Under the configuration of the base commit, all its answers are wrong.
    assert (found.metric("equality").earlier, [item.id for item in found.rescored]) == (1.0, ["equality"])
    assert (found.verdict, found.unproven) == (verdict, []), found.policy["reason"]
    if verdict == "regressed":
        assert (found.control, found.metric("equality").baseline) == (base, 1.0)
        assert all(proof.control.failed == 0 < proof.current.failed for proof in found.proofs if proof.proven)
