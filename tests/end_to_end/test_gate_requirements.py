"""``require: no-worse-than`` through the whole program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.declining_repository import DecliningRepository
from tests.support import verdict_of

OUTCOMES = {
    # The first run alone excludes the drop.
    "excluded": (0.1, 0.0, 0, "unchanged"),
    # Four runs of each side do not suffice.
    "not excluded": (0.01, 0.0, 3, "unproven"),
    "fallen": (0.1, 0.3, 1, "regressed"),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_green_needs_that_a_larger_drop_is_excluded(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    tolerance, loss, status, verdict = OUTCOMES[outcome]
    gate = {"require": "no-worse-than", "tolerance": tolerance, "fail_on": ["regressions", "unproven", "errors"]}
    repository = DecliningRepository.begin(tmp_path / "bot", command, monkeypatch, 1, **gate)
    repository.base_job()
    repository.rate -= loss
    repository.write_agent("import math")
    repository.propose()
    ended = repository.pull_request_job()
    found = repository.comparison()
    assert (ended.status, found.verdict) == (status, verdict), ended.text
    bound = found.metric("f1_score").bound
    if outcome == "excluded":
        assert (found.stage, found.cost) == ("screen", None)
        assert bound is not None
        assert bound <= tolerance
    if outcome == "not excluded":
        assert (found.stage, [look.runs for look in found.looks]) == ("head-to-head", [1, 2, 3, 4])
        assert bound is not None
        assert bound > tolerance
        said = f"f1_score may have fallen by up to {100 * bound:.1f} points"
        assert verdict_of(ended.out).startswith(f"unproven: {said}"), ended.text
        assert "'require: no-worse-than' allows 1; more iterations or more cases would show less" in ended.out, (
            ended.text
        )
