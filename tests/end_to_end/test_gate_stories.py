"""The gate through the command line over the life of a repository: many merges, and agents behind an address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.gated_repository import BAD, GOOD, Repository
from tests.git_server import commit, git
from tests.support import Answer, Service, case, serving, write_suite

MERGES, BETTER, WORSE = 30, 12, 22


def propose_note(repository: Repository, number: int) -> None:
    """Propose a change that does not change the agent."""
    (repository.folder / "notes.txt").write_text(f"change {number}", encoding="utf-8")
    repository.propose()


@pytest.mark.long
def test_thirty_merges(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Harmless changes are merged, the worse one is blocked, and the better one begins an epoch."""
    repository = Repository.create(tmp_path / "bot", command, monkeypatch, ranking=BAD)
    repository.base_job()
    begun = git(repository.folder, "rev-parse", "HEAD")
    for number in range(1, MERGES + 1):
        if number == BETTER:
            repository.rank(GOOD)
        propose_note(repository, number)
        ended = repository.pull_request_job()
        assert ended.status == 0, f"{number}: {ended.text}"
        assert repository.comparison().verdict == "unchanged"
        repository.merge()
        ended = repository.base_job()
        assert ended.status == 0, f"{number}: {ended.text}"
        merged, tip = repository.results(repository.baseline), git(repository.folder, "rev-parse", "HEAD")
        assert merged.comparison is not None
        assert merged.comparison.verdict == ("improved" if number == BETTER else "unchanged")
        begun = tip if number == BETTER else begun
        assert {entry.epoch for entry in merged.pool} == {begun}
        assert merged.pool[-1].commit == tip
        if number == WORSE:
            repository.rank(BAD)
            propose_note(repository, -1)
            ended = repository.pull_request_job()
            assert ended.status == 1, ended.text
            assert (repository.comparison().verdict, repository.comparison().control) == ("regressed", tip)
            repository.close()
    assert len(merged.pool) == 10


# An agent behind an address is the same for every commit, unless its deployment of the base commit is named


def says(text: Callable[[str], str]) -> Callable[[dict[str, Any]], Answer]:
    return lambda request: Answer({"response": text(request["input"])})


@pytest.fixture
def deployments() -> Iterator[tuple[Service, Service]]:
    """The deployment of the change, which answers every fourth question wrong, and that of the base commit."""
    with ExitStack() as entered:
        wrong = says(lambda text: "wrong" if int(text) % 4 == 0 else text)
        yield entered.enter_context(serving(wrong)), entered.enter_context(serving(says(str)))


@pytest.fixture
def empty(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository without a commit."""
    folder = tmp_path / "bot"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return Repository(folder, command, monkeypatch)


@pytest.mark.parametrize(("is_named", "runs"), [(True, 1), (False, 1), (False, 3)])
def test_an_agent_behind_an_address(
    empty: Repository, deployments: tuple[Service, Service], is_named: bool, runs: int
) -> None:
    repository, folder = empty, empty.folder
    new, old = deployments
    (folder / ".gitignore").write_text("reports\n", encoding="utf-8")
    write_suite(folder, [case(str(number), str(number), str(number)) for number in range(20)])
    current = {"http": "${BOT_URL}", **({"control": "base"} if is_named else {})}
    agents = {"default": current, "base": {"http": "${BASE_URL}"}}
    settings = {
        "agents": agents,
        "allow_env": ["BOT_URL", "BASE_URL"],
        "gate": {"fail_on": ["regressions", "unproven"]},
    }
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    commit(folder)
    repository.variables = {"BOT_URL": old.url, "BASE_URL": old.url}
    for _ in range(runs):
        assert repository.base_job().status == 0
    old.requests.clear()
    propose_note(repository, 1)
    repository.variables["BOT_URL"] = new.url
    ended = repository.pull_request_job()
    found = repository.comparison()
    reason = found.policy["reason"]
    if is_named:
        assert (ended.status, found.verdict, found.control) == (1, "regressed", None), ended.text
        # The deployment of the base commit answered beside the change.
        assert old.requests
        return
    assert "an agent that is called over http is the same for every commit" in ended.text
    assert not old.requests
    if runs < 3:
        assert (ended.status, found.verdict) == (3, "unproven"), ended.text
        assert "name it with 'control:' in agenteval.yaml" in reason
    else:
        assert (ended.status, found.verdict, found.stage) == (1, "regressed", "earlier-runs"), ended.text
        assert "drift cannot be told from regression" in reason
