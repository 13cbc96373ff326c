"""``agenteval accept --run``: the results of a workflow run, against an independent emulation of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.git_server import commit, git
from tests.mistakes import shown
from tests.peers.github_actions import StoredRun, zipped
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY
from tests.peers.github_service import GithubService
from tests.support import Ended, agenteval, case, echo_agent, environment, open_folder, write_suite

pytestmark = pytest.mark.peer

FILE = ".agenteval/accepted.yaml"
REMOTE = f"https://github.com/{REPOSITORY}.git"


@dataclass
class Clone:
    """A clone of the repository, in which a run found a removed case."""

    github: GithubService
    folder: Path
    head: str
    results: bytes

    def uploaded(self, data: bytes | None = None, name: str = "agenteval", **details: Any) -> StoredRun:
        artifact = {key: details.pop(key) for key in ("expired", "digest") if key in details}
        named = {"branch": "feature", "event": "pull_request", **details}
        run = self.github.actions.run(REPOSITORY, self.head, **named)
        self.github.actions.artifact(run, name, zipped(self.results) if data is None else data, **artifact)
        return run

    def accept(self, run_id: int, *arguments: str, **variables: str) -> Ended:
        env = environment(**{"GITHUB_TOKEN": OWNER_TOKEN, "GITHUB_API_URL": self.github.url, **variables})
        asked = ("accept", "--run", str(run_id), "--reason", "no longer needed", *arguments)
        return agenteval(*asked, cwd=self.folder, env=env)


@pytest.fixture
def clone(github: GithubService) -> Iterator[Clone]:
    with open_folder() as folder:
        git(folder, "init", "--quiet", "--initial-branch", "main")
        git(folder, "remote", "add", "origin", REMOTE)
        (folder / ".gitignore").write_text("agenteval-report\nbase\n", encoding="utf-8")
        write_suite(folder, [case("a"), case("b")], agent=echo_agent(folder))
        commit(folder)
        assert agenteval("run", "--quiet", "--out", "base", cwd=folder, env=environment()).status == 0
        git(folder, "checkout", "--quiet", "-b", "feature")
        write_suite(folder, [case("a")], agent=echo_agent(folder))
        head = commit(folder)
        ran = agenteval("run", "--quiet", "--baseline", "base", cwd=folder, env=environment())
        assert ran.status == 1, ran.text
        report = folder / "agenteval-report"
        content = (report / "results.json").read_bytes()
        for path in report.iterdir():
            path.unlink()
        yield Clone(github, folder, head, content)


def test_the_results_of_a_run_are_accepted(clone: Clone) -> None:
    run = clone.uploaded()
    done = clone.accept(run.id)
    assert done.status == 0, done.text
    assert "accepted agent.yaml::b (removed)" in done.out
    assert (clone.folder / FILE).exists()
    assert not clone.github.proxy.called("GET", "/permission")


def test_the_repository_is_that_of_git(clone: Clone) -> None:
    run = clone.uploaded(b"not a zip file")
    # The newest artifact of a repeated run counts.
    clone.github.actions.artifact(run, "agenteval", zipped(clone.results))
    for remote in (
        f"https://user:secret@github.com/{REPOSITORY}",
        f"git@github.com:{REPOSITORY}.git",
        f"ssh://git@github.com:22/{REPOSITORY}.git",
    ):
        git(clone.folder, "remote", "set-url", "origin", remote)
        assert clone.accept(run.id, "b").status == 0, remote


def test_without_a_repository_no_request_is_made(clone: Clone) -> None:
    run = clone.uploaded()
    for remote in ("https://git.example/acme/widgets", "/tmp/widgets", "https://[bad", ""):
        change = ("set-url", "origin", remote) if remote else ("remove", "origin")
        git(clone.folder, "remote", *change)
        done = clone.accept(run.id)
        assert done.status == 2, done.text
        (mistake,) = shown(done.err)
        assert mistake.title == "the remote `origin` names no repository of github.com"
        assert " = help: name it: --repository OWNER/NAME\n" in mistake.text
    assert not clone.github.proxy.requests
    assert clone.accept(run.id, "--repository", REPOSITORY).status == 0


def _of_other_suites(clone: Clone) -> bytes:
    found = json.loads(clone.results)
    found["suites"][0]["path"] = "elsewhere/agent.yaml"
    return zipped(json.dumps(found).encode())


def _of_another_commit(clone: Clone) -> bytes:
    found = json.loads(clone.results)
    found["run"]["commit"] = "f" * 40
    return zipped(json.dumps(found).encode())


def test_what_cannot_be_accepted_is_said(clone: Clone) -> None:
    for run, said in (
        (clone.uploaded(name="other"), "has no artifact named agenteval: the workflow must upload"),
        (clone.uploaded(name="other", status="in_progress", conclusion=None), "has not ended yet"),
        (clone.uploaded(expired=True), "it has expired; run the workflow again"),
        (clone.uploaded(b"no zip file"), "cannot be used:"),
        (clone.uploaded(digest="sha256:" + "0" * 64), "its content does not match its digest"),
        (clone.uploaded(_of_another_commit(clone)), "its results are of another commit"),
        (clone.uploaded(_of_other_suites(clone)), "these are results of other suites: elsewhere/agent.yaml"),
    ):
        done = clone.accept(run.id)
        assert done.status == 2, done.text
        (mistake,) = shown(done.err)
        assert mistake.says(said), done.err
        assert OWNER_TOKEN not in done.text
        assert not (clone.folder / FILE).exists()


def test_an_unknown_run_and_a_missing_token(clone: Clone) -> None:
    done = clone.accept(77)
    assert (done.status, f"workflow run 77 is not in {REPOSITORY}" in done.err) == (2, True), done.text
    done = clone.accept(77, GITHUB_TOKEN="")
    assert (done.status, "a token is needed" in done.err) == (2, True), done.text
    for option in ("--artifact", "--repository"):
        done = agenteval("accept", option, "a/b", "--reason", "x", cwd=clone.folder, env=environment())
        assert (done.status, f"{option}: is for --run ID, which is not given" in done.err) == (2, True), done.text


def test_a_refused_token_is_a_failure_without_the_token(clone: Clone) -> None:
    run = clone.uploaded()
    token = "ghp_wrong000000000000000000000000000000"
    said = {"message": f"Bad credentials: {token}"}
    clone.github.proxy.fail("GET", "/actions/", status=401, body=json.dumps(said).encode())
    done = clone.accept(run.id, GITHUB_TOKEN="", GH_TOKEN=token)
    assert done.status == 3, done.text
    assert f"cannot read workflow run {run.id} of {REPOSITORY}" in done.err
    assert token not in done.text
