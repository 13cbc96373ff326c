"""Caches that user code can write: an agent that forges verdicts, and caches of earlier runs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from tests.integration.model_server import ModelServer, serving
from tests.peers import forging_agent
from tests.peers.action_step import Runner, Step, as_process
from tests.support import JUDGED_SUITE, open_folder

import agenteval
from agenteval.results.store import read_results

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to give them up"),
]

OWNER = 4321
KEY = f"{forging_agent.SECRET}-of-the-repository"
CACHE = ".cache"
SUITE = f"""\
{JUDGED_SUITE}
[[eval.cases]]
prompt = "How do I open an account?"
score = {{ min = 7 }}
"""
# What the agent imports agenteval and its dependencies from, where it is not in the image.
IMPORTS = [str(Path(module.__file__ or "").parents[1]) for module in (agenteval, httpx)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        running.script(json.dumps({"score": 1, "reasoning": "It does not."}))
        yield running


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A checkout and a home directory that belong to somebody else, at a place that everybody can reach."""
    with open_folder() as folder:
        path = folder / "workspace"
        (path / ".agentci" / "evals").mkdir(parents=True)
        (path / ".agentci" / "evals" / "help.toml").write_text(SUITE, encoding="utf-8")
        shutil.copy(forging_agent.__file__, path / "agent.py")
        command = ["/usr/bin/env", "python3", "agent.py", *IMPORTS, "--", CACHE]
        config = {"agents": {"default": {"command": command, "timeout": 90}}, "pass_env": ["*"]}
        (path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        (path.parent / "home").mkdir()
        for each in (path, path.parent / "home", *path.rglob("*")):
            os.chown(each, OWNER, OWNER)
        yield path


def answer_plainly(workspace: Path) -> None:
    """Replace the agent by one that only answers."""
    config = {"agents": {"default": {"command": ["echo", forging_agent.ANSWER]}}}
    (workspace / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def run(runner: Runner, workspace: Path, server: ModelServer, **more: str) -> Step:
    event = workspace.parent / "event.json"
    event.write_text("{}", encoding="utf-8")
    variables = {
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_REPOSITORY": "octo/repo",
        "INPUT_BASELINE": "none",
        "INPUT_COMMENT": "never",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": "sk-of-the-job",
        **{name.replace("INPUT_CACHE_", "INPUT_CACHE-"): value for name, value in more.items()},
    }
    if runner is as_process:
        # A Python and a home directory that everybody can use, and not those of root.
        variables |= {"PATH": "/usr/bin:/bin", "HOME": str(workspace.parent / "home")}
    return runner(workspace, variables, event)


@pytest.mark.parametrize(
    "given",
    [
        {"AGENTEVAL_CACHE": CACHE},
        {"AGENTEVAL_CACHE": CACHE, "INPUT_CACHE_KEY": KEY},
    ],
    ids=["folder", "folder and input"],
)
def test_a_verdict_that_the_agent_wrote_is_not_believed(
    runner: Runner, workspace: Path, server: ModelServer, given: dict[str, str]
) -> None:
    step = run(runner, workspace, server, **given)

    ((_, case),) = read_results(workspace / "agenteval-report").cases()
    # The answer names the variables with the key that it found.
    assert case.iterations[0].turns[0].response == forging_agent.ANSWER, step.log
    assert (step.status, step.outputs["verdict"], len(server.asked)) == (1, "failed", 1), step.log
    assert forging_agent.SECRET not in step.log + step.summary


def test_a_cache_of_another_run_is_believed_with_its_key_only(workspace: Path, server: ModelServer) -> None:
    answer_plainly(workspace)

    def calls(**given: str) -> int:
        before = len(server.asked)
        step = run(as_process, workspace, server, **{"AGENTEVAL_CACHE": CACHE, **given})
        assert (step.status, step.outputs["verdict"]) == (1, "failed"), step.log
        return len(server.asked) - before

    assert calls(INPUT_CACHE_KEY=KEY) == 1
    assert calls(INPUT_CACHE_KEY=KEY) == 0
    assert calls(AGENTEVAL_CACHE_KEY=KEY) == 0
    # Later steps of the job can keep the folder.
    assert {path.stat().st_uid for path in (workspace / CACHE).rglob("*")} == {OWNER}
    # The input names it too, and git does not see it.
    assert calls(INPUT_CACHE_DIR=CACHE, AGENTEVAL_CACHE="elsewhere", INPUT_CACHE_KEY=KEY) == 0
    assert (workspace / CACHE / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert not (workspace / "elsewhere").exists()
    kept = workspace.parent / "kept"
    shutil.copytree(workspace / CACHE, kept)
    for other in ({"INPUT_CACHE_KEY": "the key of another repository"}, {}):
        assert calls(**other) == 1
        shutil.rmtree(workspace / CACHE)
        shutil.copytree(kept, workspace / CACHE)
    assert calls(INPUT_CACHE_KEY=KEY) == 0


def test_no_file_of_the_repository_can_name_the_key(workspace: Path, server: ModelServer) -> None:
    given = {name: f"${{{name}}}" for name in ("AGENTEVAL_CACHE_KEY", "INPUT_CACHE-KEY")}
    for name, text in given.items():
        agent = {"command": ["/usr/bin/env"], "env": {"GIVEN": text}}
        (workspace / "agenteval.yaml").write_text(yaml.safe_dump({"agents": {"default": agent}}), encoding="utf-8")

        step = run(as_process, workspace, server, INPUT_CACHE_KEY=KEY, AGENTEVAL_CACHE_KEY=KEY)

        files = [path.read_text(encoding="utf-8") for path in (workspace / "agenteval-report").rglob("*.json*")]
        everything = [step.log, step.summary, *files]
        assert [text for text in everything if forging_agent.SECRET in text or "GIVEN=***" in text] == [], name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"INPUT_CACHE_KEY": KEY, "INPUT_CACHE_DIR": "../cache"}, "input cache-dir: "),
        ({"INPUT_CACHE_KEY": "short"}, "input cache-key: the key has 5 characters; use 16 or more"),
    ],
    ids=["outside of the workspace", "too short"],
)
def test_what_is_no_cache_is_refused(workspace: Path, server: ModelServer, given: dict[str, str], said: str) -> None:
    step = run(as_process, workspace, server, **given)

    assert (step.status, server.asked) == (2, [])
    assert said in step.log
    assert not (workspace.parent / "cache").exists()
