"""The check run against an independent emulation of GitHub, each request checked against GitHub's own description.

Where the emulator is laxer than GitHub (it replaces annotations instead of adding them, and takes any number of
them), the requests are looked at instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import requests
from github.CheckRun import CheckRun as KeptCheckRun
from requests import PreparedRequest, Response
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY, GithubEmulator
from tests.peers.wire import Wire, answer, text_of

from agenteval.github import pygithub
from agenteval.github.check_run import Body, CheckRun, abandonment, creation, updates
from agenteval.github.client import GitHubClient, GithubError
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

    def __init__(self, emulator: GithubEmulator) -> None:
        self.emulator = emulator
        self.commit = emulator.pull_request().head.sha
        self.external_id = f"{next(_ids)}/1/test"

    def client(self, token: str = OWNER_TOKEN) -> GitHubClient:
        return GitHubClient(token, self.emulator.url)

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


@pytest.fixture
def job(emulator: GithubEmulator) -> Job:
    return Job(emulator)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pygithub, "_PAUSES_S", (0.0, 0.0, 0.0))


def listed(number: int) -> list[Annotation]:
    return [Annotation("agent.yaml", line, "failure", f"Case {line}", "Failed") for line in range(1, number + 1)]


def bodies(wire: Wire, method: str) -> list[Body]:
    return [json.loads(request.body or "") for request in wire.requests if request.method == method]


def test_it_starts_in_progress(job: Job, wire: Wire) -> None:
    check = job.start()
    kept = job.kept(check)

    assert (kept.name, kept.head_sha, kept.status) == (NAME, job.commit, "in_progress")
    assert not kept.conclusion
    assert (kept.external_id, kept.details_url, kept.html_url) == (job.external_id, ADDRESS, check.url)
    assert kept.output.summary == SUMMARY
    assert bodies(wire, "POST") == [creation(job.commit, NAME, ADDRESS, job.external_id, SUMMARY)]
    assert [request.method for request in wire.requests] == ["POST"]


@pytest.mark.parametrize("number", [0, 1, 50, 51, 1_000])
def test_it_is_completed_with_every_annotation(job: Job, wire: Wire, number: int) -> None:
    check = job.start()
    wire.requests.clear()

    job.finish(check, listed(number))

    kept = job.kept(check)
    sent = bodies(wire, "PATCH")
    assert (kept.status, kept.conclusion) == ("completed", "failure")
    assert (kept.output.title, kept.output.summary, kept.output.text) == ("1 case broke", "1 of 3", "Details")
    assert sent == updates(annotations=listed(number), start=job.external_id, **RESULT)
    lines = [item["start_line"] for body in sent for item in body["output"].get("annotations", [])]
    assert lines == list(range(1, number + 1))
    *additions, completion = sent
    assert [request.method for request in wire.requests] == [*["PATCH"] * len(additions), "GET", "PATCH", "GET"]
    assert kept.external_id == completion["external_id"] == f"{job.external_id}/failure"


def test_annotations_are_kept_as_they_are(job: Job, wire: Wire) -> None:
    check = job.start()
    item = Annotation("suites/ü b.yaml", 7, "warning", "Case [U+1F600] ✅", "Failed\nAnswer: “42”\u200b")

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        return answer(request, 200, "{}") if '"completed"' in (text_of(request) or "") else go_on()

    wire.interceptors.append(intercept)
    job.finish(check, [item])

    address = f"{job.emulator.url}/repos/{REPOSITORY}/check-runs/{check.id}/annotations"
    [kept] = requests.get(address, headers={"authorization": f"token {OWNER_TOKEN}"}, timeout=10).json()[
        "check_annotations"
    ]
    assert (kept["path"], kept["start_line"], kept["end_line"]) == (item.path, 7, 7)
    assert (kept["annotation_level"], kept["message"]) == ("warning", item.message)


def losing(method: str, failures: list[str], *, arrives: bool) -> Callable[..., Response]:
    """Loses the answers to the first requests of a method, each in a way of its own."""

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method != method or not failures:
            return go_on()
        kind = failures.pop(0)
        if arrives:
            go_on()
        if kind == "reset":
            raise requests.ConnectionError("connection reset by peer")
        if kind == "timeout":
            raise requests.ReadTimeout("timed out")
        if kind == "cut off":
            raise requests.exceptions.ChunkedEncodingError("incomplete read")
        return answer(request, 502, '{"message": "Server Error"}')

    return intercept


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", ["502", "reset", "timeout", "cut off"])
def test_a_lost_answer_creates_nothing_twice(job: Job, wire: Wire, failure: str, arrives: bool) -> None:
    wire.interceptors.append(losing("POST", [failure], arrives=arrives))

    check = job.start()

    assert [kept.id for kept in job.all_kept()] == [check.id]
    assert wire.writes() == (["POST"] if arrives else ["POST", "POST"])


def test_only_the_check_run_of_this_attempt_is_taken_for_it(job: Job, wire: Wire) -> None:
    before = job.start()
    job.external_id = "another attempt"
    wire.requests.clear()
    wire.interceptors.append(losing("POST", ["502"], arrives=False))

    check = job.start()

    assert check.id != before.id
    assert wire.writes() == ["POST", "POST"]


def test_a_newer_check_run_of_the_same_name_does_not_hide_it(job: Job, wire: Wire) -> None:
    here = job.external_id

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method != "POST":
            return go_on()
        go_on()
        repository = job.emulator.api().get_repo(REPOSITORY)
        repository.create_check_run(NAME, job.commit, external_id="another job", status="in_progress")
        return answer(request, 502, "{}")

    wire.interceptors.append(intercept)
    check = job.start()

    assert job.kept(check).external_id == here
    assert wire.writes() == ["POST"]


def test_a_server_that_only_fails_is_asked_three_times(job: Job, wire: Wire) -> None:
    wire.interceptors.append(losing("POST", ["502"] * 9, arrives=False))

    with pytest.raises(GithubError, match=rf"cannot create a check run on {job.commit} .*502 \(Server Error\)"):
        job.start()
    assert wire.writes() == ["POST"] * 3
    assert job.all_kept() == []


class Appending:
    """Counts annotations as GitHub does, which adds those of a request to those it has."""

    def __init__(self) -> None:
        self.lines: list[int] = []

    def __call__(self, request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        response = go_on()
        if request.method == "PATCH" and response.ok:
            added = json.loads(text_of(request) or "")["output"].get("annotations", [])
            self.lines += [item["start_line"] for item in added]
        shown = response.json()
        if "output" in shown:
            shown["output"]["annotations_count"] = len(self.lines)
        return answer(request, response.status_code, json.dumps(shown))


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", ["502", "reset", "timeout", "cut off"])
def test_a_lost_answer_adds_no_annotation_twice(job: Job, wire: Wire, failure: str, arrives: bool) -> None:
    check = job.start()
    kept = Appending()
    wire.requests.clear()
    wire.interceptors += [losing("PATCH", [failure], arrives=arrives), kept]

    job.finish(check, listed(120))

    assert kept.lines == list(range(1, 121))
    assert job.kept(check).status == "completed"
    assert wire.writes() == ["PATCH"] * (4 if arrives else 5)


def refusing(status: int, lines: set[int]) -> Callable[..., Response]:
    """Refuses the requests that add an annotation at one of the lines, in GitHub's words."""
    refusal = {
        "message": "Validation Failed",
        "errors": [{"resource": "CheckRun", "code": "invalid", "field": "annotations"}],
    }

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        body = json.loads(text_of(request) or "{}")
        added = {item["start_line"] for item in body.get("output", {}).get("annotations", [])}
        return answer(request, status, json.dumps(refusal)) if added & lines else go_on()

    return intercept


