"""The input ``setup``: as a process, and in the image if one was built."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.peers.action_step import Runner, Step, in_container, process_environment
from tests.support import PATIENCE_S, ends, number_in, open_folder

from agenteval.results.store import read_results

pytestmark = pytest.mark.peer

OWNER = 4321
AGENT = """
import installed_by_setup

def reply(request):
    return installed_by_setup.answer(request["input"])
"""
# As pip does, without a network: a file where packages lie.
INSTALL = """
site=$(python -c 'import site; print(site.getsitepackages()[0])')
cp package/installed_by_setup.py "$site/"
echo "installed into $VIRTUAL_ENV with $INDEX_TOKEN"
"""


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A checkout of an agent that needs a package."""
    with open_folder() as folder:
        path = folder / "workspace"
        package = path / "package" / "installed_by_setup.py"
        package.parent.mkdir(parents=True)
        package.write_text("def answer(text):\n    return text.upper()\n", encoding="utf-8")
        (path / "agent.py").write_text(AGENT, encoding="utf-8")
        config = {"agents": {"default": {"python": "agent:reply"}}, "pass_env": ["INDEX_TOKEN"]}
        (path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        cases = [{"name": "shout", "input": "hello", "ground_truth": "HELLO"}]
        metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
        suite = {"evaluations": metrics, "test_cases": cases}
        (path / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
        (path.parent / "event.json").write_text("{}", encoding="utf-8")
        if os.geteuid() == 0:
            for each in (path, *path.rglob("*")):
                os.chown(each, OWNER, OWNER)
        yield path


def variables(commands: str) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_REPOSITORY": "octo/repo",
        "INPUT_BASELINE": "none",
        "INPUT_GITHUB-TOKEN": "ghs_never_told",
        "INPUT_COMMENT": "never",
        "INDEX_TOKEN": "index-3c1f",
        "INPUT_SETUP": commands,
    }


def step(runner: Runner, workspace: Path, commands: str) -> Step:
    environment = variables(commands)
    if runner is in_container:
        del environment["PATH"]
    return runner(workspace, environment, workspace.parent / "event.json")


def test_agents_find_what_was_installed(runner: Runner, workspace: Path) -> None:
    done = step(runner, workspace, INSTALL)

    assert done.status == 0, done.log
    assert done.outputs["verdict"] == "passed"
    [(_, case)] = read_results(workspace / "agenteval-report").cases()
    assert case.iterations[0].turns[0].response == "HELLO"
    assert "index-3c1f" not in done.log
    assert "with ***" in done.log


def test_what_fails_is_told_and_nothing_is_evaluated(runner: Runner, workspace: Path) -> None:
    done = step(runner, workspace, "echo ::error::forged; cat package/missing.txt")

    assert done.status == 3, done.log
    assert done.outputs["verdict"] == "error"
    assert "No such file or directory" in done.summary
    assert "cat package/missing.txt" in done.summary
    assert not (workspace / "agenteval-report" / "results.json").exists()
    assert "forged" in done.log
    assert [line for line in done.log.splitlines() if line.startswith("::error::forged")] == []


def test_a_cancelled_job_leaves_nothing_running(workspace: Path) -> None:
    environment = variables("echo $$ >pid; sleep 600")
    given = process_environment(workspace, environment, workspace.parent / "event.json")
    command = [sys.executable, "-I", "-m", "agenteval", "action"]
    with subprocess.Popen(command, env=given, cwd=workspace, stdout=subprocess.PIPE, text=True) as action:
        pid = number_in(workspace / "pid")

        # The first of the two signals by which the runner stops a container.
        action.send_signal(signal.SIGTERM)
        said, _ = action.communicate(timeout=PATIENCE_S)

    assert action.returncode == 128 + signal.SIGTERM
    assert ends(pid)
    # Nothing that comes afterwards is taken for text.
    [begin] = [line for line in said.splitlines() if line.startswith("::stop-commands::")]
    assert f"::{begin.rpartition(':')[2]}::" in said.splitlines()
