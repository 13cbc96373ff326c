"""A git repository whose agent gets a little worse with every merge, and the jobs of its base branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.gated_repository import Repository
from tests.git_server import commit, git

from agenteval.run.resolve import spec

CASES = 50
_GATE: dict[str, Any] = {"fail_on": ["regressions", "errors"], "max_confirmation": {"runs": None}}
# Chance is a hash of the seed, the session and the question, so that the same run can be had again.
_AGENT = """\
import hashlib
import os

RATE = {rate:.3f}
{imported}

def reply(request):
    drawn = "\\n".join([os.environ["QUICKSTART_SEED"], str(request["session"]), request["input"]])
    chance = int.from_bytes(hashlib.sha256(drawn.encode()).digest()[:8], "big") / 2**64
    return {{"response": "right" if chance < RATE else "wrong"}}
"""


@dataclass
class DecliningRepository(Repository):
    """A repository whose agent answers each question right with the same probability.

    Attributes:
        rate: the probability in the checkout.
    """

    rate: float = 0.9

    @classmethod
    def begin(
        cls, folder: Path, command: Command, patch: pytest.MonkeyPatch, seed: int, **gate: Any
    ) -> DecliningRepository:
        """Create the repository with one commit."""
        folder.mkdir()
        found = cls(folder, command, patch, seed)
        patch.chdir(folder)
        patch.setattr(spec, "_run_id", lambda: f"run{found.seed}x{found.runs}")
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / ".gitignore").write_text("__pycache__\nreports\nmissing.py\n", encoding="utf-8")
        (folder / "agent.yaml").write_text(_suite(), encoding="utf-8")
        found.configure({**_GATE, **gate})
        found.write_agent()
        commit(folder)
        return found

    def write_agent(self, imported: str = "") -> None:
        """Write the agent with its rate."""
        text = _AGENT.format(rate=self.rate, imported=imported)
        (self.folder / "agent.py").write_text(text, encoding="utf-8")

    def merge_loss(self, loss: float) -> str:
        """Commit an agent whose rate is lower to the base branch; return the commit."""
        self.rate -= loss
        self.write_agent()
        return commit(self.folder)


def _suite() -> str:
    cases = [
        {"name": f"q{number}", "input": f"question {number}", "ground_truth": "right"} for number in range(CASES)
    ]
    suite = {
        "name": "questions",
        "model": {"provider": "ollama", "name": "none"},
        "instructions": {"inline": "Answer."},
        "agent": {"python": "agent:reply"},
        "evaluations": {"metrics": [{"type": "standard", "metric": "f1_score", "threshold": 0.5}]},
        "test_cases": cases,
    }
    return yaml.safe_dump(suite)
