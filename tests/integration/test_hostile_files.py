"""The action, as root, in a workspace of another user who plants links or swaps the report directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.test_isolation import SOMEBODY, place
from tests.support import PATIENCE_S, Ended, agenteval, copied_agenteval, environment

from agenteval.results.store import read_results

__all__ = ["place"]

EQUALITY = {"metrics": [{"type": "standard", "metric": "equality"}]}
PAYLOAD = "{}"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")


@pytest.fixture
def workspace(place: Path) -> Path:
    folder = place / "workspace"
    folder.mkdir()
    (place / "event.json").write_text(PAYLOAD, encoding="utf-8")
    (place / "elsewhere").mkdir()
    return folder


def write(workspace: Path, script: str, number: int = 1, **suite: Any) -> None:
    """Write a suite with an agent of one shell script, for the workspace's owner."""
    agents = {"default": {"command": ["/bin/sh", "-c", script]}}
    cases = [{"name": f"case {index}", "input": "x", "ground_truth": "right"} for index in range(number)]
    for name, content in (
        ("agenteval.yaml", {"agents": agents}),
        ("agent.yaml", {"evaluations": EQUALITY, "test_cases": cases} | suite),
    ):
        (workspace / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, SOMEBODY.uid, SOMEBODY.gid, follow_symlinks=False)


def act(workspace: Path, /, *, more: Mapping[str, str] | None = None, **inputs: str) -> Ended:
    variables: Mapping[str, str] = {
        "PATH": "/usr/bin:/bin",
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(workspace.parent / "event.json"),
        "GITHUB_REPOSITORY": "org/bot",
        "GITHUB_SHA": "c" * 40,
        "INPUT_BASELINE": "none",
        **{f"INPUT_{name.upper().replace('_', '-')}": value for name, value in inputs.items()},
        **(more or {}),
    }
    return agenteval("action", cwd=workspace.parent, env=environment(**variables))


@as_root
@pytest.mark.parametrize("name", ["journal.jsonl", "results.json"])
def test_a_committed_link_is_not_followed(workspace: Path, name: str) -> None:
    event = workspace.parent / "event.json"
    (workspace / "agenteval-report").mkdir()
    (workspace / "agenteval-report" / name).symlink_to(event)
    write(workspace, "echo right")

    ended = act(workspace)

    assert (ended.status, event.read_text(encoding="utf-8")) == (3, PAYLOAD)
    assert f"agenteval-report/{name}: it is a link, not a regular file; remove it" in ended.text


@as_root
def test_a_killed_step_leaves_no_report_of_an_earlier_run(workspace: Path) -> None:
    """The reports of this run are out of reach until its end; those of an earlier one are gone when a case runs."""
    folder = workspace / "agenteval-report"
    folder.mkdir()
    for name in ("results.json", "badge.json", "report.html", "journal.jsonl", "mine"):
        (folder / name).write_text("{}", encoding="utf-8")
    write(workspace, "ls agenteval-report > seen; echo right")

    ended = act(workspace)

    assert ended.status == 0, ended.text
    assert (workspace / "seen").read_text(encoding="utf-8") == "mine\n"
    assert {"results.json", "badge.json", "mine"} <= {path.name for path in folder.iterdir()}


@as_root
@pytest.mark.parametrize("linked", ["agenteval-report", "out"])
def test_a_linked_directory_gets_no_file(workspace: Path, linked: str) -> None:
    elsewhere = workspace.parent / "elsewhere"
    (workspace / linked).symlink_to(elsewhere)
    write(workspace, "echo right")

    ended = act(workspace, report_dir="out/deeper" if linked == "out" else linked)

    assert (ended.status, list(elsewhere.iterdir())) == (3, [])
    assert f"{linked}: it is a link, not a directory" in ended.text


_SWAPPING = """
import contextlib, pathlib
report, moved = pathlib.Path("agenteval-report"), pathlib.Path("moved")

def reply(request):
    with contextlib.suppress(OSError):  # of another reply that does the same at this moment
        if not moved.exists():
            report.rename(moved)
            report.mkdir()
            journal = (moved / "journal.jsonl").read_text()
            (report / "journal.jsonl").write_text(journal.replace("wrong", "right"))
    return "wrong"
"""


@as_root
@pytest.mark.parametrize("number", [1, pytest.param(2100, marks=pytest.mark.long)])
def test_a_swapped_directory_changes_no_result(workspace: Path, number: int) -> None:
    # The agent moves the report directory away and puts a journal of its own in.
    write(workspace, "", number)
    (workspace / "agent.py").write_text(_SWAPPING, encoding="utf-8")
    settings = "agents: {default: {python: agent:reply}}\nconcurrency: 4\n"
    (workspace / "agenteval.yaml").write_text(settings, encoding="utf-8")

    ended = act(workspace)

    assert ended.status == 1, ended.text
    report = workspace / "agenteval-report"
    results = read_results(report)
    assert {case.status for _, case in results.cases()} == {"failed"}
    assert {path.stat().st_uid for path in (report, *report.rglob("*"))} == {SOMEBODY.uid}
    # Nothing could be seen of the report while the agent ran.
    assert list((workspace / "moved").iterdir()) == []


