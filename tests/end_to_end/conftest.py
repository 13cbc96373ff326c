"""Fixtures for the tests of whole commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support import FOREIGN_VARIABLES, Ended, listening, trusting_one_authority

from agenteval.cli import main as cli

Command = Callable[..., Ended]


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test read more than one certificate authority."""
    with pytest.MonkeyPatch.context() as patch:
        for name, file in trusting_one_authority(tmp_path_factory.mktemp("authorities")).items():
            patch.setenv(name, file)
        yield


class _NothingFound(BaseHTTPRequestHandler):
    """Finds nothing, as GitHub does for a token that may see nothing."""

    protocol_version = "HTTP/1.1"

    def handle_request(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        content = b'{"message": "Not Found"}'
        self.send_response(404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.handle_request
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="session")
def nothing_there() -> Iterator[str]:
    """Address of an API that finds nothing. Where no server listens, retries take six seconds per request."""
    with listening(_NothingFound) as address:
        yield address


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
