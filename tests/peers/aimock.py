"""Starts aimock, which plays the APIs of OpenAI, Azure, Anthropic and Ollama, and reads what it was asked."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.node_program import node_program
from tests.peers.node_program import running as node_program_running
from tests.support import free_port

KEY = "sk-0123456789abcdefghijklmnopqrstuvwxyz"

_PACKAGE = "@copilotkit/aimock"
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


def offer(name: str) -> Fixture:
    """A fixture that answers nothing, but lets the server list a model as one that it has."""
    return {"match": {"model": name, "userMessage": f"only lists {name}"}, "response": {"content": "-"}}


@contextmanager
def running_ag_ui(folder: Path, fixtures: Sequence[Fixture]) -> Iterator[str]:
    """Runs an AG-UI agent for the length of the block; yields its address."""
    url = f"http://127.0.0.1:{free_port()}"
    config = folder / "config.json"
    config.write_text(json.dumps({"agui": {"fixtures": list(fixtures)}}), encoding="utf-8")
    command = [*node_program(_PACKAGE, "dist/aimock-cli.js", "20.15"), "--config", str(config)]
    command += ["--port", url.rpartition(":")[2]]
    with node_program_running(command, f"{url}/health", folder / "ag-ui.log"):
        yield f"{url}/agui"


@contextmanager
def running(folder: Path) -> Iterator[Aimock]:
    """Runs the server for the length of the block; its log is kept in the folder."""
    url = f"http://127.0.0.1:{free_port()}"
    # It does not start without any fixture.
    first = folder / "first.json"
    first.write_text(json.dumps({"fixtures": [offer("-")]}), encoding="utf-8")
    command = [*node_program(_PACKAGE, "dist/cli.js", "20.15"), "--fixtures", str(first)]
    command += ["--host", "127.0.0.1", "--port", url.rpartition(":")[2]]
    command += ["--strict", "--journal-max", "0", "--log-level", "warn"]
    with node_program_running(command, f"{url}/__aimock/health", folder / "aimock.log"):
        yield Aimock(url)
