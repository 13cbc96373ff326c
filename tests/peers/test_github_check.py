"""The check run against an independent emulation of GitHub, each request checked against GitHub's own description.

Where the emulator is laxer than GitHub (it replaces annotations instead of adding them, and takes any number of
them), the requests are looked at instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from github.CheckRun import CheckRun as KeptCheckRun
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY
from tests.peers.github_proxy import Answer, Handler, Incoming
from tests.peers.github_service import GithubService

from agenteval.github import pygithub
from agenteval.github.check_run import Body, CheckRun, abandonment, creation, updates
from agenteval.github.client import USER_AGENT, GitHubClient, GithubError
from agenteval.report.overview import Annotation

pytestmark = pytest.mark.peer

NAME = "agenteval"
ADDRESS = "https://github.com/acme/widgets/actions/runs/1"
SUMMARY = "**3 cases** are running"
RESULT: dict[str, Any] = {
    "conclusion": "failure",
    "title": "1 case broke",
    "summary": "1 of 3",
    "text": "Details",
}

_ids = count(1)


class Job:
    """One attempt of a job, on a commit of its own."""

    def __init__(self, github: GithubService) -> None:
        self.github = github
        self.emulator = github.emulator
        self.commit = self.emulator.pull_request().head.sha
        self.external_id = f"{next(_ids)}/1/test"
        self.is_open = True

    def client(self, token: str = OWNER_TOKEN) -> GitHubClient:
        return self.github.client(token, timeout_s=1)

    def start(self, token: str = OWNER_TOKEN) -> CheckRun:
        return pygithub.start_check(
            self.client(token),
            REPOSITORY,
            self.commit,
            NAME,
            details_url=ADDRESS,
            external_id=self.external_id,
            summary=SUMMARY,
        )

    def finish(self, check: CheckRun, annotations: list[Annotation]) -> None:
        pygithub.finish_check(self.client(), REPOSITORY, check, annotations=annotations, **RESULT)

    def kept(self, check: CheckRun) -> KeptCheckRun:
        return self.emulator.api().get_repo(REPOSITORY).get_check_run(check.id)

    def all_kept(self) -> list[KeptCheckRun]:
        commit = self.emulator.api().get_repo(REPOSITORY).get_commit(self.commit)
        return list(commit.get_check_runs(filter="all"))

    def sent(self, method: str) -> list[Body]:
        return [json.loads(request.body) for request in self.github.proxy.called(method, "")]

    def answers(self, method: str, handler: Handler) -> None:
        """Answer requests of ours for this check run in another way."""

        def of_this(request: Incoming, found: re.Match[str]) -> Answer | None:
            is_ours = request.headers["user-agent"].startswith(USER_AGENT) and self.is_open
            return handler(request, found) if is_ours else None

        self.github.proxy.serve(method, r".*/check-runs(/\d+)?", of_this)


@pytest.fixture
def job(github: GithubService) -> Iterator[Job]:
    job = Job(github)
    yield job
    job.is_open = False


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pygithub, "_PAUSES_S", (0.0, 0.0, 0.0))


def listed(number: int) -> list[Annotation]:
    return [Annotation("agent.yaml", line, "failure", f"Case {line}", "Failed") for line in range(1, number + 1)]


def test_it_starts_in_progress(job: Job) -> None:
    check = job.start()
    kept = job.kept(check)

    assert (kept.name, kept.head_sha, kept.status) == (NAME, job.commit, "in_progress")
    assert not kept.conclusion
    assert (kept.external_id, kept.details_url, kept.html_url) == (job.external_id, ADDRESS, check.url)
    assert kept.output.summary == SUMMARY
    assert job.sent("POST") == [creation(job.commit, NAME, ADDRESS, job.external_id, SUMMARY)]
    assert [request.method for request in job.github.proxy.requests] == ["POST"]


@pytest.mark.parametrize("number", [0, 50, 51])
def test_it_is_completed_with_every_annotation(job: Job, number: int) -> None:
    check = job.start()
    job.github.proxy.forget()

    job.finish(check, listed(number))

    kept = job.kept(check)
    sent = job.sent("PATCH")
    assert (kept.status, kept.conclusion) == ("completed", "failure")
    assert (kept.output.title, kept.output.summary, kept.output.text) == ("1 case broke", "1 of 3", "Details")
    assert sent == updates(annotations=listed(number), start=job.external_id, **RESULT)
    lines = [item["start_line"] for body in sent for item in body["output"].get("annotations", [])]
    assert lines == list(range(1, number + 1))
    *additions, completion = sent
    assert [request.method for request in job.github.proxy.requests] == [
        *["PATCH"] * len(additions),
        "GET",
        "PATCH",
        "GET",
    ]
    assert kept.external_id == completion["external_id"] == f"{job.external_id}/failure"


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", ["502", "reset", "silence", "half an answer"])
def test_a_lost_answer_creates_nothing_twice(job: Job, failure: str, arrives: bool) -> None:
    job.github.proxy.lose("POST", "/check-runs", failure, arrives=arrives)

    check = job.start()

    assert [kept.id for kept in job.all_kept()] == [check.id]
    assert job.github.proxy.writes() == (["POST"] if arrives else ["POST", "POST"])


def test_only_the_check_run_of_this_attempt_is_taken_for_it(job: Job) -> None:
    before = job.start()
    job.external_id = "another attempt"
    job.github.proxy.forget()
    job.github.proxy.fail("POST", "/check-runs", status=502)

    check = job.start()

    assert check.id != before.id
    assert job.github.proxy.writes() == ["POST", "POST"]


def test_a_newer_check_run_of_the_same_name_does_not_hide_it(job: Job) -> None:
    here = job.external_id

    def handler(request: Incoming, _: re.Match[str]) -> Answer:
        job.github.proxy.forward("POST", request.path, request.body, request.headers, request.authorization)
        repository = job.emulator.api().get_repo(REPOSITORY)
        repository.create_check_run(NAME, job.commit, external_id="another job", status="in_progress")
        return Answer.message(502, "Server Error")

    job.answers("POST", handler)
    check = job.start()

    assert job.kept(check).external_id == here
    assert job.github.proxy.writes() == ["POST"]


def test_a_server_that_only_fails_is_asked_three_times(job: Job) -> None:
    job.github.proxy.fail("POST", "/check-runs", times=9, status=502, body={"message": "Server Error"})

    with pytest.raises(GithubError, match=rf"cannot create a check run on {job.commit} .*502 \(Server Error\)"):
        job.start()
    assert job.github.proxy.writes() == ["POST"] * 3
    assert job.all_kept() == []


def added(body: Body) -> set[int]:
    """The lines of the annotations in a request."""
    return {item["start_line"] for item in body.get("output", {}).get("annotations", [])}


def refusing(status: int, line: int) -> Handler:
    """Refuses the requests that add an annotation at a line, in GitHub's words."""
    invalid = {"resource": "CheckRun", "code": "invalid", "field": "annotations"}
    refusal = {"message": "Validation Failed", "errors": [invalid]}
    return lambda request, _: Answer.json(refusal, status) if line in added(json.loads(request.body)) else None


