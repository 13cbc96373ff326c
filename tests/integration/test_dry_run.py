"""`agenteval run --dry-run` tells what a run and a suspicion would cost, and calls nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Command
from tests.integration.gated_suite import CASES, K, Project

# 20 cases with 3 iterations are 60 calls, so a run of the head-to-head has 120: 2 · 4 · 120 and 2 · 12 · 20 calls.
COSTS: list[tuple[dict[str, Any], str]] = [
    ({}, "19 calls ($0.19) for a broken case, at most 1,340 calls ($13.40) for a mean"),
    ({"pairs": 4}, "11 calls ($0.11) for a broken case, at most"),
]


@pytest.fixture
def project(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    found = Project(folder, command, monkeypatch)
    found.write()
    return found


def planned(project: Project, *arguments: str) -> list[str]:
    ended = project.run("--dry-run", "--iterations", str(K), *arguments)
    assert ended.status == 0, ended.text
    assert project.asked() == []
    assert not (project.folder / "agenteval-report").exists()
    return [line for line in ended.out.splitlines() if line.startswith(("run:", "suspicion:"))]


def test_a_dry_run_tells_what_a_suspicion_would_cost(project: Project) -> None:
    assert planned(project) == [
        f"run: {CASES} cases, {CASES * K} calls",
        "suspicion: nothing runs again, because no baseline is named",
    ]
    baseline = project.past(1, "--iterations", str(K))
    cost_a_call(project.folder / baseline / "results.json", 0.01)
    for gate, suspicion in COSTS:
        project.configure(gate)
        run, found = planned(project, "--baseline", baseline)
        assert run == f"run: {CASES} cases, {CASES * K} calls ($0.60)"
        assert found.startswith(f"suspicion: {suspicion}"), gate


def cost_a_call(results: Path, usd: float) -> None:
    content: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    content["summary"]["usage"]["cost_usd"] = usd * CASES * K
    results.write_text(json.dumps(content), encoding="utf-8")