def test_annotations_that_github_refuses_cost_only_their_batch(job: Job, wire: Wire) -> None:
    check = job.start()
    kept = Appending()
    wire.requests.clear()
    wire.interceptors += [refusing(422, {70}), kept]

    with pytest.raises(GithubError, match=r"422 \(Validation Failed; invalid\)") as caught:
        job.finish(check, listed(120))

    assert caught.value.status == 422
    assert kept.lines == [*range(1, 51), *range(101, 121)]
    assert (job.kept(check).status, job.kept(check).conclusion) == ("completed", "failure")
    assert wire.writes() == ["PATCH"] * 4


def test_texts_that_github_refuses_cost_only_themselves(job: Job, wire: Wire) -> None:
    check = job.start()

    def refuse(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        is_text = request.method == "PATCH" and "Details" in (text_of(request) or "")
        return answer(request, 422, '{"message": "Invalid request"}') if is_text else go_on()

    wire.interceptors.append(refuse)
    with pytest.raises(GithubError, match="422"):
        job.finish(check, [])

    kept = job.kept(check)
    assert (kept.status, kept.conclusion) == ("completed", "failure")
    assert (kept.output.title, kept.external_id) == ("1 case broke", f"{job.external_id}/failure")
    assert "GitHub refused the texts" in kept.output.summary


def test_the_worst_of_two_that_finish_at_once(job: Job, wire: Wire) -> None:
    """The red one is completed while the green one has listed the others and completes itself."""
    first_id, second_id = job.external_id, f"{next(_ids)}/1/other"
    green = job.start()
    job.external_id = second_id
    red = job.start()
    done: list[CheckRun] = []

    def meanwhile(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method == "PATCH" and f"/check-runs/{green.id}" in str(request.url) and not done:
            done.append(red)
            job.finish(red, [])
        return go_on()

    wire.interceptors.append(meanwhile)
    pygithub.finish_check(job.client(), REPOSITORY, green, annotations=[], **RESULT | {"conclusion": "success"})

    assert [job.kept(check).conclusion for check in (green, red)] == ["failure", "failure"]
    assert job.kept(green).external_id == f"{first_id}/success"


def test_after_another_failure_it_is_completed_at_once(job: Job, wire: Wire) -> None:
    check = job.start()
    wire.requests.clear()
    wire.interceptors.append(refusing(403, {1}))

    with pytest.raises(GithubError, match="403"):
        job.finish(check, listed(120))

    assert job.kept(check).status == "completed"
    assert wire.writes() == ["PATCH"] * 2


def test_a_missing_permission_names_the_lines_to_add(job: Job, wire: Wire) -> None:
    token = job.emulator.installation_token(contents="read")

    with pytest.raises(GithubError) as caught:
        job.start(token)

    assert caught.value.status == 403
    assert "permissions:\n  contents: read\n  checks: write" in str(caught.value)
    assert token not in str(caught.value)
    assert wire.writes() == ["POST"]


def test_a_check_run_that_does_not_exist(job: Job) -> None:
    with pytest.raises(GithubError, match="does not exist, or the token may not see it") as caught:
        job.finish(CheckRun(99_999), [])

    assert caught.value.status == 404


def test_what_did_not_finish_is_cancelled(job: Job, wire: Wire) -> None:
    check = job.start()

    assert pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")

    kept = job.kept(check)
    assert (kept.status, kept.conclusion) == ("completed", "cancelled")
    assert (kept.output.title, kept.output.summary) == ("The evaluation did not finish", "The job was cancelled.")
    assert bodies(wire, "PATCH") == [abandonment("The job was cancelled.")]


def test_what_is_completed_is_left_alone(job: Job, wire: Wire) -> None:
    check = job.start()
    job.finish(check, [])
    wire.requests.clear()

    assert not pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")
    assert not pygithub.abandon_check(job.client(), REPOSITORY, check.id, "The job was cancelled.")

    assert (job.kept(check).conclusion, job.kept(check).output.title) == ("failure", "1 case broke")
    assert wire.writes() == []


def test_nothing_is_sent_that_github_would_not_take(job: Job, wire: Wire) -> None:
    check = job.start()
    wire.requests.clear()
    too_long = RESULT | {"text": "✅" * 30_000}

    with pytest.raises(ValueError, match="the text of a check run has 90,000 bytes; the limit is 65,535"):
        pygithub.finish_check(job.client(), REPOSITORY, check, annotations=listed(60), **too_long)

    assert wire.requests == []
    assert job.kept(check).status == "in_progress"
