"""The native action as a process: it installs a release's wheel, and its agents find the programs of the runner."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.peers.native_step import ACTION, NativeRunner, build_wheel
from tests.support import ROOT, case, open_folder, write_suite

pytestmark = pytest.mark.peer

NODE_AGENT = """
const fs = require("fs")
const request = JSON.parse(fs.readFileSync(0))
const hidden = Object.keys(process.env).filter(name => /^(INPUT_|ACTIONS_|STATE_|GITHUB_TOKEN|GITHUB_ENV)/.test(name))
if (hidden.length) throw new Error("it sees " + hidden)
console.log(process.env.EARLIER_STEP + " " + request.input)
"""
UV_AGENT = """
# /// script
# dependencies = []
# ///
import json, os, sys
request = json.load(sys.stdin)
print(os.environ["EARLIER_STEP"], request["input"])
"""
TOKEN = "ghs_0123456789abcdef"
EVENT = {"repository": {"full_name": "org/bot"}, "ref": "refs/heads/main", "after": "c" * 40}


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with open_folder() as folder:
        folder.chmod(0o755)
        yield build_wheel(folder)


def machine(folder: Path, wheel: Path, *, root: bool, programs: list[str]) -> NativeRunner:
    runner = NativeRunner(folder, wheel, root=root)
    runner.create(programs)
    for name, code in (("agent.js", NODE_AGENT), ("agent.py", UV_AGENT)):
        (runner.workspace / name).write_text(code, encoding="utf-8")
    return runner


def variables(runner: NativeRunner) -> dict[str, str]:
    """What the runner sets, and what earlier steps wrote to GITHUB_ENV."""
    event = runner.home / "event.json"
    event.write_text(json.dumps(EVENT), encoding="utf-8")
    return {
        "EARLIER_STEP": "seen",
        "LD_LIBRARY_PATH": "/opt/earlier",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "org/bot",
        "GITHUB_SHA": "c" * 40,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_RUN_ID": "99",
        "GITHUB_API_URL": "http://127.0.0.1:1",
    }


def write_cases(folder: Path, command: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    write_suite(folder, [case("a b", ground_truth="seen hello")], agent={"command": command})
    (folder / "agenteval.yaml").write_text("pass_env: [EARLIER_STEP]\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("root", "programs"),
    [
        # With uv, as a user without rights: GitHub's runners.
        (False, ["node", "uv"]),
        # With pip, as root: a job in `container:`.
        pytest.param(True, ["node"], marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")),
    ],
    ids=["uv", "root-pip"],
)
def test_agents_find_the_programs_of_earlier_steps(root: bool, programs: list[str], wheel: Path) -> None:
    with open_folder() as folder:
        runner = machine(folder, wheel, root=root, programs=programs)
        commands: dict[str, list[str]] = {
            "node": ["node", "../agent.js"],
            "uv": ["uv", "run", "--no-project", "../agent.py"],
        }
        for name in programs:
            write_cases(runner.workspace / name, commands[name])
        inputs = {"github-token": TOKEN, "suite": " ".join(programs), "baseline": "none", "report-dir": "out"}
        succeeded, log, outputs = runner.run(inputs, variables(runner))

        assert succeeded, log
        assert "agenteval 0" in log
        assert (outputs["verdict"], outputs["total"]) == ("passed", str(len(programs)))
        assert outputs.keys() == ACTION["outputs"].keys()
        assert Path(outputs["results-path"]) == Path("out/results.json")
        assert (runner.workspace / "out" / "results.json").is_file()
        installer = "uv" if "uv" in programs else "pip"
        assert runner.steps["prepare"]["key"].startswith(f"agenteval-native-{installer}-")
        # It had nothing to do.
        assert "Clean up" not in runner.steps
        assert runner.steps["evaluate"]["stage"] == "finished"
        assert TOKEN not in log


def test_a_machine_without_python_is_told(wheel: Path) -> None:
    with open_folder() as folder:
        runner = machine(folder, wheel, root=False, programs=["node", "uv"])
        none = runner.home / "none"
        none.mkdir()
        for program in ("bash", "rm", "setpriv"):
            (none / program).symlink_to(f"/bin/{program}")
        for changed, message in (
            ({"RUNNER_OS": "Windows"}, "the native action runs on Linux and macOS, not on Windows"),
            ({"PATH": str(none)}, "neither uv nor Python 3.11 or newer"),
        ):
            succeeded, log, outputs = runner.run({}, variables(runner) | changed)
            assert (succeeded, outputs["verdict"], list(runner.steps)) == (False, "error", ["prepare"]), log
            assert f"::error title=agenteval::{message}" in log


ECHO_AGENT = """
const key = process.env.SHOP_KEY
console.error(key)
console.log(key + " " + Buffer.from(key).toString("base64"))
"""
KEY = "sk-native-0123456789abcdef"


def test_no_secret_is_in_outputs_summary_or_log(wheel: Path) -> None:
    with open_folder() as folder:
        runner = machine(folder, wheel, root=False, programs=["node", "uv"])
        (runner.workspace / "agent.js").write_text(ECHO_AGENT, encoding="utf-8")
        write_suite(runner.workspace, [case("a", KEY)], agent={"command": ["node", "agent.js"]})
        with (runner.workspace / "agenteval.yaml").open("a", encoding="utf-8") as config:
            config.write("pass_env: [SHOP_KEY]\n")
        # A person has put the key into inputs, where no secret belongs.
        inputs = {
            "baseline": "none",
            "github-token": TOKEN,
            "check-name": KEY,
            "report-dir": "out",
            "job": f'["", "{KEY}", null]',
        }

        succeeded, log, outputs = runner.run(inputs, variables(runner) | {"SHOP_KEY": KEY})

        # A failed gate fails the step.
        assert (succeeded, outputs["verdict"], outputs["failed"]) == (False, "failed", "1"), log
        forms = (KEY, b64encode(KEY.encode()).decode(), TOKEN)
        files = [*(runner.workspace / "out").iterdir(), runner.home / "files" / "GITHUB_STEP_SUMMARY"]
        written = {"log": log, "outputs": f"{outputs}", "steps": f"{runner.steps}"}
        written |= {file.name: file.read_text(encoding="utf-8") for file in files}
        assert "***" in written["GITHUB_STEP_SUMMARY"]
        assert [(name, form) for name, text in written.items() for form in forms if form in text] == []


def test_it_is_the_action_but_for_how_it_runs() -> None:
    container: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

    assert ACTION["inputs"] == container["inputs"]
    assert {name: entry["description"] for name, entry in ACTION["outputs"].items()} == {
        name: entry["description"] for name, entry in container["outputs"].items()
    }
    steps = ACTION["runs"]["steps"]
    # An expression in a command would let its value change the command.
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    for step in steps:
        if "agenteval action" in step.get("run", ""):
            given = {value for name, value in step["env"].items() if name.startswith("INPUT_")}
            assert given == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
