"""Accepting what a run found, through the program in a git repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.judged_repository import Repository, made_repository
from tests.git_server import commit, git
from tests.support import Ended

FILE = ".agenteval/accepted.yaml"


@pytest.fixture
def repository(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return made_repository(command, tmp_path, monkeypatch)


def accept(repository: Repository, *names: str, reason: str = "the tariff changed") -> Ended:
    return repository.command("accept", *names, "--reason", reason)


def entries(repository: Repository) -> list[dict[str, Any]]:
    content = yaml.safe_load((repository.folder / FILE).read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = content["accepted"]
    return found


def removed(repository: Repository) -> None:
    suite = repository.suite
    suite["test_cases"].pop(0)
    repository.write_suite(suite)


def broken(repository: Repository) -> None:
    repository.break_agent("question c0")


def other_answer(repository: Repository) -> None:
    """The agent answers something else on purpose, and so does the suite."""
    repository.break_agent("question c0")
    repository.edit_case("c0", ground_truth="wrong")


CHANGES: dict[str, Callable[[Repository], None]] = {"removed": removed, "worse": broken, "edited": other_answer}


@pytest.mark.parametrize("change", CHANGES)
def test_an_accepted_change_is_green_and_listed(repository: Repository, change: str) -> None:
    CHANGES[change](repository)
    assert repository.compared().status == 1
    done = accept(repository, "c0")
    assert done.status == 0, done.text
    assert FILE in done.text
    (entry,) = entries(repository)
    assert (entry["case"], entry["change"], entry["reason"]) == ("agent.yaml::c0", change, "the tariff changed")
    ended = repository.compared()
    assert ended.status == 0, ended.text
    what = "c0" if change == "worse" else f"c0 ({change})"
    assert f"{what} was accepted by a@b.c: the tariff changed" in ended.text
    acknowledged = [item.accepted_by for item in repository.differences(change)]
    assert [item and (item.author, item.reason) for item in acknowledged] == (
        [] if change == "worse" else [("a@b.c", "the tariff changed")]
    )


@pytest.mark.parametrize("change", ["removed", "worse", "edited"])
def test_it_is_forgotten_when_the_base_has_caught_up(repository: Repository, change: str) -> None:
    CHANGES[change](repository)
    repository.compared()
    accept(repository)
    commit(repository.folder)
    git(repository.folder, "checkout", "--quiet", "-B", "main")
    repository.run("--out", "../base")
    git(repository.folder, "checkout", "--quiet", "-b", "next")
    ended = repository.compared()
    assert ended.status == 0, ended.text
    assert "accepted by" not in ended.text
    repository.break_agent("question c0", "question c1")
    assert repository.compared().status == 1


def test_it_does_not_count_for_another_change_of_the_case(repository: Repository) -> None:
    other_answer(repository)
    repository.compared()
    accept(repository, "agent.yaml::c0")
    repository.edit_case("c0", ground_truth="wrong", input="question c0?")
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert "accepted by" not in ended.text
    assert f"{FILE}:4: the entry for agent.yaml::c0 does not count: the case has changed since" in ended.text.replace(
        "\u200b", ""
    )


def test_it_does_not_cover_another_case(repository: Repository) -> None:
    repository.break_agent("question c0", "question c1")
    repository.compared()
    accept(repository, "c0")
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert "1 of 6 cases broke" in ended.text