def test_annotations_that_github_refuses_cost_only_their_batch(job: Job) -> None:
    check = job.start()
    job.github.proxy.forget()
    job.answers("PATCH", refusing(422, 70))

    with pytest.raises(GithubError, match=r"422 \(Validation Failed; invalid\)") as caught:
        job.finish(check, listed(120))

    assert caught.value.status == 422
    lines = [sorted(added(body)) for body in job.sent("PATCH")]
    assert lines == [[*range(1, 51)], [*range(51, 101)], [*range(101, 121)], []]
    assert (job.kept(check).status, job.kept(check).conclusion) == ("completed", "failure")


def test_texts_that_github_refuses_cost_only_themselves(job: Job) -> None:
    check = job.start()

    invalid = Answer.message(422, "Invalid request")
    job.answers("PATCH", lambda request, _: invalid if b"Details" in request.body else None)
    with pytest.raises(GithubError, match="422"):
        job.finish(check, [])

    kept = job.kept(check)
    assert (kept.status, kept.conclusion) == ("completed", "failure")
    assert (kept.output.title, kept.external_id) == ("1 case broke", f"{job.external_id}/failure")
    assert "GitHub refused the texts" in kept.output.summary


def test_the_worst_of_two_that_finish_at_once(job: Job) -> None:
    """The red one is completed while the green one has listed the others and completes itself."""
    first_id, second_id = job.external_id, f"{next(_ids)}/1/other"
    green = job.start()
    job.external_id = second_id
    red = job.start()
    done: list[CheckRun] = []

    def meanwhile(request: Incoming, _: re.Match[str]) -> None:
        if request.route.endswith(f"/check-runs/{green.id}") and not done:
            done.append(red)
            job.finish(red, [])

    job.answers("PATCH", meanwhile)
    pygithub.finish_check(job.client(), REPOSITORY, green, annotations=[], **RESULT | {"conclusion": "success"})

    assert [job.kept(check).conclusion for check in (green, red)] == ["failure", "failure"]
    assert job.kept(green).external_id == f"{first_id}/success"


def test_after_another_failure_it_is_completed_at_once(job: Job) -> None:
    check = job.start()
    job.github.proxy.forget()
    job.answers("PATCH", refusing(403, 1))

    with pytest.raises(GithubError, match="403"):
        job.finish(check, listed(120))

    assert job.kept(check).status == "completed"
    assert job.github.proxy.writes() == ["PATCH"] * 2


def test_a_missing_permission_names_the_lines_to_add(job: Job) -> None:
    token = job.emulator.installation_token(contents="read")

    with pytest.raises(GithubError) as caught:
        job.start(token)

    assert caught.value.status == 403
    assert "permissions:\n  contents: read\n  checks: write" in str(caught.value)
    assert token not in str(caught.value)
    assert job.github.proxy.writes() == ["POST"]


def test_a_check_run_that_does_not_exist(job: Job) -> None:
    with pytest.raises(GithubError, match="does not exist, or the token may not see it") as caught:
        job.finish(CheckRun(99_999), [])

    assert caught.value.status == 404


def test_what_did_not_finish_is_cancelled(job: Job) -> None:
    check = job.start()

    assert pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")

    kept = job.kept(check)
    assert (kept.status, kept.conclusion) == ("completed", "cancelled")
    assert (kept.output.title, kept.output.summary) == ("The evaluation did not finish", "The job was cancelled.")
    assert job.sent("PATCH") == [abandonment("The job was cancelled.")]


def test_what_is_completed_is_left_alone(job: Job) -> None:
    check = job.start()
    job.finish(check, [])
    job.github.proxy.forget()

    assert not pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")
    assert not pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")

    assert (job.kept(check).conclusion, job.kept(check).output.title) == ("failure", "1 case broke")
    assert job.github.proxy.writes() == []


def test_nothing_is_sent_that_github_would_not_take(job: Job) -> None:
    check = job.start()
    job.github.proxy.forget()
    too_long = RESULT | {"text": "✅" * 30_000}

    with pytest.raises(ValueError, match="the text of a check run has 90,000 bytes; the limit is 65,535"):
        pygithub.finish_check(job.client(), REPOSITORY, check, annotations=listed(60), **too_long)

    assert job.github.proxy.requests == []
    assert job.kept(check).status == "in_progress"
