"""Fixtures for the tests of whole commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import certifi
import pytest
from tests.support import FOREIGN_VARIABLES, Ended

from agenteval.cli import main as cli

Command = Callable[..., Ended]


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that call a model read all certificate authorities, which takes 25 ms; no test needs more than one."""
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = certifi.contents().partition(end)
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(first + end, encoding="ascii")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        patch.setenv("REQUESTS_CA_BUNDLE", str(file))
        yield


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
