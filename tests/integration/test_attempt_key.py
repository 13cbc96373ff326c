"""The key of an attempt in real repositories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.git_server import commit, git

from agenteval.run.attempt import attempt_key
from agenteval.run.git import ControlError


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an agent, a prompt and documentation."""
    made = tmp_path_factory.mktemp("original") / "project"
    for name in ("agent.py", "README.md", "prompts/system.md", "docs/guide.md", "docs/README.md"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name, encoding="utf-8")
    (made / ".gitignore").write_text("*.log\n", encoding="utf-8")
    git(made, "init", "--quiet", "--initial-branch", "main")
    commit(made)
    return made


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the repository."""
    return Path(shutil.copytree(original, tmp_path / "project"))


def key(folder: Path) -> str:
    return attempt_key(folder, "conditions")


def written(name: str, text: str = "changed") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return change


def linked(folder: Path) -> None:
    (folder / "agent.py").unlink()
    (folder / "agent.py").symlink_to("prompts/system.md")


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        (written("agent.py"), True),
        (written("prompts/system.md"), True),
        (written("new.py"), True),
        (written("name with\nline end\udcff.py"), True),
        (lambda folder: (folder / "agent.py").unlink(), True),
        (lambda folder: (folder / "agent.py").chmod(0o755), True),
        (linked, True),
        (lambda folder: git(folder, "mv", "agent.py", "other.py"), True),
        (written(".gitignore"), True),
        (written("README.md"), False),
        (written("docs/README.md"), False),
        (written("new/CHANGELOG.md"), False),
        (written("run.log"), False),
        (lambda folder: os.utime(folder / "agent.py", (1, 1)), False),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_change_that_counts_changes_the_key(
    folder: Path, change: Callable[[Path], None], is_other: bool, is_committed: bool
) -> None:
    before = key(folder)
    change(folder)
    if is_committed:
        commit(folder)
    assert (key(folder) != before) == is_other


def test_files_of_submodules_and_of_repositories_inside_count(folder: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(folder, inner)
    git(folder, "submodule", "--quiet", "add", str(inner), "module")
    commit(folder)
    shutil.copytree(inner, folder / "apart")
    before = key(folder)
    assert key(folder) == before
    keys = {before}
    for name in ("module/agent.py", "module/README.md", "apart/agent.py"):
        written(name)(folder)
        keys.add(key(folder))
    assert len(keys) == 4


def test_no_program_of_the_repository_runs(folder: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = f"touch {ran}"
    for name in ("filter.f.clean", "filter.f.process", "core.fsmonitor", "core.sshCommand", "diff.f.textconv"):
        git(folder, "config", name, program)
    (folder / ".gitattributes").write_text("* filter=f diff=f\n", encoding="utf-8")
    (folder / "new.py").write_text("new", encoding="utf-8")
    key(folder)
    assert not ran.exists()


def test_what_cannot_be_read_is_no_key(folder: Path, tmp_path: Path) -> None:
    (folder / "agent.py").unlink()
    os.mkfifo(folder / "agent.py")
    with pytest.raises(ControlError, match=r"agent\.py cannot be read"):
        key(folder)
    with pytest.raises(ControlError, match="git ls-files"):
        key(tmp_path)
