"""Where code graders are imported from: the suite's directory, its ``src``, then the working directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support import agenteval, environment

SUITE = """\
evaluations: {metrics: [{type: code, grader: "graders.shop:grade"}]}
test_cases: [{name: a, input: hi}]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "work/suites").mkdir(parents=True)
    (tmp_path / "work/suites/agent.yaml").write_text(SUITE)
    (tmp_path / "work/agent.py").write_text("def reply(request):\n    return 'hello'\n")
    (tmp_path / "work/agenteval.yaml").write_text("agents: {default: {python: 'agent:reply'}}\n")
    return tmp_path / "work"


def grader(directory: Path, code: str) -> None:
    (directory / "graders").mkdir(parents=True)
    (directory / "graders/shop.py").write_text(code)


@pytest.mark.parametrize("folders", [["."], ["suites"], ["suites/src"], ["suites", "."], ["suites/src", "."]])
def test_the_suite_precedes_the_working_directory(repository: Path, folders: list[str]) -> None:
    for index, folder in enumerate(folders):
        grader(repository / folder, f"def grade(context):\n    return {index == 0}\n")
    ended = agenteval("run", "suites/agent.yaml", "--out", "out", cwd=repository)
    assert ended.status == 0, ended.text


class TestVariablesOfEnvFiles:
    """Graders get the variables of the project's ``.env`` files, which HoloDeck loads into its own process."""

    GRADER = """\
import os


def grade(context):
    from agenteval.grader import GraderResult

    found = {name: os.environ.get(name) for name in ("SHOP", "SHOP_TOKEN", "OF_JOB", "GITHUB_OUTPUT")}
    return GraderResult(score=1.0, passed=True, reason=str(found))
"""

    @pytest.fixture
    def graded(self, repository: Path) -> Path:
        grader(repository / "suites", self.GRADER)
        (repository / ".env").write_text("SHOP=of the working directory\nOF_JOB=of the file\n")
        (repository / "suites/.env").write_text("SHOP=unused\nSHOP_TOKEN=tok-0123456789\nGITHUB_OUTPUT=/tmp/x\n")
        return repository

    def reasons(self, repository: Path) -> dict[str, str]:
        env = environment() | {"OF_JOB": "of the job"}
        ended = agenteval("run", "suites/agent.yaml", "--out", "out", cwd=repository, env=env)
        assert ended.status == 0, ended.text
        results = json.loads((repository / "out/results.json").read_text())
        (turn,) = results["suites"][0]["cases"][0]["iterations"][0]["turns"]
        return {score["id"]: score["reason"] for score in turn["scores"]}

    def test_graders_get_them_and_their_secrets_are_masked(self, graded: Path) -> None:
        found = self.reasons(graded)
        assert found == {
            "grade": "{'SHOP': 'of the working directory', 'SHOP_TOKEN': '***', 'OF_JOB': 'of the job', "
            "'GITHUB_OUTPUT': None}"
        }
        assert "tok-0123456789" not in (graded / "out/results.json").read_text()
