"""Workflows, those that people copy and our own: GitHub accepts them, and they give away as little as they can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import ROOT

WORKFLOWS = sorted(
    [*(ROOT / "examples" / "workflows").glob("*.yml"), ROOT / "src/agenteval/cli/starters/workflow.yml"]
)
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
NATIVE = ROOT / "native" / "action.yml"
#: The action in its container, and on the runner itself.
OURS = ("org/agenteval-action@v1", "org/agenteval-action/native@v1")

each_own = pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
each_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    return found


def steps(file: Path, uses: str | tuple[str, ...]) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job["steps"] if step.get("uses", "").startswith(uses)]


def test_github_accepts_them() -> None:
    # The schema ships with the checker, so nothing is fetched.
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]

    checked = subprocess.run([*command, *map(str, [*WORKFLOWS, *OWN])], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


@each_workflow
def test_inputs_exist(file: Path) -> None:
    ours = steps(file, OURS)

    assert ours
    for step in ours:
        assert set(step.get("with", {})) <= set(ACTION["inputs"])


@each_workflow
def test_missing_permissions_are_listed_and_no_others(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    given: dict[str, str] = {}
    for job in workflow["jobs"].values():
        given |= job["permissions"]

    comments = any(step.get("with", {}).get("comment") != "never" for step in steps(file, OURS))
    checks = any("check-name" in step.get("with", {}) for step in steps(file, OURS))

    needed = {"contents": "read", "actions": "read"}
    needed |= {"pull-requests": "write"} if comments else {}
    needed |= {"checks": "write"} if checks else {}
    # Another job writes the image that the service is made of.
    needed |= {"packages": "read"} if any("services" in job for job in workflow["jobs"].values()) else {}
    assert given == needed


@each_workflow
def test_no_token_stays_on_the_disk_where_the_agent_runs(file: Path) -> None:
    assert all(step["with"]["persist-credentials"] is False for step in steps(file, "actions/checkout@"))


@each_workflow
def test_the_report_directory_is_always_uploaded(file: Path) -> None:
    uploads = steps(file, "actions/upload-artifact@")

    assert all(step["if"] == "always()" for step in uploads)
    # Shards upload their caches, too.
    paths = {step["with"]["path"] for step in uploads} - {".agenteval-cache/"}
    assert paths <= {f"{ACTION['inputs']['report-dir']['default']}/"}
    if file.name != "fork-publish.yml":
        named = steps(file, OURS)[-1].get("with", {})
        searched = named.get("baseline-artifact", ACTION["inputs"]["baseline-artifact"]["default"])
        assert uploads[-1]["with"]["name"] == searched


def test_the_second_stage_waits_for_the_first_and_runs_nothing_of_it() -> None:
    first, second = (ROOT / "examples" / "workflows" / f"fork-{stage}.yml" for stage in ("evaluate", "publish"))
    name = yaml.safe_load(first.read_text(encoding="utf-8"))["name"]
    # YAML 1.1 reads the key ``on`` as true.
    trigger = yaml.safe_load(second.read_text(encoding="utf-8"))[True]

    assert trigger == {"workflow_run": {"workflows": [name], "types": ["completed"]}}
    assert [step["uses"] for step in jobs(second)["publish"]["steps"]] == [OURS[0]]
    assert "secrets" not in first.read_text(encoding="utf-8").replace("no secrets", "")


def test_nothing_that_is_skipped_satisfies_a_branch_rule() -> None:
    open_ends = {}
    for file in WORKFLOWS:
        found = jobs(file)
        needs = {
            name: [job.get("needs", [])] if isinstance(job.get("needs"), str) else job.get("needs", [])
            for name, job in found.items()
        }
        needed = {name for names in needs.values() for name in names}
        last = [name for name in found if name not in needed]
        # A job alone on its event is not skipped by another one; its condition chooses the event.
        open_ends[file.name] = [name for name in last if needs[name] and found[name].get("if") != "always()"]

    assert {name: ends for name, ends in open_ends.items() if ends} == {}


def test_the_shards_are_all_there_and_merged() -> None:
    file = ROOT / "examples" / "workflows" / "shards.yml"
    found = jobs(file)
    for name in ("evaluate", "prove"):
        numbers = found[name]["strategy"]["matrix"]["shard"]
        assert numbers == list(range(1, len(numbers) + 1))
        [step] = [step for step in found[name]["steps"] if step["uses"] in OURS]
        assert step["with"]["shard"] == "auto"
    assert (found["merge"]["needs"], found["merge"]["if"]) == ("evaluate", "always()")
    assert found["prove"]["if"] == "needs.merge.outputs.prove == 'true'"
    downloads = [step["with"] for step in steps(file, "actions/download-artifact@") if "pattern" in step["with"]]
    assert downloads[0] == {"pattern": "agenteval-shard-*", "path": "agenteval-shards"}


def zizmor(*files: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("zizmor")
    command = [
        str(program),
        "--offline",
        "--no-progress",
        "--strict-collection",
        "--persona=pedantic",
        "--config",
        str(ROOT / ".github/zizmor.yml"),
    ]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)


def test_zizmor_finds_nothing() -> None:
    files = [*WORKFLOWS, *OWN, ROOT / "action.yml", NATIVE, ROOT / ".github" / "dependabot.yml"]

    audited = zizmor(*files)

    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert audited.stderr.count("completed") == len(files)


def test_zizmor_sees_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "workflow.yml"
    text = WORKFLOWS[0].read_text(encoding="utf-8")
    file.write_text(text.replace("persist-credentials: false", "fetch-depth: 0"), encoding="utf-8")

    assert "artipacked" in zizmor(file).stdout


@pytest.mark.parametrize("file", [*WORKFLOWS, *OWN], ids=lambda file: file.name)
def test_jobs_start_without_rights_and_end(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))

    assert workflow["permissions"] == {}
    assert all("permissions" in job for job in workflow["jobs"].values())
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@each_own
def test_no_expression_is_part_of_a_command(file: Path) -> None:
    commands = [step["run"] for job in jobs(file).values() for step in job["steps"] if "run" in step]

    assert [command for command in commands if "${{" in command] == []


def test_a_release_publishes_only_what_was_tested() -> None:
    release = jobs(ROOT / ".github" / "workflows" / "release.yml")

    def comes_after(name: str, earlier: str) -> bool:
        needs = release[name].get("needs", [])
        needs = [needs] if isinstance(needs, str) else needs
        return earlier in needs or any(comes_after(need, earlier) for need in needs)

    publishing = [name for name, job in release.items() if "write" in job["permissions"].values()]
    assert {"image", "index", "pypi", "tags"} <= set(publishing)
    assert all(comes_after(name, "test") and comes_after(name, "check") for name in publishing)
    # Nothing is done after what others see has changed: the tags move last.
    assert all(comes_after("tags", name) for name in ("image", "index", "package", "pypi"))
