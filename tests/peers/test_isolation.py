"""The action with an agent that attacks it: as a process, and in the image if one was built."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from tests.peers import hostile_agent
from tests.peers.action_step import Runner, Step, as_process
from tests.support import eventually, is_alive, open_folder

from agenteval.results.store import read_results

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to give them up"),
]

OWNER = 4321
TOKEN = f"ghs_{hostile_agent.SECRET}4f1e"
ALLOWED = "sk-allowed-7d52c9"
SECRETS = {
    "INPUT_GITHUB-TOKEN": TOKEN,
    "GITHUB_TOKEN": TOKEN,
    "ACTIONS_RUNTIME_TOKEN": f"runtime-{hostile_agent.SECRET}",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": f"oidc-{hostile_agent.SECRET}",
    "ACTIONS_ID_TOKEN_REQUEST_URL": f"https://example.com/{hostile_agent.SECRET}",
    "OTHER_API_KEY": f"sk-other-{hostile_agent.SECRET}",
}
QUIET = ("secrets", "processes", "sockets", "commands", "children", "rights")
LOUD = ("flood", "babble")
# Of agenteval, whatever an agent writes; it takes a quarter of it without any.
MOST_MEMORY_MB = 600


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A checkout that belongs to somebody else, at a place that everybody can reach."""
    with open_folder() as folder:
        path = folder / "workspace"
        path.mkdir()
        shutil.copy(hostile_agent.__file__, path / "hostile_agent.py")
        # Which PATH says where python3 is depends on the place.
        agent = {"command": ["/usr/bin/env", "python3", "hostile_agent.py", str(path.parent / "files")]}
        config = {"agents": {"default": agent | {"timeout": 60}}, "pass_env": ["ALLOWED_*"]}
        (path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        yield path


def attacked(runner: Runner, workspace: Path, wishes: Sequence[str], owner: int = OWNER) -> Step:
    """Run the action on a suite of wishes in a workspace of somebody."""
    cases = [{"name": wish, "input": wish, "ground_truth": "[]"} for wish in wishes]
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    suite = {"evaluations": metrics, "test_cases": cases}
    (workspace / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    for each in (workspace, *workspace.iterdir()):
        os.chown(each, owner, owner)
    event = workspace.parent / "event.json"
    event.write_text("{}", encoding="utf-8")
    values = {"GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "octo/repo", "INPUT_BASELINE": "none"}
    variables = {**values, **SECRETS, "ALLOWED_API_KEY": ALLOWED, "INPUT_COMMENT": "never"}
    if runner is as_process:
        # A Python that everybody can start, and not one of root's own.
        variables["PATH"] = "/usr/bin:/bin"
    return runner(workspace, variables, event)


def obeyed(log: str) -> list[str]:
    """The lines that the runner takes for commands, once those between stop-commands are left out."""
    found, token = [], ""
    for line in re.split(r"\r\n|\n|\r", log):
        stop = re.fullmatch(r"::stop-commands::(\S+)", line.strip())
        if token:
            token = "" if line.strip() == f"::{token}::" else token
        elif stop:
            token = stop[1]
        elif line.lstrip().startswith("::") or "##[" in line:
            found.append(line)
    return found


def files_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_a_hostile_agent_gets_nothing(runner: Runner, workspace: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss

    step = attacked(runner, workspace, (*QUIET, *LOUD, "key"))

    report = workspace / "agenteval-report"
    results = read_results(report)
    by_name = {case.name: case for _, case in results.cases()}
    turns = {name: case.iterations[0].turns[0] for name, case in by_name.items()}
    # What it found it answered, and equality compared it with what it may find.
    assert {name: turns[name].response for name in QUIET} == dict.fromkeys(QUIET, "[]")
    assert step.status == 3, step.log

    assert "more than 64 MiB" in (turns["flood"].error or "")
    assert by_name["flood"].status == "error"
    # Errors are no answer, however many.
    assert by_name["babble"].status == "passed"
    # The one secret that it has is masked everywhere.
    assert turns["key"].response == json.dumps("***")
    everything = [step.log, step.summary, *step.outputs.values()]
    everything += [path.read_text(encoding="utf-8", errors="replace") for path in files_in(report)]
    assert [text for text in everything if hostile_agent.SECRET in text or ALLOWED in text] == []

    assert [line for line in obeyed(step.log) if "forged" in line] == []
    assert "forged" not in step.outputs.values()
    assert step.outputs["verdict"] == "error"

    made = [*report.rglob("*"), report, workspace / "made-by-the-agent"]
    assert {path.stat().st_uid for path in made} == {OWNER}
    assert eventually(lambda: left_over() == [])

    if runner is as_process:
        # Kilobytes, of the largest child so far.
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert after == before or after < MOST_MEMORY_MB * 1000
        # The runner's files are as before.
        files = workspace.parent / "files"
        assert stat.S_IMODE(files.stat().st_mode) == 0o755
        assert sorted(path.name for path in files.iterdir()) == ["save_state", "set_output", "step_summary"]


def test_a_hostile_agent_in_a_workspace_of_root_gets_nothing_either(runner: Runner, workspace: Path) -> None:
    step = attacked(runner, workspace, QUIET, owner=0)

    turns = {
        case.name: case.iterations[0].turns[0] for _, case in read_results(workspace / "agenteval-report").cases()
    }
    assert {name: turns[name].response for name in QUIET} == dict.fromkeys(QUIET, "[]")
    assert step.status == 0, step.log
    assert {path.lstat().st_uid for path in (workspace, *workspace.rglob("*"))} == {0}
    assert eventually(lambda: left_over() == [])


def left_over() -> list[str]:
    """Processes that the agent left behind."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and b"4711" in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(folder.name)
        except OSError:
            pass
    return [pid for pid in found if is_alive(int(pid))]
