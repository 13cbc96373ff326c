"""A pull request from a branch of an emulated GitHub repository, and the machine of its jobs."""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import yaml
from tests.git_server import commit, git
from tests.peers.action_step import Step, as_process, job_environment, process_environment, step_of, written
from tests.peers.github_actions import StoredRun, packed
from tests.peers.github_emulator import REPOSITORY
from tests.peers.github_service import GithubService
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    Ended,
    agenteval,
    case,
    environment,
    eventually,
    results_in,
    write_suite,
)

from agenteval.results.model import Memory

NUMBER = 7
CASES = 12
SHARDS = "agenteval-shards"
_START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
# As agent.py of a commit.
AGENT = """
import json, os, sys, time
request = json.load(sys.stdin)
with open({log!r}, "a") as file:
    file.write("asked\\n")
hangs = {log!r} + ".hangs"
if request["case"] == "c11" and os.path.exists(hangs):
    with open(hangs) as file:
        stage = file.read()
    if stage == ("confirmation" if "agenteval-control-" in os.getcwd() else "first"):
        with open({log!r} + ".hung", "w"):
            time.sleep(1000)
print(request["input"] if {right!r} else "wrong")
"""


@dataclass
class PullRequest:
    """A pull request from a branch of the repository, and the machine of its jobs."""

    github: GithubService
    home: Path
    heads: list[str] = field(default_factory=list)
    base: str = "main"

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def log(self) -> Path:
        return self.home / "log" / "asked"

    def create(self, *, right: bool = True) -> None:
        """Make a repository whose main branch answers right or wrong, and a baseline from it."""
        self.log.parent.mkdir()
        self.log.parent.chmod(0o1777)
        self.workspace.mkdir()
        git(self.workspace, "init", "--quiet", "--initial-branch", "main")
        (self.workspace / ".gitignore").write_text(f"base.json\nagenteval-report\n{SHARDS}\n", encoding="utf-8")
        (self.workspace / "README.md").write_text("A bot.\n", encoding="utf-8")
        names = [f"c{number:02}" for number in range(CASES)]
        write_suite(self.workspace, [case(name) for name in names], agent={"command": ["python3", "agent.py"]})
        self.configure({"fail_on": ["regressions", "unproven"]})
        self.write_agent(right=right)
        commit(self.workspace)
        ran = agenteval("run", "--quiet", "--out", str(self.home / "base"), cwd=self.workspace, env=environment())
        assert ran.status == 0, ran.text
        shutil.copy(self.home / "base" / "results.json", self.workspace / "base.json")
        git(self.workspace, "checkout", "--quiet", "-b", "feature")
        self.log.unlink()

    def configure(self, gate: dict[str, Any]) -> None:
        (self.workspace / "agenteval.yaml").write_text(yaml.safe_dump({"gate": gate}), encoding="utf-8")

    def write_agent(self, *, right: bool) -> None:
        code = AGENT.format(log=str(self.log), right=right)
        (self.workspace / "agent.py").write_text(code, encoding="utf-8")

    def push(self, **files: str) -> None:
        """Add a commit with changed files to the branch, and merge it as GitHub does."""
        git(self.workspace, "checkout", "--quiet", "feature")
        for name, text in files.items():
            (self.workspace / name.replace("_", ".")).write_text(text, encoding="utf-8")
        self._merge()

    def push_agent(self, *, right: bool) -> None:
        """Add a commit with another agent."""
        git(self.workspace, "checkout", "--quiet", "feature")
        self.write_agent(right=right)
        self._merge()

    def commit_to(self, branch: str, gate: dict[str, Any]) -> None:
        """Add a commit with other rules to a base branch, which begins at main."""
        create = () if branch == "main" else ("-b",)
        git(self.workspace, "checkout", "--quiet", *create, branch, *(("main",) if create else ()))
        self.configure(gate)
        commit(self.workspace)

    def retarget(self, base: str) -> None:
        """Merge the branch into a base branch, as GitHub does after that has moved or the base was changed."""
        self.base = base
        git(self.workspace, "checkout", "--quiet", "--detach", base)
        git(self.workspace, "merge", "--quiet", "--no-ff", "--no-edit", "feature")

    def _merge(self) -> None:
        self.heads.append(commit(self.workspace))
        self.retarget(self.base)

    def run(self, *, head_repository: str = REPOSITORY, edited: str = "", attempt: str = "1", **inputs: str) -> Step:
        """Run the action as the job of the newest commit does; the next job starts on a new machine.

        Args:
            edited: what was changed of the pull request, such as ``title``; empty for another event.
        """
        variables, event = self._job(head_repository, edited)
        given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
        return as_process(self.workspace, variables | given | {"GITHUB_RUN_ATTEMPT": attempt}, event)

    def cancel(self, stage: str) -> Step:
        """Run the action, whose agent hangs in a stage, and cancel the job there."""
        hangs, hung = (self.log.with_name(f"asked.{name}") for name in ("hangs", "hung"))
        hangs.write_text(stage, encoding="utf-8")
        variables, event = self._job(REPOSITORY)
        command = [str(AGENTEVAL), "action"]
        env = process_environment(self.workspace, variables, event)
        with subprocess.Popen(command, env=env, cwd=self.workspace, stdout=PIPE, stderr=STDOUT, text=True) as job:
            assert eventually(hung.exists)
            job.send_signal(signal.SIGTERM)
            out, _ = job.communicate(timeout=PATIENCE_S)
        hangs.unlink()
        return step_of(Ended(job.returncode, out, ""), Path(env["GITHUB_OUTPUT"]).parent)

    def _job(self, head_repository: str, edited: str = "") -> tuple[dict[str, str], Path]:
        shutil.rmtree(self.workspace / "agenteval-report", ignore_errors=True)
        self.log.write_text("", encoding="utf-8")
        self.log.chmod(0o666)
        variables = job_environment(self.github.url, "pull_request", baseline="base.json", comment="never") | {
            "GITHUB_SHA": git(self.workspace, "rev-parse", "HEAD"),
            "GITHUB_REF": f"refs/pull/{NUMBER}/merge",
            "GITHUB_HEAD_REF": "feature",
            "GITHUB_BASE_REF": self.base,
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/agenteval.yml@refs/pull/{NUMBER}/merge",
        }
        return variables, written(self.home, self._event(head_repository, edited))

    def upload(self, **details: Any) -> StoredRun:
        """Upload the report directory, as the workflow's next step does."""
        moment = _START + timedelta(hours=len(self.github.actions.runs))
        named = {"branch": "feature", "event": "pull_request", "created_at": moment, **details}
        run = self.github.actions.run(REPOSITORY, self.heads[-1], **named)
        self.github.actions.artifact(run, "agenteval", packed(self.workspace / "agenteval-report"))
        return run

    def attempt(self, *, edited: str = "", attempt: str = "1") -> Step:
        """Run and upload."""
        step = self.run(edited=edited, attempt=attempt)
        self.upload()
        return step

    @property
    def calls(self) -> int:
        return len(self.log.read_text(encoding="utf-8").splitlines())

    @property
    def memory(self) -> Memory:
        found = results_in(self.workspace).memory
        assert found is not None
        return found

    def _event(self, head_repository: str, edited: str) -> dict[str, Any]:
        base = git(self.workspace, "rev-parse", self.base)
        head = {"sha": self.heads[-1], "ref": "feature", "repo": {"full_name": head_repository}}
        of = {"ref": self.base, "sha": base, "repo": {"full_name": REPOSITORY}}
        repository = {"full_name": REPOSITORY}
        return {
            "action": "edited" if edited else "synchronize",
            "changes": {edited: {"from": "another text"}},
            "number": NUMBER,
            "pull_request": {"number": NUMBER, "head": head, "base": of},
            "repository": repository,
        }
