"""What `agenteval init` writes runs at once, and nothing that exists is touched."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.end_to_end.conftest import Command
from tests.end_to_end.test_action import Runner, pull_request
from tests.git_server import GIT_NAMES, commit, git
from tests.mistakes import shown
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    PYTHON,
    ROOT,
    Answer,
    agenteval,
    copied_agenteval,
    environment,
    open_folder,
    results_in,
    serving,
    verdict_of,
)

from agenteval.cli.explanations import schema
from agenteval.cli.starters.agent import reply

SUITES = {
    "holodeck": ["agent.yaml"],
    "agentci": [".agentci/evals/answers.toml"],
    "fluxloop": ["configs/evaluation.yaml", "configs/input.yaml", "traces/per_trace.jsonl"],
}
AGENTS = {"command": ["agent.py"], "http": [], "python": ["agent.py"]}
WORKFLOW = ".github/workflows/agenteval.yml"
PLACEHOLDER = "https://agent.example/reply"

each_agent = pytest.mark.parametrize("kind", AGENTS)


def files_in(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def initialised(command: Command, suite_format: str, kind: str) -> list[str]:
    """The lines that init printed."""
    ended = command("init", "--format", suite_format, "--agent", kind)
    assert (ended.status, ended.err) == (0, "")
    return ended.out.splitlines()


@pytest.mark.parametrize(("suite_format", "kind"), [("holodeck", "command")])
def test_five_commands_lead_to_a_regression(suite_format: str, kind: str, tmp_path: Path) -> None:
    # The first command installs the program. The others are those that it prints, as they stand, in a shell.
    init = f"agenteval init --format {suite_format} --agent {kind}"
    path = f"{Path(copied_agenteval()).parent}:{os.environ['PATH']}"

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        env = environment(PATH=path, **GIT_NAMES)
        return subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    lines = shell(init).stdout.splitlines()
    commands = [line.strip() for line in lines[lines.index("next:") + 1 : -1] if "--traces" not in line]
    ended = [shell(command) for command in commands]

    assert len(["pip install", init, *commands]) <= 5
    assert [done.returncode for done in ended] == [0, 0, 1]
    assert verdict_of(ended[1].stdout).startswith("passed")
    comparison = results_in(tmp_path).comparison
    assert comparison is not None
    assert (comparison.state, comparison.stage) == ("proven", "beside")
    comment = (tmp_path / "agenteval-report" / "comment.md").read_text(encoding="utf-8")
    assert "side by side with" in comment
    assert "I do not know. Please call the shop." in comment


@each_agent
def test_the_configuration_follows_the_published_schema(kind: str, tmp_path: Path, command: Command) -> None:
    initialised(command, "holodeck", kind)
    text = (tmp_path / "agenteval.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=https://")
    configuration = yaml.safe_load(text)
    Draft202012Validator(schema("config")).validate(configuration)
    assert configuration["iterations"] == 3
    assert list(configuration["agents"]["default"]) == [kind]
    # What the gate says is what it does anyway: it is there to be changed.
    properties = schema("config")["$defs"]["GateEntry"]["properties"]
    gate = configuration["gate"]
    assert sorted(gate.pop("fail_on")) == sorted(properties["fail_on"]["default"])
    assert gate == {"max_error_rate": properties["max_error_rate"]["default"]}


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = workflow["jobs"]["evaluate"]["steps"]
    return steps


def test_the_workflow_is_that_of_the_readme(tmp_path: Path, command: Command) -> None:
    initialised(command, "holodeck", "command")
    command_line = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command_line, WORKFLOW], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = yaml.safe_load((tmp_path / WORKFLOW).read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(readme.partition("`.github/workflows/agenteval.yml`:\n\n```yaml\n")[2].partition("```")[0])
    # That of the README is the shortest: it makes no baseline of several runs, and keeps no cache.
    del written[True]["workflow_dispatch"], written["concurrency"]
    job = written["jobs"]["evaluate"]
    del job["name"], job["timeout-minutes"], job["steps"][1], job["steps"][1]["with"]
    assert written == shown


# Nobody may make a directory here, whatever the permissions of who runs the tests.
@pytest.mark.parametrize("directory", ["/proc/agenteval", "x" * 300])
def test_a_directory_that_cannot_be_written(directory: str, tmp_path: Path, command: Command) -> None:
    ended = command("init", directory)
    assert (ended.status, ended.out) == (3, "")
    assert shown(ended.err)[0].title.startswith(f"cannot create the directory {directory}: ")
    assert len(shown(ended.err)) == 1
    assert files_in(tmp_path) == {}


def test_a_disk_that_fills_up_keeps_nothing(tmp_path: Path) -> None:
    # Files may have 900 bytes: the suite is written, the settings are not.
    done = subprocess.run(
        [str(AGENTEVAL), "init", "--format", "agentci"],
        cwd=tmp_path,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert shown(done.stderr)[0].says("cannot write agenteval.yaml: File too large; nothing was written")
    assert files_in(tmp_path) == {}


def test_directories_whose_workflows_would_have_one_name(tmp_path: Path, command: Command) -> None:
    (tmp_path / ".git").mkdir()
    folder = (tmp_path / WORKFLOW).parent
    for name in ("agents/a-b", "agents/b"):
        ended = command("init", name)
        assert ended.status == 0, ended.text
        again = command("init", name)
        assert (again.status, again.out) == (2, "")
        [file] = [line for line in ended.out.splitlines() if line.startswith("wrote .github")]
        assert file.removeprefix("wrote .github/workflows/") in ended.out.partition("next:")[2]

    for name in ("agents/a/b", "agents/a b"):
        ended = command("init", name)
        assert (ended.status, ended.out) == (2, "")
        assert "nothing was written; name another directory: agenteval init DIRECTORY" in ended.err
    names = {file.name: yaml.safe_load(file.read_text(encoding="utf-8"))["name"] for file in folder.iterdir()}
    assert names == {
        "agenteval-agents-a-b.yml": "agenteval agents/a-b",
        "agenteval-agents-b.yml": "agenteval agents/b",
    }


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("agents/*", "agents/[*]/agenteval-report/"),
        ("app/[slug]?", "app/[[]slug][?]/agenteval-report/"),
        ("!x", "./!x/agenteval-report/"),
        ("#x", "./#x/agenteval-report/"),
        ("~x", "./~x/agenteval-report/"),
    ],
)
def test_a_directory_with_characters_of_patterns(name: str, pattern: str, tmp_path: Path, command: Command) -> None:
    (tmp_path / ".git").mkdir()
    assert command("init", name).status == 0

    [file] = (tmp_path / WORKFLOW).parent.iterdir()
    *_, ours, upload = steps_of(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert (ours["with"]["working-directory"], upload["with"]["path"]) == (name, pattern)


@pytest.mark.parametrize("name", ["agents/${{ x }}", "a\\b", "a\nb", "a/ b /c ", "a\u202eb"])
def test_a_directory_that_no_workflow_can_name(name: str, tmp_path: Path, command: Command) -> None:
    (tmp_path / ".git").mkdir()

    ended = command("init", name)

    assert (ended.status, ended.out) == (2, "")
    [problem] = shown(ended.err)
    assert problem.says("no workflow can name the directory")
    assert files_in(tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("suite_format", "kind", "directory"),
    [
        ("holodeck", "command", "bots/shop"),
        ("agentci", "python", "."),
        ("fluxloop", "command", "."),
        ("holodeck", "http", "."),
    ],
)
def test_the_first_run_of_a_starter_passes(suite_format: str, kind: str, directory: str, nothing_there: str) -> None:
    with open_folder() as home, serving(lambda body: Answer(reply(body))) as service:
        runner = Runner(home, nothing_there)
        work = runner.workspace
        git(work, "init", "--quiet", "--initial-branch", "main")
        git(work, "commit", "--quiet", "--allow-empty", "--message", "before")
        base = git(work, "rev-parse", "HEAD")
        started = agenteval("init", directory, "--format", suite_format, "--agent", kind, cwd=work)
        [name] = re.findall("wrote (.github/.*)", started.out)
        settings = work / directory / "agenteval.yaml"
        text = settings.read_text(encoding="utf-8")
        # A service on this machine stands for that of the user.
        settings.write_text(text.replace(PLACEHOLDER, service.url), encoding="utf-8")
        head = commit(work)
        *_, ours, upload = steps_of(yaml.safe_load((work / name).read_text(encoding="utf-8")))
        payload = pull_request()
        payload["pull_request"] |= {
            "base": {"ref": "main", "sha": base},
            "head": {"sha": head, "repo": {"full_name": "org/bot"}},
        }

        # The agent is started as python3, by another user.
        path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
        step = runner.step(
            "pull_request",
            payload,
            {"PATH": path, "GITHUB_SHA": head, "GITHUB_REF": "refs/pull/7/merge"},
            {**ours["with"], "runs": "", "cache-key": ""},
        )

        assert step.ended.status == 0, step.ended.text
        assert step.outputs["verdict"] == "passed"
        assert (work / upload["with"]["path"] / "results.json").is_file()


@pytest.mark.parametrize(
    ("branches", "remote", "branch"),
    [
        # A new repository has the branch of its first commit.
        ([], None, "topic"),
        ([], "trunk", "trunk"),
        (["main"], "release/1.x", "release/1.x"),
        ([], "a,b", "a,b"),
        ([], "1", "1"),
        ([], "c++", r"c\+\+"),
        (["master"], None, "master"),
        (["develop", "next"], None, None),
    ],
)
def test_the_workflow_runs_on_the_default_branch(
    branches: list[str], remote: str | None, branch: str | None, tmp_path: Path, command: Command
) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "topic")
    for name in branches:
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "one")
        git(tmp_path, "branch", name)
    if remote:
        (tmp_path / ".git/refs/remotes/origin").mkdir(parents=True)
        head = f"ref: refs/remotes/origin/{remote}\n"
        (tmp_path / ".git/refs/remotes/origin/HEAD").write_text(head, encoding="utf-8")

    ended = command("init")

    assert ended.status == 0
    # YAML 1.1 reads the key ``on`` as true.
    trigger = yaml.safe_load((tmp_path / WORKFLOW).read_text(encoding="utf-8"))[True]
    assert trigger["push"] == {"branches": [branch or "main"]}
    guess = f"git does not tell the default branch; if it is not main, set `branches:` in {WORKFLOW}\n"
    assert (guess in ended.out) == (branch is None)


def test_on_a_terminal_it_asks_for_a_branch_that_git_does_not_tell(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "trunk" if "[main]" in question else "")

    assert command("init").status == 0

    assert "branches: [trunk]" in (tmp_path / WORKFLOW).read_text(encoding="utf-8")


OURS = ["agenteval-report/", "agenteval-again/", ".agenteval-cache/", "__pycache__/"]


@pytest.mark.parametrize(
    ("above", "beside", "after"),
    [
        (None, None, "".join(f"{line}\n" for line in OURS)),
        (None, "mine", "mine\n" + "".join(f"{line}\n" for line in OURS)),
        (None, "mine\r\n", "mine\r\n" + "".join(f"{line}\r\n" for line in OURS)),
        ("__pycache__\n", "/agenteval-report/\n", "/agenteval-report/\nagenteval-again/\n.agenteval-cache/\n"),
        ("**/__pycache__/\nagenteval-report/\n", None, "agenteval-again/\n.agenteval-cache/\n"),
        # This one means the directory above only.
        ("/__pycache__/\nagenteval-report\nagenteval-again\n.agenteval-cache", None, "__pycache__/\n"),
        ("\n".join(OURS), None, None),
        (None, "\n".join(OURS), "\n".join(OURS)),
    ],
)
def test_only_what_is_missing_is_added_to_gitignore(
    above: str | None, beside: str | None, after: str | None, tmp_path: Path, command: Command
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop").mkdir()
    for text, folder in ((above, tmp_path), (beside, tmp_path / "shop")):
        if text is not None:
            (folder / ".gitignore").write_bytes(text.encode())

    ended = command("init", "shop")

    assert ended.status == 0, ended.err
    file = tmp_path / "shop" / ".gitignore"
    assert (file.read_bytes().decode() if file.exists() else None) == after
    assert ("to shop/.gitignore" in ended.out) == (after != beside)
    assert (tmp_path / ".gitignore").exists() == (above is not None)


def test_a_gitignore_that_cannot_be_extended_leaves_nothing_behind(tmp_path: Path, command: Command) -> None:
    (tmp_path / ".gitignore").symlink_to("elsewhere")

    ended = command("init")

    assert (ended.status, ended.out) == (3, "")
    assert ".gitignore: it is a link, not a regular file" in ended.err
    assert "; nothing was written\n" in ended.err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
