"""The control in the action: a shallow checkout of a pull request, whose agents run as separate users."""

from __future__ import annotations

import json
import os
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.git_server import GitServer, commit, git, mirror_pull_request, serving_git
from tests.support import Ended, agenteval, case, environment, open_folder, results_in, write_suite

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
if {version!r} == "broken":
    raise SystemExit("no model answers")
print(request["input"] if {version!r} == "good" else "wrong")
"""


@dataclass(frozen=True)
class Question:
    """One request that reached an agent."""

    case: str
    session: str
    run: str
    uid: int
    directory: str
    version: str

    number: int

    @property
    def side(self) -> str:
        if "agenteval-control-" in self.directory:
            return "control"
        # One case is asked at a time, and the first run comes first.
        return "first" if self.number < CASES else "current"


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

    def run(self, inputs: Mapping[str, str] | None = None, **variables: str) -> Ended:
        """Run the action as the job does."""
        (self.home / "event.json").write_text(json.dumps(self.event()), encoding="utf-8")
        (self.home / "log" / "order").write_text("", encoding="utf-8")
        (self.home / "log" / "order").chmod(0o666)
        given = {
            "github-token": TOKEN,
            "baseline": "base.json",
            "comment": "never",
            **(inputs or {}),
        }
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
            PATH=f"{Path(shutil.which('python3') or '').parent}:/usr/bin:/bin" if os.geteuid() else "/usr/bin:/bin",
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
            **{"GITHUB_API_URL": f"{self.server.url}/api/v3", **variables},
        )
        return agenteval("action", cwd=self.home, env=env)

    def asked(self) -> Sequence[Question]:
        lines = (self.home / "log" / "order").read_text(encoding="utf-8").splitlines()
        return [Question(**json.loads(line), number=number) for number, line in enumerate(lines)]


def write(folder: Path, log: Path, version: str, gate: dict[str, Any] | None = None) -> None:
    names = [f"c{number:02}" for number in range(CASES)]
    write_suite(folder, [case(name) for name in names], agent={"command": ["python3", "agent.py"]})
    (folder / "agent.py").write_text(AGENT.format(log=str(log), version=version), encoding="utf-8")
    settings = {"fail_on": ["regressions", "unproven"], **(gate or {})}
    (folder / "agenteval.yaml").write_text(yaml.safe_dump({"gate": settings, "concurrency": 1}), encoding="utf-8")


def proposed(
    home: Path,
    server: GitServer,
    version: str,
    gate: dict[str, Any] | None = None,
    change: Callable[[Path], None] = lambda _: None,
    *,
    base_version: str = "good",
) -> PullRequest:
    """A pull request whose agent is of a version, with another change, checked out with depth 1."""
    log, work, bare = home / "log", home / "work", home / "served" / "org" / "bot"
    for folder in (log, work):
        folder.mkdir()
    log.chmod(0o1777)
    (log / "order").touch()
    git(work, "init", "--quiet", "--initial-branch", "main")
    write(work, log, base_version, gate)
    commit(work)
    git(work, "checkout", "--quiet", "-b", "feature")
    write(work, log, version, gate)
    change(work)
    head = commit(work)
    git(work, "checkout", "--quiet", "main")
    (work / "notes.txt").write_text("main goes on", encoding="utf-8")
    base = commit(work)
    ran = agenteval("run", "--quiet", "--out", str(home / "base"), cwd=work, env=environment())
    assert (ran.status == 0) is (base_version == "good"), ran.text
    merge = mirror_pull_request(work, bare)
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


def test_a_merged_run_is_proven_in_shards_by_later_jobs(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "bad", {"pairs": 4})
    for index in (1, 2):
        ended = pull_request.run({"shard": f"{index}/2", "report-dir": f"agenteval-shards/{index}"})
        assert ended.status == 0, ended.text
    ended = pull_request.run({"mode": "gate", "report-dir": "merged"}, GITHUB_OUTPUT=str(home / "outputs"))
    assert ended.status == 3, ended.text
    assert re.search(r"(?m)^prove<<(.*)\ntrue\n\1$", (home / "outputs").read_text(encoding="utf-8"))
    for index in (1, 2):
        part = {"mode": "prove", "suite": "merged", "shard": f"{index}/2", "report-dir": f"proof/{index}"}
        ended = pull_request.run(part)
        assert ended.status == 0, ended.text
        assert {item.version for item in pull_request.asked()} == {"bad", "good"}
    ended = pull_request.run({"mode": "prove", "suite": "proof"})
    assert (ended.status, "mode prove is for one run, and there are 2" in ended.text) == (2, True), ended.text
    ended = pull_request.run({"mode": "gate", "suite": "proof"})
    assert ended.status == 1, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert (comparison.state, comparison.base_sha) == ("proven", pull_request.base)


@pytest.mark.long
def test_a_regression_is_proven_beside_the_first_parent(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "bad")
    ended = pull_request.run()
    assert ended.status == 1, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert (comparison.state, comparison.stage) == ("proven", "beside")
    assert comparison.base_sha == pull_request.base
    asked = pull_request.asked()
    sides = {side: [item for item in asked if item.side == side] for side in ("first", "current", "control")}
    assert {item.version for item in sides["control"]} == {"good"}
    assert {item.version for item in sides["current"]} == {"bad"}
    assert len(sides["current"]) > len(sides["control"]) >= comparison.pairs
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


def test_what_cannot_be_proven_is_told_in_one_line(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "bad")
    ended = pull_request.run({"github-token": "ghs_another0123456789"})
    assert ended.status == 3, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert comparison.state == "unproven"
    assert "contents: read" in comparison.why
    assert "Traceback" not in ended.text
    assert {item.side for item in pull_request.asked()} == {"first", "current"}


@pytest.mark.long
def test_a_base_commit_whose_setup_fails_is_told_with_the_command(home: Path, server: GitServer) -> None:
    def with_requirements(folder: Path) -> None:
        (folder / "requirements.txt").write_text("", encoding="utf-8")

    pull_request = proposed(home, server, "bad", change=with_requirements)
    ended = pull_request.run({"setup": "test -e requirements.txt"})
    assert ended.status == 3, ended.text
    comparison = results_in(pull_request.workspace).comparison
    assert comparison is not None
    assert comparison.state == "unproven"
    said = "the requirements of the base commit cannot be installed: setup: line 1, `test -e requirements.txt`"
    assert said in comparison.why
    assert {item.side for item in pull_request.asked()} == {"first", "current"}


# The first pull request of a repository: GitHub knows no run of the base branch


WORKFLOW = {"GITHUB_WORKFLOW_REF": "org/bot/.github/workflows/agenteval.yml@refs/pull/7/merge"}


@pytest.mark.long
@pytest.mark.parametrize(("version", "status"), [("good", 0), ("bad", 1)])
def test_without_a_baseline_the_base_commits_agent_makes_it(
    home: Path, server: GitServer, nothing_there: str, version: str, status: int
) -> None:
    pull_request = proposed(home, server, version, {"on_missing_baseline": "fail"})
    ended = pull_request.run({"baseline": "auto"}, GITHUB_API_URL=nothing_there, **WORKFLOW)
    assert ended.status == status, ended.text
    results = results_in(pull_request.workspace)
    comparison = results.comparison
    assert comparison is not None
    assert comparison.state == ("proven" if status else "clear")
    assert (comparison.baseline.commit, comparison.baseline.ref) == (pull_request.base, "refs/heads/main")
    (note,) = (note for note in comparison.notes if "this is the baseline" in note)
    assert f"so the suite ran once at the base commit {pull_request.base[:7]} ({CASES} calls)" in note
    asked = pull_request.asked()
    assert [item.version for item in asked if item.side == "control"][:CASES] == ["good"] * CASES
    assert comparison.cost is None or comparison.cost.calls == len(asked) - 2 * CASES
    assert len({item.session for item in asked}) == len(asked)


@pytest.mark.long
@pytest.mark.parametrize(("on_missing", "status"), [("warn", 0), ("fail", 3)])
def test_a_base_commits_agent_that_answers_nothing_is_no_baseline(
    home: Path, server: GitServer, nothing_there: str, on_missing: str, status: int
) -> None:
    pull_request = proposed(home, server, "good", {"on_missing_baseline": on_missing}, base_version="broken")
    ended = pull_request.run({"baseline": "auto"}, GITHUB_API_URL=nothing_there, **WORKFLOW)
    assert ended.status == status, ended.text
    assert (
        f"cannot make a baseline: none of its cases was evaluated: of {CASES}, {CASES} ended in an error: "
        in ended.text
    )
    assert "this is the baseline" not in ended.text


def test_whoever_wants_no_baseline_pays_for_none(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "good")
    ended = pull_request.run({"baseline": "none"})
    assert ended.status == 0, ended.text
    assert {item.side for item in pull_request.asked()} == {"first"}


def that_passes_everything(folder: Path) -> None:
    """Loosen the suite, its grader and the gate."""
    suite = yaml.safe_load((folder / "agent.yaml").read_text(encoding="utf-8"))
    suite["evaluations"] = {"metrics": [{"type": "code", "name": "graded", "grader": "grader:check"}]}
    suite["test_cases"][0]["ground_truth"] = "wrong"
    (folder / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    (folder / "grader.py").write_text("def check(context):\n    return True\n", encoding="utf-8")
    (folder / "agenteval.yaml").write_text(yaml.safe_dump({"gate": {"fail_on": "none"}}), encoding="utf-8")


def test_a_base_commit_that_cannot_be_fetched_leaves_no_rules_to_the_change(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "good", change=that_passes_everything)
    ended = pull_request.run({"github-token": "ghs_another0123456789"})
    assert ended.status in {1, 3}, ended.text
    results = results_in(pull_request.workspace)
    assert results.gate is not None
    assert results.gate.verdict == "unproven"
    assert any("give the job `contents: read`" in reason for reason in results.gate.reasons)


@pytest.mark.long
def test_a_pull_request_cannot_loosen_the_rules_that_judge_it(home: Path, server: GitServer) -> None:
    pull_request = proposed(home, server, "bad", change=that_passes_everything)
    ended = pull_request.run()
    assert ended.status == 1, ended.text
    results = results_in(pull_request.workspace)
    assert results.comparison is not None
    assert results.comparison.state == "proven"
    # The base's version of each case failed; the edited one passes with the grader that the change brings.
    statuses = {found.name: found.status for _, found in results.cases()}
    assert {name for name, status in statuses.items() if status == "passed"} == {"c00 (edited)"}
    listed = {(item.kind, item.metric, item.setting) for item in results.run.integrity}
    assert {
        ("metric", "equality", None),
        ("edited", None, "ground_truth"),
        ("setting", None, "gate.fail_on"),
    } <= listed
