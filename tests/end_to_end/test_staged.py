"""`gate.staged`: a pull request asks settled cases once, and the base branch and its pool ask all iterations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.gated_repository import BAD, GATE, GOOD, Repository
from tests.git_server import commit

from agenteval.results.model import Results

CASES, ITERATIONS, RUNS = 19, 3, 3


@pytest.fixture
def repository(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose base branch is staged and has a pool of three runs of an agent without chance."""
    found = Repository.create(tmp_path / "bot", command, monkeypatch, ranking=GOOD)
    found.variables = {}
    found.configure({**GATE, "staged": True})
    commit(found.folder)
    for _ in range(RUNS):
        assert found.base_job().status == 0
    return found


def asked(results: Results) -> set[tuple[int, int]]:
    """The iterations of the cases, and those that were left out."""
    return {(len(case.iterations), case.unneeded) for _, case in results.cases()}


@pytest.mark.long
def test_a_pull_request_asks_settled_cases_once(repository: Repository) -> None:
    whole = repository.results(repository.baseline)
    assert (asked(whole), len(whole.pool)) == ({(ITERATIONS, 0)}, RUNS)
    planned = repository.command("run", "--dry-run", "--baseline", repository.baseline)
    assert f"run: {CASES} cases, {CASES} calls; {2 * CASES} of {ITERATIONS * CASES} are not needed" in planned.out

    (repository.folder / "notes.txt").write_text("a harmless change", encoding="utf-8")
    repository.propose()
    done = repository.pull_request_job()
    assert (done.status, asked(repository.results())) == (0, {(1, 2)})
    assert repository.comparison().verdict == "unchanged"
    comment = (repository.folder / "reports/pull-request/comment.md").read_text(encoding="utf-8")
    assert f"{CASES} cases × {ITERATIONS} ({2 * CASES} of {ITERATIONS * CASES} were not needed)" in comment
    again = repository.pull_request_job("--resume")
    assert (again.status, asked(repository.results())) == (0, {(1, 2)})

    repository.merge()
    assert repository.base_job().status == 0
    merged = repository.results(repository.baseline)
    assert (asked(merged), len(merged.pool)) == ({(ITERATIONS, 0)}, RUNS + 1)
    assert len({entry.epoch for entry in merged.pool}) == 1


@pytest.mark.long
def test_a_staged_run_finds_what_a_whole_one_finds(repository: Repository) -> None:
    repository.rank(BAD)
    repository.propose()
    done = repository.pull_request_job()
    assert (done.status, asked(repository.results())) == (1, {(1, 2)})
    found = repository.comparison()
    assert found.verdict == "regressed"
    broken = {proof.id for proof in found.proofs if proof.proven}
    failing = {case.id for _, case in repository.results().cases() if case.status == "failed"}
    assert broken == failing != set()

    parts = [f"reports/part-{number}" for number in (1, 2)]
    for number, part in enumerate(parts, start=1):
        repository.runs += 1
        shard = ("--shard", f"{number}/2", "--baseline", repository.baseline, "--out", part)
        assert repository.command("run", "--quiet", *shard).status in {0, 1}
        assert asked(repository.results(part)) == {(1, 2)}
    done = repository.command("merge", *parts, "-o", "reports/merged/results.json", "--baseline", repository.baseline)
    assert done.status == 1, done.text
    merged = repository.results("reports/merged")
    assert asked(merged) == {(1, 2)}
    assert merged.comparison is not None
    assert merged.comparison.verdict == "regressed"


@pytest.mark.long
def test_the_base_commit_decides_whether_a_run_is_staged(repository: Repository) -> None:
    repository.configure(GATE)
    repository.propose()
    repository.pull_request_job()
    assert asked(repository.results()) == {(1, 2)}
    assert "gate.staged" in {item.setting for item in repository.results().run.integrity}
