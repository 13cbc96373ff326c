"""The files that a command names, so that a run is not resumed after they have changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import agent_spec

from agenteval.run.run_key import files_of_agent


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["./agent", "prompt.txt"], {"agent", "prompt.txt"}),
        (["python3", "agent.py"], {"agent.py"}),
        (["python3", "app"], {"app/__main__.py"}),
        (["python3", "-m", "app.cli"], {"app/cli.py", "src/app/cli/__main__.py"}),
        (["python3", "-mapp"], {"app.py", "app/__main__.py", "src/app.py"}),
        (["python3", "-Im", "app"], {"app.py"}),
        (["python3", "-uImapp"], {"app.py"}),
        (["python3", "-m"], set()),
        (["python3", "-m", "."], set()),
        (["python3", "-m", ""], set()),
    ],
)
def test_a_command_names_its_files(tmp_path: Path, command: list[str], named: set[str]) -> None:
    found = set(files_of_agent(agent_spec("command", command, tmp_path)))
    assert {tmp_path / name for name in named} <= found


def test_the_option_of_another_program_is_not_the_module_of_python(tmp_path: Path) -> None:
    found = set(files_of_agent(agent_spec("command", ["agent", "--model", "gpt"], tmp_path)))
    assert tmp_path / "gpt.py" not in found
