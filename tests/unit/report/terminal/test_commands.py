from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.report.terminal_lines import NextCommands, next_commands


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (["run"], "agenteval run"),
        (["run", "a b.yaml", "--baseline", "base"], "agenteval run 'a b.yaml' --baseline base"),
        (["run", "--failed", "-v"], "agenteval run -v"),
        (["run", "--failed-in", "base", "--iterations", "3"], "agenteval run --iterations 3"),
        (["run", "--failed-in=base", "--resume"], "agenteval run"),
        (["run", "--runs", "3", "--out", "base"], "agenteval run"),
        (["run", "--shard=1/2"], ""),
        ([], ""),
    ],
)
def test_the_same_command_runs_again_what_did_not_pass(words: list[str], again: str) -> None:
    assert next_commands(Path("agenteval-report"), words).again == again


def test_commands_name_the_directory_of_the_reports() -> None:
    found = next_commands(Path("my out"))
    page = "my out/report.html"
    assert found == NextCommands(
        "", "agenteval prove 'my out'", "agenteval open 'my out'", page, "--failed-in 'my out'"
    )
    usual = next_commands(Path("agenteval-report"))
    assert (usual.look, usual.failed) == ("agenteval open", "--failed")
