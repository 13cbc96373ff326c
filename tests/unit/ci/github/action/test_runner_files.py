"""What user code does to the runner's files is undone, where agenteval cannot keep it away from them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.core.errors import InfrastructureError
from agenteval.github.isolation import reverted_files

BEFORE = b"stage=running\n"


def _sparse(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(2**40)


def _linked(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_bytes(BEFORE)
    path.unlink()
    path.symlink_to(elsewhere)


def _folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


#: What user code does to a file.
ATTACKS: dict[str, Callable[[Path], object]] = {
    "appended": lambda path: path.write_bytes(BEFORE + b"LD_PRELOAD=/tmp/x.so\n"),
    "changed": lambda path: path.write_bytes(BEFORE[::-1]),
    "emptied": lambda path: path.write_bytes(b""),
    "removed": Path.unlink,
    "a sparse file": _sparse,
    "a link": _linked,
    "a folder": _folder,
    "a pipe": _pipe,
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A step whose runner has command files and an event."""
    folder = tmp_path / "_runner_file_commands"
    folder.mkdir()
    names = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "GITHUB_EVENT_PATH")
    found = {name: str(folder / name.lower()) for name in names}
    for path in found.values():
        Path(path).write_bytes(BEFORE)
    return found


def test_what_user_code_makes_of_a_file_is_undone(environment: dict[str, str]) -> None:
    for attack, change in ATTACKS.items():
        with reverted_files(environment):
            for path in environment.values():
                change(Path(path))
        for name, path in environment.items():
            assert not Path(path).is_symlink(), (attack, name)
            assert Path(path).read_bytes() == BEFORE, (attack, name)


def test_what_agenteval_needs_not_exist(tmp_path: Path) -> None:
    """A step outside of a workflow has no such files, and none are made."""
    with reverted_files({"GITHUB_ENV": str(tmp_path / "none"), "GITHUB_OUTPUT": ""}):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_restored_keeps_no_other_one_from_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone" / "output"
    gone.parent.mkdir()
    gone.write_bytes(BEFORE)
    environment["GITHUB_OUTPUT"] = str(gone)

    def spoiled() -> None:
        with reverted_files(environment):
            shutil.rmtree(gone.parent)
            for path in (Path(environment["GITHUB_ENV"]), Path(environment["GITHUB_EVENT_PATH"])):
                path.write_bytes(b"PATH=/tmp\n")

    with pytest.raises(InfrastructureError, match="and it cannot be restored"):
        spoiled()
    assert Path(environment["GITHUB_ENV"]).read_bytes() == BEFORE
    assert Path(environment["GITHUB_EVENT_PATH"]).read_bytes() == BEFORE
