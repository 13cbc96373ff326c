"""Files of the base commit belong to the repository of the pull request, not to another one beside it or inside."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from tests.git_server import commit, git

from agenteval.core.errors import AgentEvalError, ConfigError, Problem
from agenteval.github.client import GitHubClient
from agenteval.github.context import BaseFiles

LIST = "allow_env: [THE_KEY]\n"


def without_token() -> GitHubClient:
    raise ConfigError(Problem("no token"))


def never() -> NoReturn:
    raise AssertionError("GitHub is asked")


@pytest.mark.parametrize("here", [".", "project", "project/suites"])
def test_each_configuration_is_read_from_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    project, inner, beside = (tmp_path / name for name in ("project", "project/inner", "beside"))
    for folder in (project, inner, beside, project / "suites"):
        folder.mkdir()
        (folder / "agenteval.yaml").write_text(LIST, encoding="utf-8")
    for folder in (inner, beside, project):
        git(folder, "init", "--quiet")
    (project / ".gitignore").write_text("inner\n", encoding="utf-8")
    head = commit(project)
    for folder in (project, project / "suites"):
        (folder / "agenteval.yaml").write_text("allow_env: [EVERY_KEY]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / here)
    ours = BaseFiles(without_token, "o/r", lambda: head, tmp_path)
    assert ours.read(project / "agenteval.yaml") == LIST
    assert ours.read(project / "suites" / "agenteval.yaml") == LIST
    strict = BaseFiles(never, "o/r", lambda: head, tmp_path)
    for folder in (inner, beside) if here != "." else (inner,):
        with pytest.raises(AgentEvalError, match="is in another repository than the pull request"):
            strict.read(folder / "agenteval.yaml")
