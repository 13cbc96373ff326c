"""The recipes of `examples/shards` and its workflow, run by real processes with the variables of their engines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator
from tests.end_to_end import parallel_jobs
from tests.end_to_end.parallel_jobs import Job, ended, machine
from tests.end_to_end.test_action import Runner
from tests.support import ROOT, agenteval, case, copied_agenteval, environment, open_folder, said, write_suite

from agenteval.results.store import read_results

COUNT = 3
# Says hello. In a job that is to die, it waits to be killed.
AGENT = 'if [ "$DEAD" ]; then touch "$DEAD"; sleep 5; fi; echo hello'
NAMES = [f"case-{number}" for number in range(7)]
MISSING = f"shard 2 of {COUNT} is missing"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite and the recipes for three shards; the engines are in the path."""
    here = tmp_path / "repository"
    shutil.copytree(ROOT / "examples" / "shards", here / "examples" / "shards")
    write_suite(here, [case(name) for name in NAMES], name="shop", agent={"command": ["sh", "-c", AGENT]})
    for file in (here / "examples" / "shards").iterdir():
        text = re.sub(
            r'(completions: |parallelism: |parallel: |value: "|size=|array=1-)8\b',
            rf"\g<1>{COUNT}",
            file.read_text("utf-8"),
        )
        file.write_text(text, "utf-8")
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)
    for name in ("machines", "store", "programs"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name.upper(), str(tmp_path / name))
    for name in ("sbatch", "aws"):
        program = tmp_path / "programs" / name
        program.write_text(f"#!{sys.executable}\n{Path(parallel_jobs.__file__).read_text('utf-8')}", "utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{Path(copied_agenteval()).parent}:{os.environ['PATH']}")
    return here


def script(name: str, repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", f"examples/shards/{name}", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


def check_whole(report: Path, repository: Path) -> None:
    """Check that a merged run is what one machine makes."""
    done = agenteval("run", "--out", repository / "whole", cwd=repository)
    assert done.status == 0, done.text
    merged, whole = (said(read_results(place)) for place in (report, repository / "whole"))
    assert (merged["suites"], merged["summary"]) == (whole["suites"], whole["summary"])


def test_slurm(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = script("slurm.sh", repository)
    assert done.returncode == 0, done.stdout + done.stderr
    check_whole(repository / "agenteval-report", repository)

    shutil.rmtree(repository / "shards")
    monkeypatch.setenv("DEAD_JOB", "2")
    done = script("slurm.sh", repository)
    assert (done.returncode, MISSING in done.stderr) == (3, True), done.stdout + done.stderr


def test_aws_batch(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHARDS", "s3://bucket")
    done = script("aws-batch.sh", repository)
    assert done.returncode == 0, done.stdout + done.stderr
    check_whole(tmp_path / "machines" / "agenteval-merge" / "agenteval-report", repository)

    monkeypatch.setenv("SHARDS", "s3://other")
    monkeypatch.setenv("DEAD_JOB", "1")
    shutil.rmtree(tmp_path / "machines")
    (tmp_path / "machines").mkdir()
    done = script("aws-batch.sh", repository)
    assert not (tmp_path / "machines" / "agenteval-merge").exists()
    done = script("aws-batch.sh", machine("by-hand", repository), "merge")
    assert (done.returncode, MISSING in done.stderr) == (3, True), done.stdout + done.stderr


# Kubernetes


def pod(job: dict[str, Any], claims: Path, folder: Path, index: int | None = None, *, is_dead: bool = False) -> Job:
    """A pod of a Job: its container in a folder, with the volume claims as folders."""
    template = job["spec"]["template"]["spec"]
    [container] = template["containers"]
    claimed = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in template["volumes"]}
    variables = {entry["name"]: entry["value"] for entry in container.get("env", ())}
    if index is not None:
        variables["JOB_COMPLETION_INDEX"] = str(index)
    text = json.dumps(container["command"])
    for mount in container["volumeMounts"]:
        text = text.replace(mount["mountPath"], str(claims / claimed[mount["name"]]))
    return Job(
        json.loads(re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], text)), folder, variables, is_dead
    )


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_kubernetes(repository: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], deaths: int) -> None:
    shards, merge = yaml.safe_load_all((repository / "examples/shards/kubernetes.yaml").read_text("utf-8"))
    claims = tmp_path / "claims"
    (claims / "agenteval-shards").mkdir(parents=True)
    assert shards["spec"]["completions"] == COUNT
    waiting = dict.fromkeys(range(COUNT), 0)
    while waiting:
        pods = [
            pod(shards, claims, machine(f"{index}-{tries}", repository), index, is_dead=index == 1 and tries < deaths)
            for index, tries in waiting.items()
        ]
        failed = [index for index, status in zip(waiting, ended(pods), strict=True) if status]
        again = shards["spec"]["backoffLimitPerIndex"]
        waiting = {index: waiting[index] + 1 for index in failed if waiting[index] < again}

    [status] = ended([pod(merge, claims, machine("merge", repository))])

    if deaths < 2:
        assert status == 0
        check_whole(claims / "agenteval-shards" / "merged", repository)
    else:
        assert (status, MISSING in (text := capfd.readouterr().err)) == (3, True), text


