"""Fixtures for the tests of whole commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import FOREIGN_VARIABLES, Ended

from agenteval.cli import main as cli

Command = Callable[..., Ended]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line in this process and in an empty directory: many times as fast as a new process."""
    for name in os.environ:
        if name.startswith(FOREIGN_VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Ended:
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else -1
        out, err = capsys.readouterr()
        return Ended(status, out, err)

    return run
