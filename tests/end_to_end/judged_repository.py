"""A git repository with a baseline of its main branch, and a branch whose changes the program judges."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.support import Ended, case, python_agent

from agenteval.results.model import Difference, Results
from agenteval.results.store import read_results

NAMES = [f"c{number}" for number in range(6)]
# The agent of a commit; it answers the questions in BROKEN wrong, and notes whom it answered.
AGENT = """
import json
BROKEN = {broken!r}
def reply(request):
    with open({log!r}, "a") as file:
        file.write(json.dumps(request["case"]) + "\\n")
    return "wrong" if request["input"] in BROKEN else request["input"]
"""
GRADER = """
from agenteval.grader import GraderContext
def check(context: GraderContext):
    return context.agent_response == context.ground_truth
"""
EQUALITY = {"type": "standard", "metric": "equality", "threshold": 1.0}
GRADED = {"type": "code", "grader": "grader:check", "name": "graded"}
GATE: dict[str, Any] = {"must_pass": ["c5"]}
WORKFLOW = Path(".github/workflows/eval.yml")


@dataclass(frozen=True)
class Repository:
    """A repository whose branch ``feature`` left ``main``, where a baseline was made."""

    folder: Path
    command: Command
    log: Path

    @property
    def suite(self) -> dict[str, Any]:
        content: dict[str, Any] = yaml.safe_load((self.folder / "agent.yaml").read_text(encoding="utf-8"))
        return content

    def write_suite(self, suite: dict[str, Any], name: str = "agent.yaml") -> None:
        (self.folder / name).write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")

    def edit_case(self, which: str, **changes: Any) -> None:
        """Change the keys of a case."""
        suite = self.suite
        for item in suite["test_cases"]:
            if item["name"] == which:
                item.update(changes)
        self.write_suite(suite)

    def configure(self, **gate: Any) -> None:
        (self.folder / "agenteval.yaml").write_text(
            yaml.safe_dump({"iterations": 3, "gate": {**GATE, **gate}}), encoding="utf-8"
        )

    def break_agent(self, *questions: str) -> None:
        code = AGENT.format(broken=list(questions), log=str(self.log))
        (self.folder / "agent.py").write_text(code, encoding="utf-8")

    def run(self, *arguments: str) -> Ended:
        self.log.unlink(missing_ok=True)
        return self.command("run", "--quiet", *arguments)

    def compared(self, *arguments: str) -> Ended:
        commit(self.folder)
        return self.run("--baseline", "../base", *arguments)

    @property
    def results(self) -> Results:
        return read_results(self.folder / "agenteval-report")

    def differences(self, kind: str) -> list[Difference]:
        return [item for item in self.results.run.integrity if item.kind == kind]

    def asked(self) -> list[str]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


# The prepared repositories by their cases: tests get copies of them.
_PREPARED: dict[str | None, Path] = {}


@functools.cache
def _home() -> Path:
    """The folder of the prepared repositories."""
    folder = Path(tempfile.mkdtemp(prefix="agenteval-judged-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def made_repository(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: str | None = None
) -> Repository:
    """A repository whose branch ``feature`` is checked out, without changes.

    ``cases`` is the end of ``agent.yaml``, from its key ``test_cases``; by default there is a case for each of NAMES.
    """
    # The committed agent names its log, so all copies of a repository have the same one.
    log = _home() / "asked"
    if cases not in _PREPARED:
        home = Path(tempfile.mkdtemp(dir=_home()))
        _prepare(Repository(home / "work", command, log), monkeypatch, cases)
        _PREPARED[cases] = home
    shutil.copytree(_PREPARED[cases], tmp_path, dirs_exist_ok=True)
    log.unlink(missing_ok=True)
    monkeypatch.chdir(tmp_path / "work")
    return Repository(tmp_path / "work", command, log)


def _prepare(made: Repository, monkeypatch: pytest.MonkeyPatch, cases: str | None) -> None:
    folder = made.folder
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    agent = python_agent(folder, "")
    made.break_agent()
    (folder / "grader.py").write_text(GRADER, encoding="utf-8")
    (folder / ".gitignore").write_text("agenteval-report/\n__pycache__/\n", encoding="utf-8")
    suite: dict[str, Any] = {"agent": agent, "evaluations": {"metrics": [EQUALITY, GRADED]}}
    if cases is None:
        suite["test_cases"] = [case(name, f"question {name}", f"question {name}") for name in NAMES]
    made.write_suite(suite)
    with (folder / "agent.yaml").open("a", encoding="utf-8") as file:
        file.write(cases or "")
    made.configure()
    (folder / WORKFLOW).parent.mkdir(parents=True)
    (folder / WORKFLOW).write_text("jobs: {eval: {steps: [{run: agenteval run}]}}\n", encoding="utf-8")
    commit(folder)
    ended = made.run("--out", "../base")
    assert ended.status == 0, ended.text
    git(folder, "checkout", "--quiet", "-b", "feature")
