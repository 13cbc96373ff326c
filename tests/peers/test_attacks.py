"""Suites and agents that attack the action, which runs as root in a workspace of another user."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.peers.action_step import Runner, Step, as_process
from tests.peers.github_markdown import assert_only_ours, rendered
from tests.support import open_folder

from agenteval.results.store import read_results

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to give them up"),
]

OWNER = 4321
EVENT = "{}"
ECHO = ["/bin/sh", "-c", "echo right"]
# Writes to every path in its question.
WRITER = """
import json, pathlib, sys
for name in json.load(sys.stdin)["input"].split():
    try:
        with pathlib.Path(name).open("a") as file:
            file.write("FORGED=1\\n")
    except OSError:
        pass
print("right")
"""
# Moves the report away and puts a journal of its own in.
SWAPPER = """
import contextlib, pathlib
report, moved = pathlib.Path("agenteval-report"), pathlib.Path("moved")

def reply(request):
    if not moved.exists():
        with contextlib.suppress(OSError):
            report.rename(moved)
            report.mkdir()
            journal = (moved / "journal.jsonl").read_text()
            (report / "journal.jsonl").write_text(journal.replace("wrong", "right"))
    return "wrong"
"""


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A checkout that belongs to somebody else, at a place that everybody can reach."""
    with open_folder() as folder:
        path = folder / "workspace"
        path.mkdir()
        yield path


def attacked(runner: Runner, workspace: Path, config: Any, number: int = 1, **suite: Any) -> Step:
    """Run the action on a suite whose right answer is ``right``."""
    cases = [{"name": f"case {index}", "input": "x", "ground_truth": "right"} for index in range(number)]
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    for name, content in (
        ("agenteval.yaml", config),
        ("agent.yaml", {"evaluations": metrics, **({"test_cases": cases} if cases else {}), **suite}),
    ):
        (workspace / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, OWNER, OWNER, follow_symlinks=False)
    event = workspace.parent / "event.json"
    event.write_text(EVENT, encoding="utf-8")
    variables = {
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_REPOSITORY": "octo/repo",
        "INPUT_BASELINE": "none",
        "INPUT_COMMENT": "never",
    }
    if runner is as_process:
        # A Python that everybody can start, and a file that the container has.
        variables |= {"PATH": "/usr/bin:/bin", "GITHUB_ENV": str(workspace.parent / "files" / "set_env")}
        (workspace.parent / "files").mkdir(exist_ok=True)
        (workspace.parent / "files" / "set_env").write_text("", encoding="utf-8")
    return runner(workspace, variables, event)


def agent(*command: str) -> dict[str, Any]:
    return {"agents": {"default": {"command": [*command]}}}


def command_files(runner: Runner, workspace: Path) -> list[Path]:
    folder = workspace.parent / ("files" if runner is as_process else "run/file_commands")
    return sorted(folder.iterdir())


def test_no_question_has_the_path_of_a_command_file(runner: Runner, workspace: Path) -> None:
    (workspace / "agent.py").write_text(WRITER, encoding="utf-8")
    cases = [{"name": "a", "input": "${GITHUB_ENV} ${GITHUB_OUTPUT}", "ground_truth": "right"}]

    step = attacked(runner, workspace, agent("/usr/bin/env", "python3", "agent.py"), test_cases=cases)

    assert [path for path in command_files(runner, workspace) if "FORGED" in path.read_text(encoding="utf-8")] == []
    assert step.status == 2, step.log
    assert "environment variable GITHUB_ENV belongs to the runner" in step.log


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("journal.jsonl", 3, "agenteval-report/journal.jsonl: it is a link, not a regular file; remove it"),
        ("results.json", 3, "agenteval-report/results.json: it is a link, not a regular file; remove it"),
        # Without results and journal, the directory is not of agenteval.
        ("summary.md", 2, "this directory has files that are not of agenteval; name a new or empty one with --out"),
    ],
)
def test_no_link_to_a_file_of_the_runner_is_written_through(
    runner: Runner, workspace: Path, name: str, status: int, said: str
) -> None:
    target = workspace.parent / "event.json" if runner is as_process else Path("/github/workflow/event.json")
    (workspace / "agenteval-report").mkdir()
    (workspace / "agenteval-report" / name).symlink_to(target)

    step = attacked(runner, workspace, agent(*ECHO))

    written = target if runner is as_process else workspace.parent / "run" / "workflow" / "event.json"
    assert written.read_text(encoding="utf-8") == EVENT
    assert step.status == status, step.log
    assert said in step.log


def test_a_linked_report_directory_gets_no_file(runner: Runner, workspace: Path) -> None:
    target = workspace.parent / "files" if runner is as_process else Path("/github/file_commands")
    (workspace / "agenteval-report").symlink_to(target)

    step = attacked(runner, workspace, agent(*ECHO))

    names = {path.name for path in command_files(runner, workspace)}
    assert names <= {"set_env", "set_output", "step_summary", "save_state", "add_path"}
    assert step.status == 3, step.log
    assert "agenteval-report: it is a link, not a directory" in step.log


def test_results_cannot_be_replaced_during_the_run(runner: Runner, workspace: Path) -> None:
    (workspace / "agent.py").write_text(SWAPPER, encoding="utf-8")

    # More cases than are kept in memory.
    step = attacked(runner, workspace, {"agents": {"default": {"python": "agent:reply"}}}, number=2100)

    results = read_results(workspace / "agenteval-report")
    assert {case.status for _, case in results.cases()} == {"failed"}
    assert (step.status, step.outputs["verdict"]) == (1, "failed"), step.log


@pytest.mark.parametrize("path", ["/dev/ptmx", "/proc/self/fd/1", "pipe"])
def test_no_path_hangs(runner: Runner, workspace: Path, path: str) -> None:
    os.mkfifo(workspace / "pipe")

    # A time limit of the runner is the fuse of the test.
    step = attacked(runner, workspace, agent(*ECHO), number=0, test_cases_file=path)

    assert step.status == 2, step.log
    assert "Traceback" not in step.log


@pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm")
def test_no_run_of_characters_ends_a_block_of_the_summary(runner: Runner, workspace: Path) -> None:
    fence = "`" * 300
    text = f"a\n{fence}\n\n# Live\n\n@octocat ![beacon](https://example.org/b.png)\n{fence}\n"
    (workspace / "answer").write_text(text, encoding="utf-8")

    step = attacked(runner, workspace, agent("/bin/cat", "answer"))

    assert step.status == 1, step.log
    assert "Live" in step.summary
    assert_only_ours(rendered(step.summary, hardbreaks=False))
