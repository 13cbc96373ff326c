"""The workflows that people copy: GitHub accepts them, and they agree with the action and with each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted([*(ROOT / "examples" / "workflows").glob("*.yml"), ROOT / "src/agenteval/starters/workflow.yml"])
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
OURS = "org/agenteval-action@v1"

each_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    return found


def steps(file: Path, uses: str) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job["steps"] if step.get("uses", "").startswith(uses)]


def test_github_accepts_them() -> None:
    # The schema ships with the checker, so nothing is fetched.
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]

    checked = subprocess.run([*command, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


@each_workflow
def test_inputs_exist(file: Path) -> None:
    ours = steps(file, OURS)

    assert ours
    for step in ours:
        assert set(step.get("with", {})) <= set(ACTION["inputs"])


@each_workflow
def test_permissions_are_said_and_no_more_than_needed(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    given = workflow["permissions"] or {}
    for job in workflow["jobs"].values():
        given |= job.get("permissions", {})

    comments = any(step.get("with", {}).get("comment") != "never" for step in steps(file, OURS))
    checks = any("check-name" in step.get("with", {}) for step in steps(file, OURS))

    needed = {"contents": "read", "actions": "read"}
    needed |= {"pull-requests": "write"} if comments else {}
    needed |= {"checks": "write"} if checks else {}
    assert given == needed


@each_workflow
def test_no_token_stays_on_the_disk_where_the_agent_runs(file: Path) -> None:
    assert all(step["with"]["persist-credentials"] is False for step in steps(file, "actions/checkout@"))


@each_workflow
def test_what_the_next_run_needs_is_uploaded_whatever_happened(file: Path) -> None:
    uploads = steps(file, "actions/upload-artifact@")

    assert all(step["if"] == "always()" for step in uploads)
    assert all(step["with"]["path"] == f"{ACTION['inputs']['report-dir']['default']}/" for step in uploads)
    if file.name != "fork-publish.yml":
        assert uploads[-1]["with"]["name"] == ACTION["inputs"]["baseline-artifact"]["default"]


def test_the_second_stage_waits_for_the_first_and_runs_nothing_of_it() -> None:
    first, second = (ROOT / "examples" / "workflows" / f"fork-{stage}.yml" for stage in ("evaluate", "publish"))
    name = yaml.safe_load(first.read_text(encoding="utf-8"))["name"]
    # YAML 1.1 reads the key ``on`` as true.
    trigger = yaml.safe_load(second.read_text(encoding="utf-8"))[True]

    assert trigger == {"workflow_run": {"workflows": [name], "types": ["completed"]}}
    assert [step["uses"] for step in jobs(second)["publish"]["steps"]] == [OURS]
    assert "secrets" not in first.read_text(encoding="utf-8").replace("no secrets", "")


def test_the_shards_are_all_there_and_merged() -> None:
    file = ROOT / "examples" / "workflows" / "shards.yml"
    evaluate, merge = jobs(file)["evaluate"], jobs(file)["merge"]
    numbers = evaluate["strategy"]["matrix"]["shard"]

    assert numbers == list(range(1, len(numbers) + 1))
    assert f"/{len(numbers)}" in steps(file, OURS)[0]["with"]["shard"]
    assert (merge["needs"], merge["if"]) == ("evaluate", "always()")
    [download] = steps(file, "actions/download-artifact@")
    assert download["with"] == {"pattern": "agenteval-shard-*", "path": "agenteval-shards"}
