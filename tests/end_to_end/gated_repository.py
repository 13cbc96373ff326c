"""A git repository with the quickstart agent, and the jobs that evaluate its pull requests and its base branch."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.git_server import commit, git
from tests.support import ROOT, Ended

from agenteval.results.comparison import Comparison
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.resolve import spec

MAIN = "refs/heads/main"
#: With this ranking 8 of the 19 cases pass without noise, with `GOOD` all of them.
BAD, GOOD = "first-match", "bm25"
GATE = {"fail_on": ["regressions", "unproven", "errors"]}
NOISE = "0.1"
_AGENT = """
agent:
  python: "agent:reply"
  config:
    ranking: bm25
"""


@dataclass
class Repository:
    """A repository whose agent is subject to chance, as a seed and the number of the run draw it.

    Attributes:
        folder: the checkout.
        command: runs agenteval.
        patch: sets environment variables.
        seed: draws the noise.
        baseline: the reports of the newest run of the base branch; empty before the first one.
        runs: number of runs so far.
        variables: environment variables of every job.
    """

    folder: Path
    command: Command
    patch: pytest.MonkeyPatch
    seed: int = 1
    baseline: str = ""
    runs: int = 0
    variables: dict[str, str] = field(default_factory=lambda: {"QUICKSTART_NOISE": NOISE})

    @classmethod
    def create(cls, folder: Path, command: Command, patch: pytest.MonkeyPatch, *, ranking: str) -> Repository:
        """Create the repository with one commit, whose agent has this ranking."""
        shutil.copytree(
            ROOT / "examples" / "quickstart", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
        # The suite names the agent, so that configurations can differ in their gate alone.
        with (folder / "agent.yaml").open("a", encoding="utf-8") as suite:
            suite.write(_AGENT)
        (folder / ".gitignore").write_text("__pycache__\nreports\n", encoding="utf-8")
        git(folder, "init", "--quiet", "--initial-branch", "main")
        patch.chdir(folder)
        found = cls(folder, command, patch)
        # Sessions contain the id of the run, and the noise depends on the session.
        patch.setattr(spec, "_run_id", lambda: f"run{found.seed}x{found.runs}")
        found.configure(GATE)
        found.rank(ranking)
        commit(folder)
        return found

    def configure(self, gate: Mapping[str, Any], **keys: Any) -> None:
        """Write the configuration."""
        _write_settings(self.folder / "agenteval.yaml", gate, keys)

    def settings(self, gate: Mapping[str, Any], **keys: Any) -> str:
        """Write a configuration that no commit contains; return the path of its file."""
        file = self.folder / "reports" / "other.yaml"
        _write_settings(file, gate, keys)
        return str(file)

    def rank(self, ranking: str) -> None:
        """Make the agent better or worse."""
        suite = self.folder / "agent.yaml"
        lines = suite.read_text(encoding="utf-8").splitlines()
        changed = [f"    ranking: {ranking}" if line.startswith("    ranking:") else line for line in lines]
        suite.write_text("\n".join([*changed, ""]), encoding="utf-8")

    def import_an_ignored_file(self) -> None:
        """Commit an agent that imports a module which no commit contains."""
        (self.folder / "local_settings.py").touch()
        with (self.folder / ".gitignore").open("a", encoding="utf-8") as file:
            file.write("local_settings.py\n")
        agent = self.folder / "agent.py"
        agent.write_text(f"{agent.read_text(encoding='utf-8')}\nimport local_settings\n", encoding="utf-8")
        commit(self.folder)

    def base_job(self, *arguments: str) -> Ended:
        """Evaluate the commit that is checked out as a push to the base branch; it becomes the next baseline."""
        out = f"reports/base-{self.runs + 1}"
        ended = self._job(MAIN, out, *arguments)
        self.baseline = out
        return ended

    def propose(self) -> None:
        """Commit the changes to a branch, and check out its merge into the base branch."""
        base = git(self.folder, "rev-parse", "main")
        git(self.folder, "checkout", "--quiet", "--detach")
        change = commit(self.folder)
        git(self.folder, "checkout", "--quiet", "--detach", base)
        git(self.folder, "merge", "--quiet", "--no-ff", "--message", "merge", change)

    def pull_request_job(self, *arguments: str) -> Ended:
        """Evaluate the merge commit that is checked out as that of a pull request."""
        return self._job("refs/pull/7/merge", "reports/pull-request", *arguments)

    def merge(self) -> None:
        """Make the merge commit that is checked out the newest one of the base branch."""
        git(self.folder, "checkout", "--quiet", "-B", "main")

    def close(self) -> None:
        """Abandon the pull request, and check the base branch out."""
        git(self.folder, "checkout", "--quiet", "main")

    def results(self, out: str = "reports/pull-request") -> Results:
        """The results of a job."""
        return read_results(self.folder / out)

    def comparison(self, out: str = "reports/pull-request") -> Comparison:
        """The comparison of a job with its baseline."""
        found = self.results(out).comparison
        assert found is not None
        return found

    def passed(self, out: str = "") -> int:
        """Number of cases that passed in a job, the newest one of the base branch by default."""
        return self.results(out or self.baseline).summary.passed

    def _job(self, ref: str, out: str, *arguments: str) -> Ended:
        self.runs += 1
        workflow = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REF": ref,
            "GITHUB_SHA": git(self.folder, "rev-parse", "HEAD"),
            "GITHUB_RUN_ID": str(self.runs),
            "GITHUB_REPOSITORY": "org/bot",
            "QUICKSTART_SEED": str(self.seed),
        }
        compared = ("--baseline", self.baseline) if self.baseline else ()
        with self.patch.context() as patch:
            for name, value in {**workflow, **self.variables}.items():
                patch.setenv(name, value)
            return self.command("run", "--quiet", "--seed", str(self.seed), "--out", out, *compared, *arguments)


def _write_settings(file: Path, gate: Mapping[str, Any], keys: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump({"iterations": 3, "gate": dict(gate), **keys}), encoding="utf-8")
