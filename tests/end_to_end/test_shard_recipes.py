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
from tests.git_server import commit, git
from tests.support import ROOT, agenteval, case, copied_agenteval, environment, open_folder, write_suite

from agenteval.results.store import read_results

COUNT = 2
# Some answers are wrong where a file says so. In a job that is to die, the agent waits to be killed.
AGENT = """if [ "$DEAD" ]; then touch "$DEAD"; sleep 5; fi
case $(cat) in $(cat wrong.txt)) echo wrong ;; *) echo hello ;; esac
"""
NAMES = [f"case-{number}" for number in range(4)]
MISSING = f"shard 2 of {COUNT} is missing"
HARMLESS, BROKEN = "nothing", "*case-[12]*"
# What a change does, whether the second shard dies, and the exit status.
each = pytest.mark.parametrize(("wrong", "dies", "status"), [(BROKEN, False, 1), (HARMLESS, True, 3)])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite, a baseline of its first commit, and the recipes for two shards."""
    here = tmp_path / "repository"
    shutil.copytree(ROOT / "examples" / "shards", here / "examples" / "shards")
    write_suite(here, [case(name) for name in NAMES], name="shop", agent={"command": ["sh", "agent.sh"]})
    (here / "agent.sh").write_text(AGENT, "utf-8")
    (here / "wrong.txt").write_text(HARMLESS, "utf-8")
    (here / ".gitignore").write_text("".join(f"{name}/\n" for name in LEFT), "utf-8")
    for file in (here / "examples" / "shards").iterdir():
        text = re.sub(
            r'((?:completions|parallelism|parallel): |value: "|size=|array=1-)8\b',
            rf"\g<1>{COUNT}",
            file.read_text("utf-8"),
        )
        file.write_text(text, "utf-8")
    git(here, "init", "--quiet", "--initial-branch", "main")
    commit(here)
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)
    done = agenteval("run", "--out", "baseline", cwd=here)
    assert done.status == 0, done.text
    for name in ("machines", "store", "programs"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name.upper(), str(tmp_path / name))
    for name in ("sbatch", "aws"):
        program = tmp_path / "programs" / name
        program.write_text(f"#!{sys.executable}\n{Path(parallel_jobs.__file__).read_text('utf-8')}", "utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{Path(copied_agenteval()).parent}:{os.environ['PATH']}")
    return here


LEFT = ("baseline", "shards", "merged", "proofs", "agenteval-report", "agenteval-runs")


def change(repository: Path, wrong: str) -> None:
    (repository / "wrong.txt").write_text(wrong, "utf-8")
    git(repository, "commit", "--quiet", "--allow-empty", "--all", "--message", "change")


def check_whole(report: Path) -> None:
    """Check that the last job has the whole run, and proved what broke; ``test_proof_in_shards.py`` has the rest."""
    results = read_results(report)
    assert (len(results.cases()), results.summary.failed, results.run.shard) == (len(NAMES), 2, None)
    assert results.comparison is not None
    assert results.comparison.state == "proven"


def script(name: str, repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", f"examples/shards/{name}", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


@each
def test_slurm(repository: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, dies: bool, status: int) -> None:
    change(repository, wrong)
    if dies:
        monkeypatch.setenv("DEAD_JOB", "1")
    done = script("slurm.sh", repository)
    assert (done.returncode, MISSING in done.stderr) == (status, dies), done.stdout + done.stderr
    if not dies:
        [report] = repository.glob("agenteval-runs/*/report")
        check_whole(report)


@each
def test_aws_batch(repository: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, dies: bool, status: int) -> None:
    change(repository, wrong)
    store = Path(os.environ["STORE"], "bucket")
    shutil.copytree(repository / "baseline", store / "baseline")
    monkeypatch.setenv("RESULTS", "s3://bucket")
    if dies:
        monkeypatch.setenv("DEAD_JOB", "1")
    done = script("aws-batch.sh", repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(os.environ["MACHINES"], "agenteval-merge").exists() is not dies, done.stderr
    if dies:
        done = script("aws-batch.sh", machine("by-hand", repository), "merge")
        assert (done.returncode, MISSING in done.stderr) == (status, True), done.stdout + done.stderr
    else:
        check_whole(store / "agenteval-report")


def test_the_first_run_of_all_has_nothing_to_prove(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(repository / "baseline")
    change(repository, BROKEN)
    store = Path(os.environ["STORE"], "bucket")
    store.mkdir()
    monkeypatch.setenv("RESULTS", "s3://bucket")
    assert script("aws-batch.sh", repository).returncode == 0
    monkeypatch.setenv("RESULTS", "agenteval-runs/first")
    assert script("slurm.sh", repository).returncode == 1
    for report in (store / "agenteval-report", repository / "agenteval-runs" / "first" / "report"):
        results = read_results(report)
        assert (results.summary.failed, results.comparison, results.gate and results.gate.exit_status) == (2, None, 1)


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
    words = json.loads(re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], text))
    return Job(words, folder, variables, is_dead)


def completed(job: dict[str, Any], claims: Path, repository: Path, deaths: int) -> bool:
    """Run the pods of a Job, the second one again after each death; return whether all indexes are complete."""
    name, spec = job["metadata"]["name"], job["spec"]
    if spec.get("completionMode") != "Indexed":
        return ended([pod(job, claims, machine(name, repository))]) == [0]
    waiting = dict.fromkeys(range(spec["completions"]), 0)
    failed: list[int] = []
    while waiting:
        pods = [
            pod(job, claims, machine(f"{name}-{n}-{tries}", repository), n, is_dead=n == 1 and tries < deaths)
            for n, tries in waiting.items()
        ]
        failed = [n for n, status in zip(waiting, ended(pods), strict=True) if status]
        waiting = {n: waiting[n] + 1 for n in failed if waiting[n] < spec["backoffLimitPerIndex"]}
    return not failed


@pytest.mark.parametrize(("wrong", "deaths", "status"), [(BROKEN, 1, 1), (HARMLESS, 2, 3)])
def test_kubernetes(
    repository: Path, capfd: pytest.CaptureFixture[str], wrong: str, deaths: int, status: int
) -> None:
    change(repository, wrong)
    jobs = yaml.safe_load_all((repository / "examples/shards/kubernetes.yaml").read_text("utf-8"))
    shards, merge, proofs, gate = jobs
    claims = repository.parent / "claims"
    shutil.copytree(repository / "baseline", claims / "agenteval" / "baseline")

    assert completed(shards, claims, repository, deaths) is (status != 3)
    assert completed(merge, claims, repository, 0) is (status != 3)

    if status == 3:
        assert MISSING in (text := capfd.readouterr().err), text
        return
    assert completed(proofs, claims, repository, 0)
    assert completed(gate, claims, repository, 0) is (status == 0)
    check_whole(claims / "agenteval" / "COMMIT" / "report")


def test_kubernetes_accepts_the_manifest() -> None:
    schema = json.loads((ROOT / "tests" / "data" / "kubernetes-job-slice.json").read_text("utf-8"))
    for document in yaml.safe_load_all((ROOT / "examples/shards/kubernetes.yaml").read_text("utf-8")):
        Draft4Validator(schema).validate(document)
        for wrong in ({"completionmode": "Indexed"}, {"completions": "8"}, {"template": "pod"}):
            assert not Draft4Validator(schema).is_valid({**document, "spec": {**document["spec"], **wrong}})


# GitLab


@each
def test_gitlab(repository: Path, capfd: pytest.CaptureFixture[str], wrong: str, dies: bool, status: int) -> None:
    change(repository, wrong)
    pipeline = yaml.safe_load((repository / "examples/shards/gitlab-ci.yml").read_text("utf-8"))
    assert pipeline["default"]["before_script"] == ["pip install agenteval-action"]
    artifacts = repository.parent / "artifacts"
    artifacts.mkdir()
    ends = 0
    for stage in pipeline["stages"]:
        [(name, job)] = [
            (name, job)
            for name, job in pipeline.items()
            if stage == (job.get("stage") if isinstance(job, dict) else "")
        ]
        command = ["bash", "-e", "-c", "\n".join(job["script"])]
        count = job.get("parallel", 1)
        running = []
        for index in range(1, count + 1):
            folder = Path(shutil.copytree(artifacts, machine(f"{name}-{index}", repository), dirs_exist_ok=True))
            variables = {"CI_NODE_TOTAL": str(count)} | ({"CI_NODE_INDEX": str(index)} if count > 1 else {})
            running.append(Job(command, folder, variables, dies and name == "shard" and index == 2))
        ends = max(ended(running))
        for job_of_stage in running:
            for path in pipeline["default"]["artifacts"]["paths"]:
                # The artifacts of a job whose machine dies are not uploaded.
                if not job_of_stage.is_dead and (job_of_stage.folder / path).exists():
                    shutil.copytree(job_of_stage.folder / path, artifacts / path, dirs_exist_ok=True)
        if ends and not job.get("allow_failure"):
            break

    assert (ends, MISSING in (text := capfd.readouterr().err)) == (status, dies), text
    if not dies:
        check_whole(artifacts / "agenteval-report")


def test_gitlab_accepts_the_pipeline() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci"]
    file = str(ROOT / "examples/shards/gitlab-ci.yml")
    checked = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# GitHub


@pytest.mark.parametrize("dead", [None, 1])
def test_a_matrix_on_github(repository: Path, nothing_there: str, dead: int | None) -> None:
    jobs = yaml.safe_load((ROOT / "examples/workflows/shards.yml").read_text("utf-8"))["jobs"]
    evaluate, merge = (
        next(step["with"] for step in jobs[name]["steps"] if "agenteval-action" in step["uses"])
        for name in ("evaluate", "gate")
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

        assert (step.ended.status, MISSING in step.ended.text) == (3 if dead else 0, bool(dead)), step
        if not dead:
            found = read_results(last.workspace / "agenteval-report")
            assert (found.summary.passed, found.run.shard) == (len(NAMES), None)


def runner_of(home: Path, repository: Path, nothing_there: str) -> Runner:
    home.mkdir(0o711)
    runner = Runner(home, nothing_there)
    shutil.copytree(repository, runner.workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git", *LEFT))
    return runner
