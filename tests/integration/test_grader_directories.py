"""Where code graders are imported from: the suite's directory, its ``src``, then the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import agenteval

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


def test_no_module_of_the_working_directory_hides_one_of_the_standard_library(repository: Path) -> None:
    (repository / "decimal.py").write_text("raise RuntimeError('hidden')\n")
    grader(
        repository / "suites", "from decimal import Decimal\n\n\ndef grade(context):\n    return Decimal(1) == 1\n"
    )
    ended = agenteval("run", "suites/agent.yaml", "--out", "out", cwd=repository)
    assert ended.status == 0, ended.text
