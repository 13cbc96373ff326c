from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.report.terminal_lines import NextCommands, next_commands


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (["run"], "agenteval run --failed"),
        (["run", "a b.yaml", "--baseline", "base"], "agenteval run 'a b.yaml' --baseline base --failed"),
        (["run", "--failed", "-v"], "agenteval run -v --failed"),
        (["run", "--failed-in", "base", "--iterations", "3"], "agenteval run --iterations 3 --failed"),
        (["run", "--failed-in=base", "--resume"], "agenteval run --failed"),
        # Another directory may be a baseline, which a part of a run is not.
        (["run", "--runs", "3", "--out", "base"], "agenteval run --failed-in base"),
        (["run", "--shard=1/2"], ""),
        ([], ""),
    ],
)
def test_the_same_command_runs_again_what_did_not_pass(words: list[str], again: str) -> None:
    assert next_commands(Path("agenteval-report"), words).again == again


def test_the_page_is_opened_by_a_command() -> None:
    found = next_commands(Path("my out"))
    assert found == NextCommands("", "agenteval prove 'my out'", "agenteval open 'my out'", "my out/report.html")
    assert next_commands(Path("agenteval-report")).look == "agenteval open"
