"""The sticky comment when GitHub fails, loses answers, or is changed by others between two requests."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from github.PullRequest import PullRequest
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY
from tests.peers.github_proxy import Answer, Incoming
from tests.peers.github_service import GithubService

from agenteval.github.client import USER_AGENT, GithubError
from agenteval.github.comment import Mode, publish_section
from agenteval.github.comment_sections import Comment, Revision, Section, marker
from agenteval.github.comment_update import CommentOutcome, Pacing, parse

pytestmark = pytest.mark.peer

COMMENTS = r"/comments$"
COMMENT = r"/issues/comments/\d+$"
FAILURES = ["502", "reset", "half an answer", "a page", "silence"]


class Job:
    """Publishes on a pull request; ``pauses`` are the seconds it waited, ``meanwhile`` is what others then do."""

    def __init__(self, github: GithubService) -> None:
        self.github = github
        self.pull: PullRequest = github.emulator.pull_request()
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], object] | None = None

    def publish(self, head: str = "report", *, mode: Mode = "always", timeout_s: int = 20) -> CommentOutcome:
        section = Section("job", head, revision=Revision(1, 1))
        pacing = Pacing(settle_s=0.0, jitter_s=0.0, sleep=self._pause)
        client = self.github.client(timeout_s=timeout_s)
        return publish_section(client, REPOSITORY, self.pull.number, "", section, mode=mode, pacing=pacing)

    def say(self, *sections: Section) -> None:
        self.pull.create_issue_comment(Comment(marker(), sections).render())

    def heads(self) -> list[str]:
        [comment] = self.pull.get_issue_comments()
        read = parse(comment.body)
        assert read is not None
        return [section.head for section in read.sections]

    def edit(self, *sections: Section) -> None:
        [comment] = self.pull.get_issue_comments()
        comment.edit(Comment(marker(), sections).render())

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.meanwhile:
            do, self.meanwhile = self.meanwhile, None
            do()


@pytest.fixture
def job(github: GithubService) -> Job:
    return Job(github)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_lost_answer_posts_nothing_twice(github: GithubService, job: Job, failure: str, arrives: bool) -> None:
    _lose(github, "POST", COMMENTS, failure, arrives)

    outcome = job.publish(timeout_s=1)

    assert outcome.action == "created"
    assert job.heads() == ["report"]
    assert len(github.proxy.called("POST", COMMENTS)) == (1 if arrives else 2)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_lost_edit_is_made_again_from_what_is_there_by_then(
    github: GithubService, job: Job, failure: str, arrives: bool
) -> None:
    job.say(Section("other", "old", revision=Revision(1)))
    _lose(github, "PATCH", COMMENT, failure, arrives)
    # Another job overwrites ours, if it has arrived.
    job.meanwhile = lambda: job.edit(Section("other", "new", revision=Revision(2)))

    outcome = job.publish(timeout_s=1)

    assert outcome.action == "updated"
    assert job.heads() == ["report", "new"]
    assert len(github.proxy.called("PATCH", COMMENT)) == 2


def _lose(github: GithubService, method: str, path: str, failure: str, arrives: bool) -> None:
    if failure == "silence" and arrives:
        # Longer between two bytes than the client waits.
        github.proxy.fail(method, path, drip_s=1.5)
    elif failure == "silence":
        github.proxy.fail(method, path, status=504, delay_s=1.5)
    elif failure == "half an answer":
        github.proxy.fail(method, path, truncate=True, status=None if arrives else 200)
    elif failure == "a page":
        github.proxy.fail(method, path, status=200, body=b"<html>Sorry</html>", after_write=arrives)
    elif failure == "reset":
        github.proxy.fail(method, path, reset=True, after_write=arrives)
    else:
        github.proxy.fail(method, path, status=502, after_write=arrives)


def test_three_failures_in_a_row_are_reported(github: GithubService, job: Job) -> None:
    github.proxy.fail("POST", COMMENTS, times=9, status=503)

    with pytest.raises(GithubError, match="GitHub answered 503") as caught:
        job.publish()

    assert caught.value.status == 503
    assert OWNER_TOKEN not in str(caught.value)
    assert len(github.proxy.called("POST", COMMENTS)) == 3
    assert job.pauses == [1.0, 4.0]
    assert list(job.pull.get_issue_comments()) == []


def test_reads_are_repeated(github: GithubService, job: Job) -> None:
    github.proxy.fail("GET", r"/comments\?", times=2, status=502)

    assert job.publish().action == "created"


@pytest.mark.parametrize(
    ("status", "message", "asked", "wait_s"),
    [
        (403, "You have exceeded a secondary rate limit.", "7", 7),
        (403, "You have exceeded a secondary rate limit.", None, 60),
        (429, "Too many requests", "9", 9),
        (503, "Unavailable", "30", 30),
    ],
)
def test_a_rate_limit_is_waited_for(job: Job, status: int, message: str, asked: str | None, wait_s: int) -> None:
    headers = {"Retry-After": asked} if asked else {}
    job.say(Section("other", "old"))
    job.github.proxy.fail("PATCH", COMMENT, status=status, headers=headers, body={"message": message})
    job.meanwhile = lambda: job.edit(Section("other", "new", revision=Revision(2)))

    assert job.publish().action == "updated"
    assert job.pauses[0] == wait_s
    assert job.heads() == ["report", "new"]


def test_a_rate_limit_that_asks_too_much_is_not_waited_for(github: GithubService, job: Job) -> None:
    job.say()
    github.proxy.fail("PATCH", COMMENT, status=429, headers={"Retry-After": "3000"})

    with pytest.raises(GithubError, match="rate limit") as caught:
        job.publish()

    assert caught.value.status == 429
    assert job.pauses == []


@pytest.mark.parametrize(("method", "path"), [("POST", COMMENTS), ("PATCH", COMMENT)])
def test_a_missing_permission_is_not_tried_again(github: GithubService, job: Job, method: str, path: str) -> None:
    if method == "PATCH":
        job.say()
    github.proxy.refuse(path, method=method)

    with pytest.raises(GithubError, match="pull-requests: write"):
        job.publish()

    assert len(github.proxy.called(method, path)) == 1


def _comes_from_us(request: Incoming) -> bool:
    return request.headers["user-agent"] == USER_AGENT


def _deleted_just_before(github: GithubService, job: Job, method: str) -> None:
    """Somebody deletes the comment when the request with this method is on its way."""

    def handler(request: Incoming, found: re.Match[str]) -> Answer | None:
        if _comes_from_us(request) and not done:
            done.append(1)
            for comment in job.pull.get_issue_comments():
                comment.delete()
        return None

    done: list[int] = []
    github.proxy.serve(method, r".*/issues/comments/\d+", handler)


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_comment_deleted_meanwhile_is_made_again_with_what_was_seen(
    github: GithubService, job: Job, method: str
) -> None:
    job.say(Section("other", "other"))
    _deleted_just_before(github, job, method)

    assert job.publish().action == "created"
    assert job.heads() == ["report", "other"]


def test_a_comment_deleted_meanwhile_is_not_made_again_in_mode_existing(github: GithubService, job: Job) -> None:
    job.say(Section("other", "other"))
    _deleted_just_before(github, job, "PATCH")

    assert job.publish(mode="existing") == CommentOutcome("", "absent")
    assert list(job.pull.get_issue_comments()) == []


def test_what_others_write_between_reading_the_list_and_writing_stays(github: GithubService, job: Job) -> None:
    job.say(Section("other", "old"))

    def handler(request: Incoming, found: re.Match[str]) -> Answer | None:
        if not done:
            done.append(1)
            job.edit(Section("other", "new", revision=Revision(2)))
        return None

    done: list[int] = []
    # The authorship is asked for after the list was read.
    github.proxy.serve("POST", "/graphql", handler)

    assert job.publish().action == "updated"
    assert job.heads() == ["report", "new"]
    assert len(github.proxy.called("PATCH", COMMENT)) == 1


def test_a_section_that_another_job_overwrites_is_written_again(github: GithubService, job: Job) -> None:
    job.say(Section("other", "old"))
    job.meanwhile = lambda: job.edit(Section("other", "new", revision=Revision(2)))

    assert job.publish().action == "updated"
    assert job.heads() == ["report", "new"]
    assert len(github.proxy.called("PATCH", COMMENT)) == 2


def test_a_section_of_a_newer_run_that_comes_meanwhile_stays(github: GithubService, job: Job) -> None:
    job.say()
    job.meanwhile = lambda: job.edit(Section("job", "newer", revision=Revision(2)))

    assert job.publish().action == "superseded"
    assert job.heads() == ["newer"]


def test_sections_that_our_own_write_raced_away_come_back(github: GithubService, job: Job) -> None:
    job.say(Section("a", "a"), Section("b", "b"))
    job.meanwhile = lambda: job.edit(Section("a", "a new", revision=Revision(5)))

    job.publish()

    assert job.heads() == ["a new", "b", "report"]


def test_few_requests_when_nobody_races(github: GithubService, job: Job) -> None:
    job.publish("one")
    github.proxy.forget()

    job.publish("two")

    asked = [(request.method, request.route.rpartition("/")[2]) for request in github.proxy.requests]
    numbers = re.compile(r"\d+")
    assert [(method, numbers.sub("N", last)) for method, last in asked] == [
        ("GET", "N"),  # the pull request
        ("GET", "comments"),
        ("POST", "graphql"),
        ("GET", "N"),
        ("PATCH", "N"),
        ("GET", "comments"),
    ]
