"""The proxy itself: its answers are GitHub's, and it breaks only what it is told to."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from requests import Response
from tests.peers.github_actions import StoredRun
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY, STRANGER_TOKEN
from tests.peers.github_service import GithubService
from tests.peers.openapi import Description

from agenteval.github.client import USER_AGENT

pytestmark = pytest.mark.peer

_SHA = "a" * 40
_ACTIONS = f"/repos/{REPOSITORY}/actions"


def _get(github: GithubService, path: str, **headers: str) -> Response:
    url = path if "://" in path else f"{github.url}{path}"
    sent = {"User-Agent": USER_AGENT, "Authorization": f"Bearer {OWNER_TOKEN}", **headers}
    return requests.get(url, headers=sent, timeout=10, allow_redirects=False)


def _runs(github: GithubService, query: str, workflow: str = "agenteval.yml") -> list[int]:
    answer = _get(github, f"{_ACTIONS}/workflows/{workflow}/runs?{query}").json()
    return [run["id"] for run in answer["workflow_runs"]]


def _fill(github: GithubService) -> StoredRun:
    run = github.actions.run(REPOSITORY, _SHA)
    github.actions.artifact(run, "agenteval", b"data")
    github.actions.artifact(run, "other", b"data", digest=None, expired=True)
    github.actions.run(REPOSITORY, "b" * 40, head_repository="mallory/widgets", event="pull_request", conclusion=None)
    return run


def test_answers_are_as_github_describes_them(github: GithubService) -> None:
    run = _fill(github)
    artifact, expired = github.actions.artifacts
    for path, status in {
        "/runs": 200,
        "/runs?branch=main&event=push&status=success&per_page=1": 200,
        "/workflows/agenteval.yml/runs?branch=main&head_sha=" + _SHA: 200,
        f"/runs/{run.id}": 200,
        f"/runs/{run.id}/artifacts?name=agenteval": 200,
        f"/artifacts/{artifact.id}/zip": 302,
        f"/artifacts/{expired.id}/zip": 410,
    }.items():
        answer = _get(github, f"{_ACTIONS}{path}")

        assert answer.status_code == status
        route = urlsplit(answer.url).path
        assert Description.load().answer_violations("GET", route, status, answer.text) == [], path


def test_the_check_of_answers_finds_what_is_wrong(github: GithubService) -> None:
    run = _fill(github)
    answer = github.actions.run_json(run) | {"event": 7}

    found = Description.load().answer_violations("GET", f"{_ACTIONS}/runs/{run.id}", 200, json.dumps(answer))

    assert found == ["GET /repos/{owner}/{repo}/actions/runs/{run_id}: 200: $.event: 7 is not of type 'string'"]


def test_runs_are_filtered_as_documented(github: GithubService) -> None:
    actions = github.actions
    push = actions.run(REPOSITORY, "1" * 40).id
    failed = actions.run(REPOSITORY, "2" * 40, conclusion="failure", event="schedule").id
    branch = actions.run(REPOSITORY, "1" * 40, branch="next", status="in_progress", conclusion=None).id
    # A pull request from a fork whose head branch is called main.
    fork = actions.run(REPOSITORY, "3" * 40, event="pull_request", head_repository="mallory/widgets").id
    other = actions.run(REPOSITORY, "1" * 40, workflow=".github/workflows/other.yml").id
    actions.run("acme/elsewhere", "1" * 40)

    assert _runs(github, "") == [fork, branch, failed, push]
    assert _runs(github, "branch=main") == [fork, failed, push]
    assert _runs(github, "branch=main&event=push") == [push]
    assert _runs(github, "head_sha=" + "1" * 40) == [branch, push]
    assert _runs(github, "status=completed") == [fork, failed, push]
    assert _runs(github, "status=failure") == [failed]
    assert _runs(github, "status=in_progress") == [branch]
    assert _runs(github, "", "other.yml") == [other]
    assert _get(github, f"{_ACTIONS}/workflows/unknown.yml/runs").status_code == 404


def test_the_blob_store_refuses_tokens(github: GithubService) -> None:
    _fill(github)
    artifact = github.actions.artifacts[0]
    location = _get(github, f"{_ACTIONS}/artifacts/{artifact.id}/zip").headers["Location"]

    assert urlsplit(location).hostname != urlsplit(github.url).hostname
    assert _get(github, location).status_code == 400
    assert requests.get(location, timeout=10).content == artifact.data
    assert requests.get(location.replace("localhost", "127.0.0.1"), timeout=10).status_code == 403


def test_requests_are_recorded_without_the_token(github: GithubService) -> None:
    _get(github, f"/repos/{REPOSITORY}/branches/main")
    requests.get(f"{github.url}/user", headers={"Authorization": f"Bearer {OWNER_TOKEN}"}, timeout=10)

    [request] = github.proxy.requests
    assert (request.method, request.route, request.authorization) == (
        "GET",
        f"/repos/{REPOSITORY}/branches/main",
        "***",
    )
    assert OWNER_TOKEN not in repr(request) + repr(request.headers)


def test_pull_requests_of_a_commit(github: GithubService) -> None:
    pull = github.emulator.pull_request()
    github.emulator.pull_request()
    closed = github.emulator.pull_request()
    closed.edit(state="closed")

    found = _get(github, f"/repos/{REPOSITORY}/commits/{pull.head.sha}/pulls").json()

    assert [item["number"] for item in found] == [pull.number]
    assert _get(github, f"/repos/{REPOSITORY}/commits/{closed.head.sha}/pulls").json() == []


def _authorship(github: GithubService, ids: list[str], token: str = OWNER_TOKEN) -> Any:
    question = {
        "query": "query($ids: [ID!]!) { nodes(ids: $ids) { ... } } # viewerDidAuthor",
        "variables": {"ids": ids},
    }
    sent = {"User-Agent": USER_AGENT, "Authorization": f"Bearer {token}"}
    return requests.post(f"{github.url}/graphql", data=json.dumps(question), headers=sent, timeout=10).json()


def test_graphql_knows_who_wrote_a_comment(github: GithubService) -> None:
    number = github.emulator.pull_request().number
    job = github.emulator.installation_token(pull_requests="write", contents="read")
    _get(github, f"/repos/{REPOSITORY}/pulls/{number}")

    def written_by(token: str) -> str:
        pull = github.emulator.api(token).get_repo(REPOSITORY).get_pull(number)
        return pull.create_issue_comment("text").node_id

    ids = [written_by(token) for token in (OWNER_TOKEN, STRANGER_TOKEN, job)]

    for place, token in enumerate((OWNER_TOKEN, STRANGER_TOKEN, job)):
        nodes = _authorship(github, ids, token)["data"]["nodes"]
        assert [node["viewerDidAuthor"] for node in nodes] == [place == other for other in range(3)]


def test_faults_come_in_order_and_are_used_up(github: GithubService) -> None:
    path = f"/repos/{REPOSITORY}/branches/main"
    after = {"Retry-After": "7"}
    github.proxy.fail("GET", "/branches/", status=502)
    github.proxy.fail("GET", "/branches/", times=2, status=429, headers=after, body={"message": "slow"})
    github.proxy.fail("POST", "/branches/", status=500)

    answers = [_get(github, path) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [502, 429, 429, 200]
    assert answers[1].headers["Retry-After"] == "7"
    assert answers[1].json() == {"message": "slow"}

    github.proxy.fail("GET", "/branches/", reset=True)
    github.proxy.fail("GET", "/branches/", truncate=True)
    with pytest.raises(requests.ConnectionError, match="reset"):
        _get(github, path)
    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
        _get(github, path)


def test_a_lost_answer_has_written_all_the_same(github: GithubService) -> None:
    pull = github.emulator.pull_request()
    github.proxy.fail("POST", "/comments", after_write=True)
    sent = {"User-Agent": USER_AGENT, "Authorization": f"Bearer {OWNER_TOKEN}"}
    url = f"{github.url}/repos/{REPOSITORY}/issues/{pull.number}/comments"

    assert requests.post(url, data='{"body": "text"}', headers=sent, timeout=10).status_code == 502
    assert [comment.body for comment in pull.get_issue_comments()] == ["text"]
