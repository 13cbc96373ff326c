"""Which artifact becomes the baseline, against an independent emulation of GitHub."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.peers.baselines import LIMITS, Project, results
from tests.peers.github_actions import BLOB_HOST, zipped
from tests.peers.github_emulator import OWNER_TOKEN
from tests.peers.github_service import GithubService

from agenteval.github.artifacts import ArtifactLimits
from agenteval.github.baseline import SearchLimits
from agenteval.results.model import Coverage, Results, RunShard

pytestmark = pytest.mark.peer


@pytest.fixture
def project(github: GithubService) -> Project:
    return Project.create(github)


def test_the_merge_base_has_one(project: Project) -> None:
    run = project.run(project.commits[0])
    artifact = project.artifact(run)
    for commit in (*project.later, *project.commits[1:]):
        project.artifact(project.run(commit))

    found = project.found()

    assert (found.commit, found.run_id, found.distance) == (project.commits[0], run.id, 0)
    assert found.created_at == run.created_at
    assert found.results == results(project.commits[0])
    assert found.notes == ()
    # Few questions are asked.
    asked = [f"{request.method} {urlsplit(request.path).path}" for request in project.github.proxy.requests]
    repository = f"GET /repos/{project.history.name}"
    assert asked == [
        f"{repository}/actions/workflows/agenteval.yml/runs",
        f"{repository}/actions/runs/{run.id}/artifacts",
        f"{repository}/actions/artifacts/{artifact.id}/zip",
        f"GET /_blob/{artifact.id}",
    ]


def test_no_number_of_commits_is_too_far(github: GithubService) -> None:
    project = Project.create(github, length=102)
    project.artifact(project.run(project.commits[101]))
    # A forced push has removed these from the branch.
    for commit in project.history.chain(project.history.root, 3):
        project.artifact(project.run(commit))
    project.artifact(project.run("f" * 40))

    found = project.found()

    # GitHub's list of commits names 100 states of the branch; beyond them, GitHub compares two commits.
    assert (found.commit, found.distance, found.between) == (project.commits[101], 101, ())
    assert len(github.proxy.called("GET", "/compare/")) == 5


def test_the_requests_of_a_search_are_bounded(project: Project) -> None:
    for number in range(40):
        project.run(f"{number:040x}")

    outcome = project.missing(limits=SearchLimits(artifact=LIMITS.artifact, requests=20))

    [note] = outcome.notes
    assert note == "the search ended after 20 requests to GitHub, its limit; name a run with the input baseline"
    assert len(project.github.proxy.requests) == 20


def test_the_newest_run_and_its_newest_artifact_count(project: Project) -> None:
    project.artifact(project.run(project.commits[2]))
    newest = project.run(project.commits[2], event="schedule")
    project.artifact(newest, zipped(results(newest.head_sha, run_id="first").model_dump_json().encode()))
    again = zipped(results(newest.head_sha, run_id="again").model_dump_json().encode(), "report/results.json")
    project.artifact(newest, again, digest=None)

    found = project.found()
    assert (found.run_id, found.results.run.id) == (newest.id, "again")

    # A merge queue speaks for the branch.
    branch = f"gh-readonly-queue/main/pr-7-{project.commits[2]}"
    project.artifact(project.run(project.commits[1], event="merge_group", branch=branch))
    assert project.found().distance == 1


def _changed(**run: Any) -> Results:
    """Results that are good but for what is changed about their run."""
    good = results(None)
    return good.model_copy(update={"run": good.run.model_copy(update=run)})


def _counted(**summary: int) -> Results:
    good = results(None)
    return good.model_copy(update={"summary": good.summary.model_copy(update=summary)})


def _covered(**coverage: Any) -> Results:
    whole = {"cases": 2, "selected": 2, "finished": 2}
    return _changed(coverage=Coverage.model_validate(whole | coverage))


_OF_OTHER_SUITES = results(None, run_id="of other suites")
# Who can make such a run, or of what it is: the details of the run.
NEVER_LISTED: Mapping[str, dict[str, Any]] = {
    # Whoever forks the repository has a branch main, and decides what is on it.
    "a pull request of a fork": {"event": "pull_request", "head_repository": "mallory/widgets"},
    "secrets and a fork": {"event": "pull_request_target", "head_repository": "mallory/widgets"},
    "a pull request": {"event": "pull_request"},
    "a second stage": {"event": "workflow_run"},
    "a comment": {"event": "issue_comment"},
    "a dispatch of another program": {"event": "repository_dispatch"},
    "a release": {"event": "release"},
    "a check": {"event": "check_run"},
    "a push to a fork": {"event": "push", "head_repository": "mallory/widgets"},
    "a push to a fork that was deleted": {"event": "push", "head_repository": None},
    "another branch": {"event": "push", "branch": "feature"},
    "the queue of another branch": {"event": "merge_group", "branch": "gh-readonly-queue/next/pr-7"},
    "a branch that is no queue": {"event": "merge_group", "branch": "feature"},
    "another workflow": {"workflow": ".github/workflows/other.yml"},
    "a workflow of another folder": {"workflow": "vendored/agenteval.yml"},
}
# What is wrong with the results, and what is said of it.
NEVER_TAKEN: Mapping[str, tuple[Results, str]] = {
    "another commit was checked out": (_changed(commit="f" * 40), "its results are of another commit"),
    "filtered": (_covered(filter="hello", selected=1, finished=1), "it is partial: "),
    "tagged": (_covered(tags=["fast"], selected=1, finished=1), "it is partial: "),
    "a shard": (_changed(shard=RunShard(index=1, count=2, cases=["a", "b"])), "it is shard 1 of 2 of a run"),
    "interrupted": (_covered(ended_by="signal"), "it was interrupted"),
    "out of time": (_covered(ended_by="time", finished=1), "its time limit was reached"),
    "out of budget": (_covered(ended_by="budget", finished=1), "its budget of model calls ended"),
    "incomplete": (_changed(complete=False), "its evaluation was not complete"),
    "red with errors alone": (_counted(passed=0, errors=1), "none of its cases was evaluated"),
    "mostly errors": (_counted(cases=3, errors=2), "most of its cases were not evaluated"),
    "all skipped": (_counted(passed=0, skipped=1), "none of its cases was evaluated"),
    "empty": (_counted(cases=0, passed=0), "it contains no case"),
    "other suites": (_OF_OTHER_SUITES, "it is of other suites"),
}


def test_what_is_never_a_baseline(project: Project) -> None:
    def accept(found: Results) -> str | None:
        return "it is of other suites" if found.run.id == _OF_OTHER_SUITES.run.id else None

    good = project.run(project.commits[2])
    project.artifact(good)
    own = project.run(project.commits[0])
    unlisted = [own, *(project.run(project.commits[0], **details) for details in NEVER_LISTED.values())]
    # A branch before it was replaced, and a group that left the queue.
    gone = project.history.chain(project.commits[1], 2)
    unlisted.append(project.run(gone[0]))
    unlisted.append(project.run(gone[1], event="merge_group", branch="gh-readonly-queue/main/pr-7"))
    for run in unlisted:
        project.artifact(run)
    for bad, _ in NEVER_TAKEN.values():
        project.artifact(project.run(project.commits[0]), zipped(bad.model_dump_json().encode()))

    found = project.found(accept=accept, own_run=str(own.id))

    assert found.run_id == good.id
    reasons = [note.partition(" cannot be used: ")[2] for note in reversed(found.notes)]
    table = zip(NEVER_TAKEN.items(), reasons, strict=True)
    assert [name for (name, (_, expected)), said in table if not said.startswith(expected)] == []
    # Nothing was asked of the runs that do not count.
    for run in unlisted:
        assert not project.github.proxy.called("GET", f"/runs/{run.id}/artifacts"), run


def test_what_cannot_be_used_is_passed_over(project: Project) -> None:
    large = random.Random(1).randbytes(4096)
    # The content of the zip file, or the file itself; what else is wrong; and what is said of it.
    rows: list[tuple[bytes | None, dict[str, Any], str]] = [
        (None, {"expired": True}, "it has expired"),
        (b"no zip", {}, "it is not a valid zip file"),
        (zipped(b"{}")[:-40], {}, "it is not a valid zip file"),
        (zipped(b"{}", "report.json"), {}, "there is no results.json in it"),
        (zipped(b"{"), {}, "results.json:1: not valid JSON"),
        (zipped(b"{}"), {}, "results.json: not a results file of agenteval (it has no schema_version)"),
        (zipped(b'{"schema_version": 99}'), {}, "written by a newer agenteval (schema_version 99, this one reads 3)"),
        (zipped(b'{"schema_version": 3}'), {}, "results.json: tool: not a results file of agenteval"),
        (zipped(large), {}, "it is larger than 4,000 bytes; upload results.json without the other reports"),
        (None, {"digest": "sha256:" + "0" * 64}, "its content does not match its digest"),
    ]
    bad = []
    for data, details, _ in rows:
        bad.append(project.run(project.commits[0]))
        project.artifact(bad[-1], data, **details)
    project.artifact(project.run(project.commits[2]))

    found = project.found(limits=SearchLimits(artifact=ArtifactLimits(size=4000, pauses_s=())))

    assert found.commit == project.commits[2]
    commit = project.commits[0][:7]
    for run, (*_, reason), note in zip(bad[::-1], rows[::-1], found.notes, strict=True):
        assert note.startswith(f"artifact agenteval of workflow run {run.id} (commit {commit}) cannot be used: ")
        assert reason in note


def test_a_pull_request_on_top_of_another_one_is_compared_with_the_default_branch(project: Project) -> None:
    of_main = project.run(project.commits[1])
    project.artifact(of_main)

    assert project.found(base_branch="change-1", default_branch="main").run_id == of_main.id
    assert project.missing(base_branch="change-1").reason.startswith("agenteval.yml has not run on change-1 yet")


def test_downloads_are_bounded(project: Project) -> None:
    limits = SearchLimits(artifact=LIMITS.artifact, downloads=2)
    run = project.run(project.commits[0])
    for _ in range(5):
        project.artifact(run, b"broken")
    project.missing(limits=limits)
    assert len(project.github.proxy.called("GET", "/zip$")) == 2

    project.github.proxy.forget()
    for commit in project.commits:
        project.artifact(project.run(commit), b"broken")
    outcome = project.missing(limits=limits)
    assert outcome.notes[-1] == "the search ended after 2 downloads, its limit; name a run with the input baseline"
    assert len(project.github.proxy.called("GET", "/zip$")) == 2


def test_more_runs_than_one_page_shows(project: Project) -> None:
    project.artifact(project.run(project.commits[1]))
    for _ in range(150):
        project.artifact(project.run(project.later[0]))

    assert project.found().commit == project.commits[1]
    pages = project.github.proxy.called("GET", "/runs[?].*event=push")
    assert len(pages) == 2


def test_other_runs_cannot_crowd_out_the_branch(project: Project) -> None:
    project.artifact(project.run(project.commits[0]))
    for number in range(250):
        project.run(project.later[0])
        project.run(f"{number:040x}", event="pull_request", head_repository="mallory/widgets")

    assert project.found().commit == project.commits[0]
    assert len(project.github.proxy.called("GET", "/runs[?]")) == 1
    assert not project.github.proxy.called("GET", "/compare/")


def test_another_base_branch_with_a_slash(project: Project) -> None:
    project.history.branch("release/1.x", project.later[-1])
    project.artifact(project.run(project.commits[0]))
    run = project.run(project.commits[1], branch="release/1.x")
    project.artifact(run)

    assert project.found(base_branch="release/1.x").run_id == run.id


def test_a_given_run_is_taken_whatever_its_event(project: Project) -> None:
    run = project.run(project.head, event="pull_request", branch="feature", workflow=".github/workflows/other.yml")
    project.artifact(run)
    project.artifact(project.run(project.commits[0]))

    found = project.found(start=run.id)

    assert (found.commit, found.run_id, found.distance) == (project.head, run.id, None)
    assert len(project.github.proxy.called("GET", "/actions/")) == 3


def test_the_blob_store_never_gets_the_token(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"default login x password {OWNER_TOKEN}\n")
    monkeypatch.setenv("NETRC", str(netrc))
    project.artifact(project.run(project.commits[0]))
    proxy = project.github.proxy
    [artifact] = project.github.actions.artifacts
    # Back to the very host of the API, and from there to the store.
    onwards = {"Location": f"http://{BLOB_HOST}:{proxy.port}/_blob/{artifact.id}?sig=signed"}
    back = {"Location": f"{proxy.url}/_onwards"}
    proxy.fail("GET", "/_blob/", status=302, headers=back, body=b"")
    proxy.fail("GET", "/_onwards", status=302, headers=onwards, body=b"")

    project.found()

    api = [request for request in proxy.requests if request.host != BLOB_HOST and request.route != "/_onwards"]
    others = [request for request in proxy.requests if request not in api]
    assert [request.authorization for request in api] == ["***"] * len(api)
    assert [request.route for request in others] == [f"/_blob/{artifact.id}", "/_onwards", f"/_blob/{artifact.id}"]
    assert [request.authorization for request in others] == [""] * 3
    assert all("ghp_" not in str(request.headers) for request in others)
    proxy.forget()  # the detour is no request to GitHub's API