def test_kubernetes_accepts_the_manifest() -> None:
    schema = json.loads((ROOT / "tests" / "data" / "kubernetes-job-slice.json").read_text("utf-8"))
    for document in yaml.safe_load_all((ROOT / "examples/shards/kubernetes.yaml").read_text("utf-8")):
        Draft4Validator(schema).validate(document)
        for wrong in ({"completionmode": "Indexed"}, {"completions": "8"}, {"template": "pod"}):
            assert not Draft4Validator(schema).is_valid({**document, "spec": {**document["spec"], **wrong}})


# GitLab


@pytest.mark.parametrize("dead", [0, 2])
def test_gitlab(repository: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], dead: int) -> None:
    jobs = yaml.safe_load((repository / "examples/shards/gitlab-ci.yml").read_text("utf-8"))
    shard, merge = jobs["shard"], jobs["merge"]
    count = shard["parallel"]
    running = [
        Job(
            gitlab_command(shard),
            machine(f"shard-{index}", repository),
            {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(count)},
            index == dead,
        )
        for index in range(1, count + 1)
    ]
    ended(running)
    last = machine("merge", repository)
    for job in running:
        # The artifacts of a job whose machine dies are not uploaded.
        for path in () if job.is_dead else shard["artifacts"]["paths"]:
            shutil.copytree(job.folder / path, last / path, dirs_exist_ok=True)
    [status] = ended([Job(gitlab_command(merge), last, {"CI_NODE_TOTAL": "1"})])

    if not dead:
        assert status == 0
        check_whole(last / "agenteval-report", repository)
        assert (last / merge["artifacts"]["reports"]["junit"]).exists()
    else:
        assert (status, MISSING in (text := capfd.readouterr().err)) == (3, True), text


def gitlab_command(job: dict[str, Any]) -> list[str]:
    install, *lines = job["script"]
    assert install == "pip install agenteval-action"
    return ["bash", "-e", "-c", "\n".join(lines)]


def test_gitlab_accepts_the_pipeline() -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.gitlab-ci",
        "--data-transform",
        "gitlab-ci",
    ]
    checked = subprocess.run(
        [*command, ROOT / "examples/shards/gitlab-ci.yml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


# GitHub


@pytest.mark.parametrize("dead", [None, 1])
def test_a_matrix_on_github(repository: Path, nothing_there: str, dead: int | None) -> None:
    jobs = yaml.safe_load((ROOT / "examples/workflows/shards.yml").read_text("utf-8"))["jobs"]
    evaluate, merge = (
        next(step["with"] for step in jobs[name]["steps"] if "agenteval-action" in step["uses"])
        for name in ("evaluate", "merge")
    )
    with open_folder() as machines:
        last = runner_of(machines / "last", repository, nothing_there)
        for index in (index for index in range(COUNT) if index != dead):
            runner = runner_of(machines / f"leg-{index}", repository, nothing_there)
            strategy = {"fail-fast": False, "job-index": index, "job-total": COUNT, "max-parallel": COUNT}
            job = json.dumps(["", {"shard": index + 1}, strategy])
            step = runner.step(inputs={"shard": evaluate["shard"], "job": job})
            assert step.ended.status == 0, step
            report = runner.workspace / "agenteval-report"
            shutil.copytree(report, last.workspace / "agenteval-shards" / f"agenteval-shard-{index + 1}")

        step = last.step(inputs=merge)

        if dead is None:
            assert step.ended.status == 0, step
            check_whole(last.workspace / "agenteval-report", repository)
        else:
            assert (step.ended.status, MISSING in step.ended.text) == (3, True), step


def runner_of(home: Path, repository: Path, nothing_there: str) -> Runner:
    home.mkdir(0o711)
    runner = Runner(home, nothing_there)
    shutil.copytree(repository, runner.workspace, dirs_exist_ok=True)
    return runner
