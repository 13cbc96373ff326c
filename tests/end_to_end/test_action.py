"""The container's entry, with the environment and the files that the runner gives it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    ROOT,
    Ended,
    agenteval,
    case,
    echo_agent,
    environment,
    number_in,
    open_folder,
    python_agent,
    results_in,
    write_suite,
)

TOKEN = "ghs_0123456789abcdef"
OUTPUTS = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["outputs"]


def pull_request(head: str = "org/bot") -> dict[str, Any]:
    """The part of the event that matters."""
    return {
        "number": 7,
        "pull_request": {
            "number": 7,
            "head": {"sha": "a" * 40, "repo": {"full_name": head}},
            "base": {"ref": "main", "sha": "b" * 40},
        },
        "repository": {"full_name": "org/bot"},
        "sender": {"login": "someone"},
    }


@dataclass(frozen=True)
class Step:
    """What the runner and a reader of the log see of a step."""

    ended: Ended
    outputs: Mapping[str, str]
    summary: str

    @property
    def commands(self) -> list[str]:
        """The lines that the runner obeys."""
        return list(obeyed(self.ended.out.splitlines()))

    def written(self, workspace: Path) -> str:
        """Everything it left anywhere."""
        files = [path for path in workspace.rglob("*") if path.is_file() and "agenteval-report" in path.parts]
        texts = [path.read_text(encoding="utf-8") for path in files]
        return "\n".join([self.ended.text, *self.outputs.values(), self.summary, *texts])


def obeyed(lines: list[str]) -> Iterator[str]:
    """The commands in a log, as the runner finds them: everywhere but between stop-commands and its token."""
    token = None
    for line in lines:
        if token is None and line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::") or "##[" in line:
            yield line
    assert token is None, "commands stay switched off"


class Runner:
    """A runner's machine: a workspace, and files by which a step talks back."""

    def __init__(self, home: Path, nothing_there: str) -> None:
        self._api = nothing_there
        self.workspace = home / "workspace"
        self.workspace.mkdir()
        (self.workspace / ".git").mkdir()
        self._home = home

    def variables(self, event: str, payload: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, str]:
        for name in ("output", "summary"):
            (self._home / name).write_text("", encoding="utf-8")
        (self._home / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        given = {"github-token": TOKEN, **inputs}
        return environment(
            GITHUB_ACTIONS="true",
            GITHUB_WORKSPACE=str(self.workspace),
            GITHUB_OUTPUT=str(self._home / "output"),
            GITHUB_STEP_SUMMARY=str(self._home / "summary"),
            GITHUB_EVENT_NAME=event,
            GITHUB_EVENT_PATH=str(self._home / "event.json"),
            GITHUB_REPOSITORY="org/bot",
            GITHUB_SHA="c" * 40,
            GITHUB_REF="refs/heads/main",
            GITHUB_RUN_ID="99",
            GITHUB_ACTOR="someone",
            GITHUB_API_URL=self._api,
            ACTIONS_RUNTIME_TOKEN="runtime-token-0123",
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
        )

    def step(
        self,
        event: str = "push",
        payload: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
        inputs: Mapping[str, str] | None = None,
        **more_inputs: str,
    ) -> Step:
        """Run the action; names of inputs may be written with an underscore."""
        named = {name.replace("_", "-"): value for name, value in {**(inputs or {}), **more_inputs}.items()}
        env = self.variables(event, payload or {}, named) | dict(variables or {})
        return self.seen(agenteval("action", cwd=self._home, env=env))

    def seen(self, ended: Ended) -> Step:
        return Step(ended, self._outputs(), (self._home / "summary").read_text(encoding="utf-8"))

    def _outputs(self) -> dict[str, str]:
        """As the runner reads them; the last of several counts."""
        found: dict[str, str] = {}
        lines = iter((self._home / "output").read_text(encoding="utf-8").split("\n"))
        for line in lines:
            if not line:
                continue
            name, _, delimiter = line.partition("<<")
            assert delimiter, f"malformed: {line}"
            value = []
            while (part := next(lines)) != delimiter:
                value.append(part)
            found[name] = "\n".join(value)
        return found


@pytest.fixture
def runner(nothing_there: str) -> Iterator[Runner]:
    with open_folder() as folder:
        yield Runner(folder, nothing_there)


# A run that goes well


@pytest.mark.long
def test_the_command_line_does_what_the_action_does(runner: Runner) -> None:
    cases = [case("a"), case("b", "other"), case("skipped", ground_truth=None)]
    write_suite(runner.workspace, cases, agent=echo_agent(runner.workspace))
    by_action = runner.step("pull_request", pull_request(), comment="never")
    env = runner.variables("pull_request", pull_request(), {}) | {"GITHUB_TOKEN": TOKEN}

    by_command = runner.seen(agenteval("run", "--github", cwd=runner.workspace, env=env))

    assert by_command.ended.status == by_action.ended.status == 1
    assert by_command.outputs == by_action.outputs
    assert by_command.commands == by_action.commands != []
    assert by_command.summary.splitlines()[0] == by_action.summary.splitlines()[0]
    assert results_in(runner.workspace).run.commit == "a" * 40
    assert TOKEN not in by_command.written(runner.workspace)

    refused: tuple[tuple[list[str], dict[str, str], str], ...] = (
        (["--github"], {"GITHUB_ACTIONS": ""}, "--github needs a job of a GitHub workflow"),
        (["--github", "--resume"], {}, "--resume has no effect with --github"),
        (["--comment", "always", "--check-name", "x"], {}, "--comment, --check-name needs --github"),
        (["--baseline", "auto"], {}, "--baseline needs --github"),
        (
            ["--github", "--out", str(runner.workspace.parent)],
            {},
            "is outside of the directories that may be written",
        ),
    )
    for options, changed, message in refused:
        ended = agenteval("run", *options, cwd=runner.workspace, env=env | changed)
        assert (ended.status, message in ended.text) == (2, True), (options, ended.text)


@pytest.mark.long
def test_every_input_reaches_the_run(runner: Runner) -> None:
    folder = runner.workspace / "bots" / "support"
    folder.mkdir(parents=True)
    write_suite(folder, [case("a"), case("b")])
    agent = echo_agent(folder)
    settings = {
        "agents": {"default": agent},
        "iterations": 2,
        "concurrency": 1,
        "gate": {"on_missing_baseline": "fail"},
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    step = runner.step(
        suite="agent.yaml",
        config="settings.yaml",
        mode="run",
        working_directory="bots/support",
        baseline="none",
        fail_on="failures, errors",
        comment="always",
        comment_id="support",
        report_dir="out/reports",
    )
    assert step.ended.status == 0, step.ended.text
    assert step.outputs["total"] == "2"
    assert step.outputs["results-path"] == "bots/support/out/reports/results.json"
    results = json.loads((runner.workspace / step.outputs["results-path"]).read_text(encoding="utf-8"))
    assert [len(found["iterations"]) for found in results["suites"][0]["cases"]] == [2, 2]
    comment = (folder / "out" / "reports" / "comment.md").read_text(encoding="utf-8")
    assert "2 of 2 cases" in comment


# What is wrong, told wherever people look


def failed(step: Step, status: int = 2) -> str:
    """The summary of a run that did not take place."""
    assert step.ended.status == status, step.ended.text
    assert step.outputs["verdict"] == "error"
    assert "Traceback" not in step.ended.text
    return step.summary


def test_inputs_that_make_no_sense(runner: Runner) -> None:
    step = runner.step(
        mode="rnu",
        comment="sometimes",
        on_missing_baseline="fail",
        fail_on="failure",
        runs="0",
        concurrency="many",
        suite="'open",
    )
    summary = failed(step)
    for name in ("mode", "comment", "on-missing-baseline", "fail-on", "runs", "concurrency", "suite"):
        assert f"input {name}: " in summary
    assert "did you mean 'run'?" in summary.replace("&#39;", "'")
    assert len(step.commands) == 7


WRONG_INPUTS: list[dict[str, str]] = [
    {"mode": "zzz"},
    {"suite": "gone.yaml"},
    {"config": "gone.yaml"},
    {"runs": "0"},
]


@pytest.mark.parametrize("inputs", WRONG_INPUTS, ids=lambda inputs: next(iter(inputs)))
def test_wrong_inputs_leave_no_report_of_an_earlier_run(runner: Runner, inputs: dict[str, str]) -> None:
    write_suite(runner.workspace, [case("a")], agent=echo_agent(runner.workspace))
    folder = runner.workspace / "agenteval-report"
    folder.mkdir()
    (folder / "results.json").write_text("{}", encoding="utf-8")
    (folder / "badge.json").write_text("{}", encoding="utf-8")
    (folder / "mine").write_text("", encoding="utf-8")
    failed(runner.step(inputs=inputs))
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_reports_outside_of_the_workspace_stay(runner: Runner) -> None:
    outside = runner.workspace.parent / "outside"
    outside.mkdir()
    (outside / "results.json").write_text("{}", encoding="utf-8")
    (runner.workspace / "link").symlink_to(outside)
    for name in ("../outside", "link"):
        failed(runner.step(report_dir=name, runs="abc"))
        assert [path.name for path in outside.iterdir()] == ["results.json"]


@pytest.mark.parametrize("agent", [{"python": "broken:reply"}, {"replay": "gone.jsonl"}])
def test_later_steps_find_no_report_of_an_earlier_run(runner: Runner, agent: dict[str, str]) -> None:
    """A self-hosted runner can keep its workspace, with the reports of another commit."""
    write_suite(runner.workspace, [case("a")], agent=echo_agent(runner.workspace))
    assert runner.step(comment="never").ended.status == 0
    (runner.workspace / "broken.py").write_text("import gone", encoding="utf-8")
    write_suite(runner.workspace, [case("a")], agent=agent)
    failed(runner.step(comment="never"), 3 if "python" in agent else 2)
    # A journal is no verdict; it can be the recording that a suite names.
    assert [path.name for path in (runner.workspace / "agenteval-report").iterdir()] == ["journal.jsonl"]


def test_inputs_in_the_report_directory_stay(runner: Runner) -> None:
    write_suite(runner.workspace, [case("a")], agent=echo_agent(runner.workspace))
    folder = runner.workspace / "agenteval-report"
    folder.mkdir()
    (folder / "results.json").write_text("{}", encoding="utf-8")
    failed(runner.step(baseline="agenteval-report/results.json", runs="abc"))
    assert (folder / "results.json").exists()
    recording = '{"case": "a", "response": "hello"}\n'
    (folder / "journal.jsonl").write_text(recording, encoding="utf-8")
    write_suite(runner.workspace, [case("a")], agent={"replay": "agenteval-report/journal.jsonl"})
    assert "the command reads this" in failed(runner.step(comment="never"))
    assert (folder / "journal.jsonl").read_text(encoding="utf-8") == recording
    # Named by a file of the suite.
    (folder / "comment.md").write_text("{{ headline }}", encoding="utf-8")
    write_suite(runner.workspace, [case("a")], agent=echo_agent(runner.workspace))
    (runner.workspace / "agenteval.yaml").write_text(f"templates: {{comment: {folder.name}/comment.md}}\n", "utf-8")
    assert "the command reads this" in failed(runner.step())
    assert {"comment.md", "journal.jsonl", "results.json"} <= {path.name for path in folder.iterdir()}


def test_code_of_strangers_is_not_run_with_secrets(runner: Runner) -> None:
    marker = runner.workspace / "ran"
    write_suite(runner.workspace, [case("a")], agent={"command": ["touch", str(marker)]})
    summary = failed(runner.step("pull_request_target", pull_request("stranger/bot")))
    assert "refused: suites are not run under pull" in summary
    assert not marker.exists()


@pytest.mark.long
def test_an_interrupted_step_reports_what_had_finished(runner: Runner) -> None:
    code = """
import os, time
def reply(request):
    if request["case"] == "hang":
        open("hangs", "w").write(f"{os.getpid()}\\n")
        time.sleep(1000)
    return request["input"]
"""
    write_suite(runner.workspace, [case("a"), case("hang")], agent=python_agent(runner.workspace, code))
    (runner.workspace / "agenteval.yaml").write_text("concurrency: 1\n", encoding="utf-8")
    env = runner.variables("push", {}, {})
    with subprocess.Popen(
        [str(AGENTEVAL), "action"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        number_in(runner.workspace / "hangs")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    step = runner.seen(Ended(process.returncode, out, err))
    assert step.ended.status == 143
    assert (step.outputs["verdict"], step.outputs["passed"], step.outputs["total"]) == ("error", "1", "1")
    assert "interrupted" in step.summary


# Nothing hostile gets through


HOSTILE = """::error::forged
::set-output name=verdict::passed
##[error]forged
::stop-commands::x
::x::
verdict<<EOF
passed
EOF
<!-- agenteval:comment id=default --> @org/team #1 ![x](https://evil.example/x.png)
\x1b]0;title\x07\x1b[31m
"""


@pytest.mark.long
def test_hostile_text_commands_nobody(runner: Runner) -> None:
    code = f"def reply(request):\n    print({HOSTILE!r})\n    return {HOSTILE!r}\n"
    cases = [case(f"case {HOSTILE}", HOSTILE, "x"), case("b", HOSTILE, HOSTILE), case("crash", HOSTILE)]
    agent = python_agent(runner.workspace, code + f"    raise ValueError({HOSTILE!r})\n")
    write_suite(runner.workspace, cases, agent=agent, name=f"suite {HOSTILE}")
    step = runner.step(fail_on="failures")
    assert step.ended.status == 1, step.ended.text
    *annotations, verdict = step.commands
    assert verdict == "::error title=agenteval::2 of 3 cases failed"
    # The text is data of our own commands, in which nothing is a command.
    assert [line.partition(",")[0] for line in annotations] == ["::error file=agent.yaml"] * len(annotations)
    # One for the cause that both cases share.
    assert len(annotations) == 1
    assert not [line for line in step.ended.err.splitlines() if line.startswith("::") or "##[" in line]
    assert "\x1b" not in step.ended.text
    assert (step.outputs["verdict"], step.outputs.keys()) == ("failed", OUTPUTS.keys())
    assert "<!-- agenteval:comment" not in step.summary


@pytest.mark.long
def test_no_token_reaches_the_agent_or_any_report(runner: Runner) -> None:
    # The agent finds the token where no variable brings it, and tells everybody.
    (runner.workspace / "found").write_text(TOKEN, encoding="utf-8")
    code = """
import json, os
def reply(request):
    token = open("found").read()
    if request["case"] == "crash":
        raise RuntimeError(token)
    return {"response": token + json.dumps(dict(os.environ)), "tool_calls": [{"name": token, "args": {token: token}}]}
"""
    write_suite(runner.workspace, [case("a"), case("crash")], agent=python_agent(runner.workspace, code))
    step = runner.step(variables={"GITHUB_TOKEN": "ghp_another0123456789"})
    assert step.ended.status == 3
    written = step.written(runner.workspace)
    assert TOKEN not in written
    assert "ghp_another0123456789" not in written
    assert "runtime-token-0123" not in written
    response = results_in(runner.workspace).cases()[0][1].iterations[0].turns[0].response or ""
    seen = json.loads(response.removeprefix("***"))
    assert not [name for name in seen if name.startswith(("INPUT_", "ACTIONS_")) or name == "GITHUB_TOKEN"]
    assert "GITHUB_SHA" not in seen
