"""The compared programs: agenteval with each kind of agent, and its peers; how each is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.speed.peers import PEERS, PYTHON_PEERS, Environment
from benchmarks.speed.workloads import AT_ONCE, Kind, Workload

Leaves = Literal["agenteval", "promptfoo", "driver", "nothing"]

REPLAY, PYTHON, HTTP = "agenteval, replay", "agenteval, python", "agenteval, http"
OURS = (REPLAY, PYTHON, HTTP)

_ROOT = Path(__file__).parents[2]
_DRIVERS = {"pydantic-evals": "pydantic_evals", "inspect-ai": "inspect"}
BARE, PYDANTIC, PROMPTFOO = "bare loop", "pydantic-evals", "promptfoo (echo)"
_LABELS = {"bare": BARE, "promptfoo": PROMPTFOO, "deepeval": "deepeval `evaluate()`"}
_OUR_KINDS: Mapping[str, tuple[Kind, ...]] = {
    REPLAY: ("version", "exact", "overlap"),
    PYTHON: ("exact",),
    HTTP: ("http",),
}
_PROMPTFOO_OPTIONS = (
    *("--config", "promptfoo.yaml", "--output", "results.json", "--max-concurrency", str(AT_ONCE)),
    *("--no-table", "--no-progress-bar", "--no-cache"),
)
# Variables of a workflow, and those that keep Python from storing compiled modules, which every installation has.
_DROPPED = ("GITHUB_", "INPUT_", "PYTHON")
# The longest workload takes a minute and a half on an idle machine.
LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the table. ``leaves`` names the reader of its results."""

    name: str
    leaves: Leaves
    start: tuple[str, ...]
    missing: str = ""

    def does(self, workload: Workload) -> bool:
        """Return whether the program takes part in a workload."""
        if self.name in OURS:
            return workload.kind in _OUR_KINDS[self.name]
        # The start-up of a peer is not compared, and a hundred thousand cases take some peers an hour.
        return workload.kind != "version" and workload.cases <= 10_000

    def command(self, workload: Workload, url: str) -> list[str]:
        """Return the command to run in the folder of the inputs; ``url`` is the address of the HTTP agent."""
        if self.leaves == "driver":
            return [*self.start, workload.kind, *([url] if workload.kind == "http" else [])]
        if self.leaves == "promptfoo":
            return [*self.start, "eval", *_PROMPTFOO_OPTIONS]
        if workload.kind == "version":
            return [*self.start, "--version"]
        agent = {REPLAY: "replay:answers.jsonl", PYTHON: "python:agent:reply", HTTP: url}[self.name]
        at_once = ["--concurrency", str(AT_ONCE)] if workload.kind == "http" else []
        return [*self.start, "run", "agent.yaml", "--agent", agent, "--quiet", "--out", "out", *at_once]


def programs(agenteval: Path, environments: Mapping[str, Environment]) -> list[Program]:
    """Return agenteval (three times, by kind of agent), then the peers."""
    ours = [Program(name, "agenteval", (str(agenteval),)) for name in OURS]
    return [*ours, *(_peer(name, environments[name]) for name in PEERS if name in environments)]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of all programs: nothing is sent, nothing is written outside the folder."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)},
        "PYTHONPATH": str(_ROOT),
        # As after actions/setup-python: `python3` is a Python, and not a version manager's script that looks for one.
        "PATH": os.pathsep.join([str(Path(sys.executable).resolve().parent), os.environ.get("PATH", "")]),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / ".promptfoo"),
    }


def _peer(name: str, found: Environment) -> Program:
    label = _LABELS.get(name, name)
    if name in PYTHON_PEERS:
        module = f"benchmarks.speed.drivers.{_DRIVERS.get(name, name)}"
        return Program(label, "driver", (*found.command, "-m", module), found.missing)
    return Program(label, "promptfoo", found.command, found.missing)
