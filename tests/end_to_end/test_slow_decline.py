"""A base branch that gets a little worse with every merge, through the whole program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.declining_repository import DecliningRepository
from tests.git_server import git
from tests.support import Ended, verdict_of

LOSS = 0.01
MERGES = 16


def after_three_runs(
    tmp_path: Path, command: Command, patch: pytest.MonkeyPatch, seed: int, **gate: object
) -> DecliningRepository:
    """A repository whose first commit was evaluated three times."""
    repository = DecliningRepository.begin(tmp_path / "bot", command, patch, seed, **gate)
    for _ in range(3):
        assert repository.base_job().status == 0
    return repository


def merge_until_red(repository: DecliningRepository, loss: float, merges: int) -> tuple[int, Ended]:
    """Merge until a job of the base branch fails; return the number of merges, and the last job."""
    for number in range(1, merges + 1):
        repository.merge_loss(loss)
        ended = repository.base_job()
        if ended.status:
            return number, ended
    return merges, ended


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_point_per_merge_is_found_before_it_has_cost_ten(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    repository = after_three_runs(tmp_path, command, monkeypatch, seed)
    first = git(repository.folder, "rev-parse", "HEAD")
    merges, ended = merge_until_red(repository, LOSS, MERGES)
    assert (ended.status, merges <= 10) == (1, True), ended.text
    found = repository.comparison(repository.baseline)
    look = found.long_look
    assert look is not None
    assert (found.verdict, found.stage, look.verdict) == ("regressed", "long-look", "regressed")
    assert (look.commit, look.merges) == (first, merges)
    words = f"since {first[:7]} ({merges} merges) f1_score fell"
    assert words in verdict_of(ended.out)
    assert "no single pull request was proven to do it" in ended.out
    # The runs of every merge are listed, and the proof's numbers agree.
    assert len(look.runs) == 3 + merges
    (metric,) = look.metrics
    assert metric.proven
    assert metric.p is not None
    assert metric.limit in {0.0015, 0.003, 0.0045, 0.00775}
    assert metric.p <= metric.limit
    assert metric.interval is not None
    assert metric.interval[1] < 0
    # A new epoch begins with all runs of the newest commit.
    results = repository.results(repository.baseline)
    tip = git(repository.folder, "rev-parse", "HEAD")
    assert results.epoch is not None
    assert results.epoch.cause == "proven"
    assert {entry.commit for entry in results.pool} == {tip} == {entry.epoch for entry in results.pool}
    assert len(results.pool) > 1
    # The next run is compared with these alone.
    assert repository.base_job().status == 0


@pytest.mark.long
def test_a_branch_that_does_not_change_is_never_red(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = after_three_runs(tmp_path, command, monkeypatch, 3)
    looks = []
    for _ in range(12):
        repository.merge_loss(0.0)
        assert repository.base_job().status == 0
        if look := repository.comparison(repository.baseline).long_look:
            looks.append(look.verdict)
    assert looks
    assert set(looks) == {"unchanged"}
    epoch = repository.results(repository.baseline).epoch
    assert epoch is not None
    assert epoch.cause is None
    assert epoch.merges < 10


@pytest.mark.long
def test_an_issue_instead_of_a_red_run(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = after_three_runs(tmp_path, command, monkeypatch, 1, long_look="issue")
    repository.merge_loss(0.06)
    for _ in range(11):
        ended = repository.base_job()
        assert ended.status == 0, ended.text
        look = repository.comparison(repository.baseline).long_look
        if look is not None and look.verdict == "regressed":
            break
        repository.merge_loss(0.005)
    assert look is not None
    assert look.is_issue
    assert repository.comparison(repository.baseline).verdict != "regressed"
    assert "the base branch declines slowly: since" in ended.out


@pytest.mark.long
def test_off_makes_no_long_look(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = after_three_runs(tmp_path, command, monkeypatch, 1, long_look="off")
    for _ in range(11):
        repository.merge_loss(0.0)
        repository.base_job()
        assert repository.comparison(repository.baseline).long_look is None


@pytest.mark.long
def test_the_oldest_commit_whose_agent_runs_takes_the_place_of_one_that_does_not(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = DecliningRepository.begin(tmp_path / "bot", command, monkeypatch, 1)
    # The first jobs have a file that no commit contains, so the first commit does not run on its own.
    (repository.folder / "missing.py").touch()
    repository.write_agent("import missing")
    git(repository.folder, "commit", "--quiet", "--all", "--amend", "--no-edit")
    for _ in range(3):
        assert repository.base_job().status == 0
    first = git(repository.folder, "rev-parse", "HEAD")
    second = repository.merge_loss(LOSS)
    repository.base_job()
    warnings = []
    for _ in range(1, MERGES):
        repository.merge_loss(2 * LOSS)
        ended = repository.base_job()
        warnings += [line for line in ended.out.splitlines() if "cannot run beside the change" in line]
        if ended.status:
            break
    look = repository.comparison(repository.baseline).long_look
    assert ended.status == 1, ended.text
    assert look is not None
    assert (look.verdict, look.commit) == ("regressed", second)
    assert warnings
    assert all(f"the agent of commit {first[:12]} cannot run" in warning for warning in warnings)
    assert "No module named 'missing'" in warnings[0]


@pytest.mark.long
def test_a_limit_leaves_the_long_look_due(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = after_three_runs(tmp_path, command, monkeypatch, 1, max_confirmation={"runs": 1})
    for _ in range(11):
        repository.merge_loss(0.0)
        ended = repository.base_job()
        assert ended.status == 0, ended.text
    found = repository.comparison(repository.baseline)
    assert found.long_look is not None
    assert found.long_look.verdict == "unproven"
    assert "`max_confirmation: {runs: 1}` ended the confirmation" in ended.out
    epoch = repository.results(repository.baseline).epoch
    assert epoch is not None
    assert epoch.merges == 11