@pytest.mark.long
@as_root
def test_in_a_workspace_of_root_user_code_is_not_root(workspace: Path) -> None:
    write(workspace, "id -u >>ids; touch made; echo right")
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, 0, 0)

    ended = act(workspace, setup="id -u >>ids")

    assert ended.status == 0, ended.text
    uids = (workspace / "ids").read_text(encoding="utf-8").split()
    assert len(uids) == 2
    assert "0" not in uids
    # Everything belongs to root again, also what user code made.
    assert {path.lstat().st_uid for path in (workspace, *workspace.rglob("*"))} == {0}


_LOOK = """
ls "$TMPDIR" >>seen
echo "$TMPDIR" >>seen
echo right
"""


@pytest.mark.long
@as_root
def test_temporary_files_are_not_in_a_folder_that_the_job_names(workspace: Path) -> None:
    temporary = workspace / "temporary"
    temporary.mkdir()
    write(workspace, _LOOK)

    ended = act(workspace, setup="true", more={"TMPDIR": str(temporary)})

    assert ended.status == 0, ended.text
    assert list(temporary.iterdir()) == []
    # User code still gets the job's variable, and there was nothing in the folder.
    assert (workspace / "seen").read_text(encoding="utf-8").splitlines() == [str(temporary)]


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """The report directory on a disk that is soon full."""
    report = workspace / "agenteval-report"
    report.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", report], check=False)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a file system here")
    yield report
    subprocess.run(["umount", report], check=True)


@as_root
def test_a_full_disk_at_the_end_is_told_and_fails_the_step(workspace: Path, small_disk: Path) -> None:
    write(workspace, "head -c 30000 /dev/urandom | base64 -w0", 20)

    ended = act(workspace)

    assert ended.status == 3, ended.text
    assert "No space left on device" in ended.text
    assert "Traceback" not in ended.text
    # Whole files or none.
    assert not (small_disk / "results.json").exists()
    assert not [path.name for path in small_disk.iterdir() if path.name.startswith(".results.json")]


# One function opens them all, so that every key gets the two that wait, and one key gets every kind.
_HANGING = [
    *product(("suite", "instructions", "files", "replay", "baseline", "config"), ("pipe",)),
    *product(("test_cases_file",), ("/dev/ptmx", "/dev/stdin", "/dev/zero", "/proc/self/fd/1", "pipe", "sparse")),
]


@pytest.mark.parametrize(("key", "target"), _HANGING)
def test_no_named_file_hangs(tmp_path: Path, key: str, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(10 * 2**40)
    case: dict[str, Any] = {"name": "a", "input": "x", "ground_truth": "right"}
    suite: dict[str, Any] = {"evaluations": EQUALITY, "test_cases": [case]}
    config: dict[str, Any] = {"agents": {"default": {"command": ["/bin/echo", "right"]}}}
    options = ["agent.yaml"]
    if key == "test_cases_file":
        suite = {"evaluations": EQUALITY, "test_cases_file": target}
    elif key == "instructions":
        suite |= {"name": "a", "model": {"provider": "openai", "name": "m"}, "instructions": {"file": target}}
        del config["agents"]
    elif key == "files":
        case["files"] = [{"path": target, "type": "text"}]
    elif key == "replay":
        config = {"agents": {"default": {"replay": target}}}
    elif key == "suite":
        (tmp_path / "suite.yaml").symlink_to(target)
        options = ["suite.yaml"]
    else:
        options += [f"--{key}", target]
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    # Standard input stays open and empty. The time limit is the fuse of the test.
    with subprocess.Popen(["/bin/sleep", "600"], stdout=subprocess.PIPE) as silent:
        done = subprocess.run(
            [copied_agenteval(), "run", *options],
            cwd=tmp_path,
            env=environment(),
            stdin=silent.stdout,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        silent.kill()

    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert any(why in done.stderr for why in ("it is a", "kernel", "has more than", "not a regular file")), (
        done.stderr
    )


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "results.json", "report.html", ".agenteval.lock", "confirmation.jsonl"]
)
def test_no_report_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("not ours", encoding="utf-8")
    folder = tmp_path / "project"
    (folder / "agenteval-report").mkdir(parents=True)
    (folder / "agenteval-report" / name).symlink_to(victim)
    # A directory without a file of agenteval would be refused.
    (folder / "agenteval-report" / "badge.json").touch()
    suite = {"evaluations": EQUALITY, "test_cases": [{"name": "a", "input": "x", "ground_truth": "right"}]}
    config = {"agents": {"default": {"command": ["/bin/echo", "right"]}}}
    (folder / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    ended = agenteval("run", cwd=folder)

    assert victim.read_text(encoding="utf-8") == "not ours"
    # A link at the name of the confirmation journal, which is only deleted, is deleted itself.
    assert (ended.status, "it is a link" in ended.err) == ((0, False) if name == "confirmation.jsonl" else (3, True))
