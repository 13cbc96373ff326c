"""Starts aimock, which plays the APIs of OpenAI, Azure, Anthropic and Ollama, and reads what it was asked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

KEY = "sk-0123456789abcdefghijklmnopqrstuvwxyz"

_HERE = Path(__file__).parent
_START_S = 30

Fixture = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One request that the server was sent; it keeps bodies in OpenAI's form, whoever was asked."""

    path: str
    status: int
    time_ms: int
    body: Mapping[str, Any]

    @property
    def prompt(self) -> Any:
        """The last message."""
        return self.body["messages"][-1]["content"]


@dataclass(frozen=True)
class Aimock:
    """A running server. Every test says what it plays; what matches nothing is answered with 503."""

    url: str

    def play(self, *fixtures: Fixture) -> None:
        """Forget everything, and answer by these fixtures; the first that matches wins."""
        self._post("reset", {})
        self._post("chaos", {})
        if fixtures:
            self._post("fixtures", {"fixtures": list(fixtures)})

    def disturb(self, **chaos: float) -> None:
        """Disturb every answer, for instance ``latencyMs``."""
        self._post("chaos", chaos)

    def forget(self) -> None:
        """Start the list of requests anew."""
        self._post("reset/journal", {})

    def requests(self) -> list[Request]:
        """What was asked, in order."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal", timeout=_START_S) as reply:
            listed = json.load(reply)
        return [
            Request(item["path"], item["response"]["status"], item["timestamp"], item["body"] or {})
            for item in listed
        ]

    def model(self, provider: str, name: str, **fields: Any) -> dict[str, Any]:
        """A model of this server, as a suite names it."""
        endpoint = f"{self.url}/v1" if provider == "openai" else self.url
        key = {} if provider == "ollama" else {"api_key": KEY}
        return {"provider": provider, "name": name, "endpoint": endpoint, **key, **fields}

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        request = urllib.request.Request(
            f"{self.url}/__aimock/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        urllib.request.urlopen(request, timeout=_START_S).close()


def read_fixtures(file: Path) -> Sequence[Fixture]:
    """The fixtures of a file."""
    fixtures: list[Fixture] = json.loads(file.read_text(encoding="utf-8"))["fixtures"]
    return fixtures


@contextmanager
def running(folder: Path) -> Iterator[Aimock]:
    """Runs the server for the length of the block; its log is kept in the folder."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    first, log = folder / "first.json", folder / "aimock.log"
    # It does not start without any.
    first.write_text(
        '{"fixtures": [{"match": {"userMessage": "-"}, "response": {"content": "-"}}]}', encoding="utf-8"
    )
    command = [*_program(), "--host", "127.0.0.1", "--port", str(port), "--fixtures", str(first)]
    command += ["--strict", "--journal-max", "0", "--log-level", "warn"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait_until_up(url, process, log)
        yield Aimock(url)
    finally:
        process.terminate()
        process.wait()


def _program() -> list[str]:
    """Node and the server's script, from ``make peers``; ``AGENTEVAL_NODE`` names another node."""
    script = _HERE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    installed = sorted(_HERE.glob("node_modules/node*/bin/node"))
    node = os.environ.get("AGENTEVAL_NODE") or (str(installed[0]) if installed else "")
    if not node or not script.exists():
        raise RuntimeError(
            "The peer tests need node 20.15 or newer and the package @copilotkit/aimock: run `make peers`, "
            "and set AGENTEVAL_NODE on systems other than Linux."
        )
    return [node, str(script)]


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/__aimock/health", timeout=1).close()
        except (URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"aimock did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
