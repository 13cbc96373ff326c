"""The control in the action: a shallow checkout of a pull request, whose agents run as separate users."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.git_server import GitServer, commit, git, serving_git
from tests.support import Ended, agenteval, case, environment, open_folder, results_in, write_suite

from agenteval.compare.regression.settings import GateSettings

TOKEN = "ghs_0123456789abcdef"
AUTHORIZATION = f"Basic {b64encode(f'x-access-token:{TOKEN}'.encode()).decode()}"
CASES = 12
# As agent.py of a commit.
AGENT = """
import json, os, sys
request = json.load(sys.stdin)
line = {{"case": request["case"], "session": request["session"], "run": os.environ.get("AGENTEVAL_SESSION"),
        "uid": os.getuid(), "directory": os.getcwd(), "version": {version!r}}}
with open(os.path.join({log!r}, "order"), "a") as file:
    file.write(json.dumps(line) + "\\n")
print(request["input"] if {version!r} == "good" else "wrong")
"""


# Settings of the gate, inputs of the action, the sides that run, and what the reason contains.
Unavailable = tuple[dict[str, Any], dict[str, str], set[str], str]


@dataclass(frozen=True)
class Question:
    """One request that reached an agent."""

    case: str
    session: str
    run: str
    uid: int
    directory: str
    version: str

    @property
    def side(self) -> str:
        return next((side for side in ("current", "control") if f".{side}:" in self.session), "first")


@dataclass(frozen=True)
class PullRequest:
    """A pull request, and the machine of its job."""

    home: Path
    workspace: Path
    base: str
    head: str
    merge: str
    server: GitServer

    def event(self) -> dict[str, Any]:
        of = {"full_name": "org/bot"}
        return {
            "number": 7,
            "pull_request": {
                "number": 7,
                "head": {"sha": self.head, "repo": of},
                "base": {"ref": "main", "sha": self.base},
            },
            "repository": of,
        }

    def run(self, **inputs: str) -> Ended:
        """Run the action as the job does."""
        (self.home / "event.json").write_text(json.dumps(self.event()), encoding="utf-8")
        (self.home / "log" / "order").write_text("", encoding="utf-8")
        (self.home / "log" / "order").chmod(0o666)
        given = {"github-token": TOKEN, "baseline": "base.json", "comment": "never", "concurrency": "1", **inputs}
        env = environment(
            GITHUB_ACTIONS="true",
            GITHUB_WORKSPACE=str(self.workspace),
            GITHUB_EVENT_NAME="pull_request",
            GITHUB_EVENT_PATH=str(self.home / "event.json"),
            GITHUB_REPOSITORY="org/bot",
            GITHUB_SHA=self.merge,
            GITHUB_REF="refs/pull/7/merge",
            GITHUB_BASE_REF="main",
            GITHUB_SERVER_URL=self.server.url,
            GITHUB_API_URL="http://127.0.0.1:1",
            PATH=f"{Path(shutil.which('python3') or '').parent}:/usr/bin:/bin" if os.geteuid() else "/usr/bin:/bin",
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
        )
        return agenteval("action", cwd=self.home, env=env)

    def asked(self) -> Sequence[Question]:
        lines = (self.home / "log" / "order").read_text(encoding="utf-8").splitlines()
        return [Question(**json.loads(line)) for line in lines]


def write(folder: Path, log: Path, version: str, gate: dict[str, Any] | None = None) -> None:
    names = [f"c{number:02}" for number in range(CASES)]
    write_suite(folder, [case(name) for name in names], agent={"command": ["python3", "agent.py"]})
    (folder / "agent.py").write_text(AGENT.format(log=str(log), version=version), encoding="utf-8")
    settings = {
        "fail_on": ["regressions", "unproven"],
        "confirm": "against-base",
        "max_cases": 1,
        **(gate or {}),
    }
    (folder / "agenteval.yaml").write_text(yaml.safe_dump({"gate": settings}), encoding="utf-8")


def proposed(home: Path, server: GitServer, version: str, gate: dict[str, Any] | None = None) -> PullRequest:
    """A pull request whose agent is of a version, checked out with depth 1."""
    log, work, bare = home / "log", home / "work", home / "served" / "org" / "bot"
    for folder in (log, work):
        folder.mkdir()
    log.chmod(0o1777)
    (log / "order").touch()
    git(work, "init", "--quiet", "--initial-branch", "main")
    write(work, log, "good", gate)
    commit(work)
    git(work, "checkout", "--quiet", "-b", "feature")
    write(work, log, version, gate)
    head = commit(work)
    git(work, "checkout", "--quiet", "main")
    (work / "notes.txt").write_text("main goes on", encoding="utf-8")
    base = commit(work)
    ran = agenteval("run", "--quiet", "--out", str(home / "base"), cwd=work, env=environment())
    assert ran.status == 0, ran.text
    git(work, "checkout", "--quiet", "--detach", "main")
    git(work, "merge", "--quiet", "--no-edit", "feature")
    merge = git(work, "rev-parse", "HEAD")
    git(work, "update-ref", "refs/pull/7/merge", merge)
    git(home, "clone", "--quiet", "--mirror", f"file://{work}", str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    workspace = home / "workspace"
    workspace.mkdir()
    git(workspace, "init", "--quiet")
    git(workspace, "fetch", "--quiet", "--depth=1", f"file://{bare}", "refs/pull/7/merge")
    git(workspace, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    shutil.copy(home / "base" / "results.json", workspace / "base.json")
    return PullRequest(home, workspace, base, head, merge, server)


@pytest.fixture
def home() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture
def server(home: Path) -> Iterator[GitServer]:
    with serving_git(home / "served", AUTHORIZATION) as found:
        yield found


def test_a_regression_is_proven_beside_the_first_parent(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "bad")
    ended = pull_request.run()
    assert ended.status == 1, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert (comparison.verdict, comparison.stage) == ("regressed", "cases")
    assert comparison.control == pull_request.base
    asked = pull_request.asked()
    sides = {side: [item for item in asked if item.side == side] for side in ("first", "current", "control")}
    assert {item.version for item in sides["control"]} == {"good"}
    assert {item.version for item in sides["current"]} == {"bad"}
    assert len(sides["control"]) == len(sides["current"]) >= GateSettings().case_rounds[1]
    # Each run is a session of its own, for programs and for requests.
    runs = {side: {item.run for item in of_side} for side, of_side in sides.items()}
    assert not runs["first"] & runs["current"] | runs["current"] & runs["control"]
    assert len({item.session for item in asked}) == len(asked)
    # The control was fetched into a directory of its own, with the token, which is shown nowhere.
    assert set(server.asked) == {AUTHORIZATION}
    assert {Path(item.directory).parent.name.startswith("agenteval-control-") for item in sides["control"]} == {True}
    for path in (pull_request.workspace / "agenteval-report").rglob("*.*"):
        assert TOKEN not in path.read_text(encoding="utf-8")
    assert TOKEN not in ended.text
    if os.geteuid() == 0:
        (mine,), (theirs,) = ({item.uid for item in sides[side]} for side in ("current", "control"))
        assert len({0, mine, theirs}) == 3


def test_an_unchanged_agent_never_needs_the_control(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "good")
    ended = pull_request.run()
    assert ended.status == 0, ended.text
    assert {item.side for item in pull_request.asked()} == {"first"}


@pytest.mark.parametrize(
    "case_of",
    [
        ({"max_confirmation": {"calls": 2}}, {}, {"first"}, "0 were made, 3 more are needed"),
        ({"max_confirmation": {"calls": 11}}, {}, {"first", "current", "control"}, "`max_confirmation: {calls: 11}`"),
        (
            {},
            {"github-token": "ghs_another0123456789"},
            {"first", "current"},
            "without it, 3 earlier runs are needed, and there is 1",
        ),
    ],
)
def test_what_cannot_be_confirmed_is_told_in_one_line(home: Path, server: GitServer, case_of: Unavailable) -> None:
    gate, inputs, sides, said = case_of
    pull_request = proposed(home, server, "bad", gate)
    ended = pull_request.run(**inputs)
    assert ended.status == 3, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert (comparison.verdict, comparison.policy["confirmed"]) == ("unproven", False)
    assert said in comparison.policy["reason"]
    assert ("give the job `contents: read`" in comparison.policy["reason"]) is bool(inputs)
    assert "Traceback" not in ended.text
    assert {item.side for item in pull_request.asked()} == sides
