"""A base branch whose pushes are evaluated as a CI host tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.git_server import commit, git
from tests.integration.host import Host
from tests.support import case, python_agent, write_suite

from agenteval.results.model import Results
from agenteval.run.base_commit import ControlRule
from agenteval.run.config import Settings
from agenteval.run.context import RunContext
from agenteval.run.git import Provenance
from agenteval.run.pipeline import run

WORDS = [f"word{number}" for number in range(20)]
# Answers that only a metric without upper and lower case accepts; chance is a hash of the session and the question.
AGENT = """
import hashlib
def reply(request):
    chance = hashlib.sha256((str(request["session"]) + request["input"]).encode()).digest()[0] / 256
    return request["input"].upper() if chance >= {wrong} else "wrong"
"""


@dataclass
class Branch:
    """The base branch of a repository, and the jobs of its pushes."""

    folder: Path
    pushes: int = 0

    def push(self, metric: dict[str, Any], wrong: float = 0.0, iterations: int = 3) -> Results:
        """Commit a suite and an agent that answers so large a share wrong, and evaluate the commit."""
        before = git(self.folder, "rev-parse", "HEAD") if self.pushes else None
        agent = python_agent(self.folder, AGENT.format(wrong=wrong))
        cases = [case(word, word, word) for word in WORDS]
        write_suite(self.folder, cases, agent=agent, evaluations={"metrics": [metric]})
        tip = commit(self.folder)
        self.pushes += 1
        baseline = Path(f"../run{self.pushes - 1}") if self.pushes > 1 else None
        settings = Settings(
            quiet=True, out=Path(f"../run{self.pushes}"), baseline=baseline, iterations=iterations, seed=1
        )
        host = Host(ControlRule("previous", before=before, branch="main"))
        context = RunContext(Provenance(tip, "refs/heads/main", "org/bot", str(self.pushes)), control=host)
        return run(settings, context).results


@pytest.fixture
def branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Branch:
    """A base branch without a commit."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / ".gitignore").write_text("__pycache__\n", encoding="utf-8")
    return Branch(folder)
