"""A suite whose agent breaks the cases that it is told to, and notes who asked it what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import Ended, case, python_agent, write_suite

from agenteval.results.model import Results
from agenteval.results.store import read_results

CASES = 20
# As agent.py of a commit: BROKEN names the cases that it answers wrong, wherever the environment does not.
AGENT = """
import json, os, time
BROKEN = ""
LOG = {log!r}
def reply(request):
    with open(LOG, "a") as file:
        file.write(json.dumps({{"case": request["case"], "session": request["session"], "from": __file__}}) + "\\n")
    broken = os.environ.get("BROKEN", BROKEN).split()
    if request["case"] in os.environ.get("HANGS", "").split() and "agenteval-control-" in __file__:
        time.sleep(1000)
    return "wrong" if request["case"] in broken else request["input"]
"""


@dataclass(frozen=True)
class RecordedQuestion:
    """One request that reached the agent."""

    case: str
    session: str
    agent: str


@dataclass(frozen=True)
class Project:
    """A directory with a suite, and runs of it."""

    folder: Path
    command: Command
    patch: pytest.MonkeyPatch

    @property
    def log(self) -> Path:
        """Where the agent notes its requests."""
        return self.folder.parent / f"{self.folder.name}.log"

    def write(self, broken: str = "", gate: dict[str, Any] | None = None, cases: int = CASES) -> None:
        """The suite, the agent and the configuration."""
        code = AGENT.format(log=str(self.log)).replace('BROKEN = ""', f"BROKEN = {broken!r}")
        names = [f"c{number:02}" for number in range(cases)]
        write_suite(self.folder, [case(name) for name in names], agent=python_agent(self.folder, code))
        self.configure(gate)

    def configure(self, gate: dict[str, Any] | None) -> None:
        """What the gate is told."""
        text = yaml.safe_dump({"gate": {"fail_on": ["regressions"], **(gate or {})}})
        (self.folder / "agenteval.yaml").write_text(text, encoding="utf-8")

    def run(self, *arguments: str, **variables: str) -> Ended:
        """One run; what the agent was asked before is forgotten."""
        self.log.unlink(missing_ok=True)
        with self.patch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return self.command("run", "--quiet", *arguments)

    def past(self, runs: int, *arguments: str) -> str:
        """So many runs of the base branch; where the last one is."""
        earlier: tuple[str, ...] = ()
        for number in range(runs):
            ended = self.run("--out", f"base-{number}", *arguments, *earlier)
            assert ended.status == 0, ended.text
            earlier = ("--baseline", f"base-{number}")
        return earlier[1]

    def past_as_committed(self, runs: int) -> str:
        """The same; the commit counts as evaluated, although it has other files."""
        folder = self.past(runs)
        file = self.folder / folder / "results.json"
        found = json.loads(file.read_text(encoding="utf-8"))
        assert found["run"].pop("uncommitted")
        file.write_text(json.dumps(found), encoding="utf-8")
        return folder

    def results(self) -> Results:
        """Of the last run that used the default directory."""
        return read_results(self.folder / "agenteval-report")

    def asked(self) -> Sequence[RecordedQuestion]:
        """What the agent was asked in the last run."""
        if not self.log.exists():
            return []
        lines = map(json.loads, self.log.read_text(encoding="utf-8").splitlines())
        return [RecordedQuestion(line["case"], line["session"], line["from"]) for line in lines]


def names(first: int, last: int) -> str:
    """The names of some cases, as the agent wants to be told them."""
    return " ".join(f"c{number:02}" for number in range(first, last))
