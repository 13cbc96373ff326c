"""The sticky comment against an independent emulation of GitHub that fails, and that others change meanwhile."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

import pytest
from github.IssueComment import IssueComment
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY, STRANGER_TOKEN
from tests.peers.github_proxy import Answer, Incoming
from tests.peers.github_service import GithubService

from agenteval.github.client import USER_AGENT, GithubError
from agenteval.github.comment import Mode, publish_section
from agenteval.github.comment_sections import Comment, Revision, Section, marker, section_key
from agenteval.github.comment_update import CommentOutcome, Pacing, parse

pytestmark = pytest.mark.peer

MARK = marker()
KEY = section_key("ci", "evaluate")
COMMENTS = r"/comments$"
COMMENT = r"/issues/comments/\d+$"


class Conversation:
    """A pull request, a job that publishes there, and others who write there.

    ``pauses`` are the seconds that the job waited, ``meanwhile`` is what others then do.
    """

    def __init__(self, github: GithubService) -> None:
        self.github = github
        self.pull = github.emulator.pull_request()
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], object] | None = None

    def publish(
        self,
        head: str,
        token: str = OWNER_TOKEN,
        *,
        comment_id: str = "",
        key: str = KEY,
        mode: Mode = "always",
        timeout_s: int = 20,
    ) -> CommentOutcome:
        section = Section(key, head, revision=Revision(1, 1))
        pacing = Pacing(settle_s=0.0, jitter_s=0.0, sleep=self._pause)
        client = self.github.client(token, timeout_s)
        return publish_section(client, REPOSITORY, self.pull.number, comment_id, section, mode=mode, pacing=pacing)

    def say(self, text: str, token: str = OWNER_TOKEN) -> IssueComment:
        pull = self.github.emulator.api(token).get_repo(REPOSITORY).get_pull(self.pull.number)
        return pull.create_issue_comment(text)

    def bodies(self) -> list[str]:
        return [comment.body for comment in self.pull.get_issue_comments()]

    def heads(self) -> list[str]:
        """The heads of the sections of the one comment there is."""
        [body] = self.bodies()
        return [section.head for section in read(body).sections]

    def edit(self, *sections: Section) -> None:
        [comment] = self.pull.get_issue_comments()
        comment.edit(Comment(MARK, sections).render())

    def called(self, method: str, path: str) -> int:
        return len(self.github.proxy.called(method, path))

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.meanwhile:
            do, self.meanwhile = self.meanwhile, None
            do()


def read(body: str) -> Comment:
    comment = parse(body)
    assert comment is not None
    return comment


def of_others(head: str = "old", run: int = 1) -> Section:
    return Section("other", head, revision=Revision(run))


@pytest.fixture
def conversation(github: GithubService) -> Conversation:
    return Conversation(github)


def test_a_comment_is_created_then_edited(conversation: Conversation) -> None:
    first = conversation.publish("one")
    conversation.github.proxy.forget()
    second = conversation.publish("two")

    assert (first.action, second.action) == ("created", "updated")
    assert first.url == second.url
    assert conversation.heads() == ["two"]
    # Few requests when nobody races.
    number = re.compile(r"\d+")
    asked = [(item.method, item.route.rpartition("/")[2]) for item in conversation.github.proxy.requests]
    assert [(method, number.sub("N", last)) for method, last in asked] == [
        ("GET", "N"),  # the pull request
        ("GET", "comments"),
        ("POST", "graphql"),
        ("GET", "N"),
        ("PATCH", "N"),
        ("GET", "comments"),
    ]
    conversation.github.proxy.forget()
    assert conversation.publish("two\n").action == "unchanged"
    assert conversation.github.proxy.writes() == []

    for key in ("b", "a"):
        conversation.publish(f"of {key}", key=key)
    assert conversation.heads() == ["of a", "of b", "two"]


def test_only_an_existing_comment_is_written_to_if_so_wanted(conversation: Conversation) -> None:
    assert conversation.publish("one", mode="existing") == CommentOutcome("", "absent")
    assert conversation.github.proxy.writes() == []

    conversation.publish("other", key="other")

    assert conversation.publish("one", mode="existing").action == "updated"
    assert conversation.heads() == ["one", "other"]


def test_each_id_has_a_comment_of_its_own(conversation: Conversation) -> None:
    conversation.publish("unit", comment_id="unit")
    conversation.publish("nightly", comment_id="nightly")
    conversation.publish("unit again", comment_id="unit")

    comments = [read(body) for body in conversation.bodies()]
    assert [comment.mark for comment in comments] == [marker("unit"), marker("nightly")]
    assert [comment.sections[0].head for comment in comments] == ["unit again", "nightly"]


@pytest.mark.parametrize("before", [99, 100])
def test_found_on_every_page(conversation: Conversation, before: int) -> None:
    for number in range(before):
        conversation.say(f"comment {number}")
    conversation.publish("one")

    assert conversation.publish("two").action == "updated"
    assert conversation.pull.get_issue_comments().totalCount == before + 1
    assert conversation.called("GET", "per_page=100") > 0


def test_a_forged_marker_of_someone_else_is_ignored(conversation: Conversation) -> None:
    foreign = Comment(MARK, (Section(KEY, "mine now", revision=Revision(99, 1, 1)),)).render()
    # More than one query takes.
    for _ in range(101):
        conversation.say(foreign, STRANGER_TOKEN)

    assert conversation.publish("ours").action == "created"
    assert conversation.publish("ours again").action == "updated"
    *forged, ours = conversation.bodies()
    assert set(forged) == {foreign}
    assert [section.head for section in read(ours).sections] == ["ours again"]
    assert conversation.github.proxy.writes() == ["POST", "PATCH"]
    assert conversation.called("GET", "/user$") == 0


def test_own_duplicates_become_one_in_which_the_newest_of_each_section_stays(conversation: Conversation) -> None:
    def body(*sections: Section) -> str:
        return Comment(MARK, sections).render()

    oldest = conversation.say(
        body(Section("a", "old a", revision=Revision(1)), Section("b", "b", revision=Revision(3)))
    )
    conversation.say("a remark", STRANGER_TOKEN)
    newer = [Section("a", "new a", revision=Revision(2)), Section("b", "old b", revision=Revision(2))]

    def delete() -> None:
        for duplicate in duplicates:
            duplicate.delete()

    duplicates = [conversation.say(body(*newer)), conversation.say(body(Section("c", "c")))]
    # Another job removes them first, which is no error.
    _meanwhile(conversation, "DELETE", r".*/issues/comments/\d+", delete)

    outcome = conversation.publish("report", key="d")

    assert outcome == CommentOutcome(oldest.html_url, "updated")
    comment, remark = conversation.bodies()
    assert [section.head for section in read(comment).sections] == ["new a", "b", "c", "report"]
    assert remark == "a remark"


def test_the_token_of_a_job_finds_its_comment(conversation: Conversation) -> None:
    token = conversation.github.emulator.installation_token(pull_requests="write", contents="read")
    conversation.say(f"{MARK}\nforged", STRANGER_TOKEN)

    assert conversation.publish("one", token).action == "created"
    # GraphQL may not know, and then the login decides.
    conversation.github.proxy.fail("POST", "/graphql", status=404)
    assert conversation.publish("two", token).action == "updated"
    forged, ours = conversation.bodies()
    assert forged == f"{MARK}\nforged"
    assert [section.head for section in read(ours).sections] == ["two"]


def test_what_cannot_be_written_names_the_lines_to_add(conversation: Conversation) -> None:
    token = conversation.github.emulator.installation_token(contents="read")

    with pytest.raises(GithubError) as caught:
        conversation.publish("report", token)

    assert caught.value.status == 403
    assert "permissions:\n  contents: read\n  pull-requests: write" in str(caught.value)
    assert f"comment on pull request #{conversation.pull.number} of {REPOSITORY}" in str(caught.value)
    # It is not tried again.
    assert conversation.github.proxy.writes() == ["POST"]
    shown = "".join([str(caught.value), repr(caught.value), *traceback.format_exception(caught.value)])
    assert token not in shown

    client = conversation.github.client()
    with pytest.raises(GithubError, match="does not exist, or the token may not see it") as caught:
        publish_section(client, REPOSITORY, 99_999, "", Section(KEY, "report"))
    assert caught.value.status == 404
    assert OWNER_TOKEN not in str(caught.value)


def test_an_unusable_graphql_answer_is_not_taken_for_no(conversation: Conversation) -> None:
    unusable = [
        b'{"data": null, "errors": [{"type": "FORBIDDEN", "message": "no"}]}',
        b'{"data": {"nodes": [null]}, "errors": [{"type": "FORBIDDEN"}]}',
        b'{"data": {"nodes": []}}',
        b'{"errors": [{"message": "no type"}]}',
        b'{"data": {"nodes": "text"}}',
        b"[]",
        b"null",
    ]
    conversation.say(f"{MARK}\nold")
    for number, text in enumerate(unusable):
        headers = {"Content-Type": "application/json"}
        conversation.github.proxy.fail("POST", "/graphql", status=200, body=text, headers=headers)
        assert conversation.publish(f"after {number}").action == "updated"
        assert conversation.heads() == [f"after {number}"]
    assert conversation.github.proxy.writes() == ["PATCH"] * len(unusable)


def _meanwhile(conversation: Conversation, method: str, path: str, do: Callable[[], object]) -> None:
    """Let somebody act once when a request of ours is on its way."""

    def handler(request: Incoming, found: re.Match[str]) -> Answer | None:
        if request.headers["user-agent"] == USER_AGENT and not done:
            done.append(1)
            do()
        return None

    done: list[int] = []
    conversation.github.proxy.serve(method, path, handler)


def _delete_all(conversation: Conversation) -> None:
    for comment in conversation.pull.get_issue_comments():
        comment.delete()


def test_a_candidate_deleted_meanwhile_does_not_count(conversation: Conversation) -> None:
    gone = conversation.say(f"{MARK}\ngone")
    conversation.say(f"{MARK}\nold")
    _meanwhile(conversation, "POST", "/graphql", gone.delete)

    assert conversation.publish("new").action == "updated"
    assert conversation.github.proxy.writes() == ["PATCH"]
    assert conversation.called("GET", "/user$") == 0


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_comment_deleted_meanwhile_is_made_again(conversation: Conversation, method: str) -> None:
    conversation.say(Comment(MARK, (of_others(),)).render())
    _meanwhile(conversation, method, r".*/issues/comments/\d+", lambda: _delete_all(conversation))

    assert conversation.publish("report").action == "created"
    assert conversation.heads() == ["report", "old"]


def test_a_comment_deleted_meanwhile_is_not_made_again_in_mode_existing(conversation: Conversation) -> None:
    conversation.say(Comment(MARK, (of_others(),)).render())
    _meanwhile(conversation, "PATCH", r".*/issues/comments/\d+", lambda: _delete_all(conversation))

    assert conversation.publish("report", mode="existing") == CommentOutcome("", "absent")
    assert conversation.bodies() == []


def test_what_others_write_between_reading_the_list_and_writing_stays(conversation: Conversation) -> None:
    conversation.say(Comment(MARK, (of_others(),)).render())
    # The authorship is asked for after the list was read.
    _meanwhile(conversation, "POST", "/graphql", lambda: conversation.edit(of_others("new", 2)))

    assert conversation.publish("report").action == "updated"
    assert conversation.heads() == ["report", "new"]
    assert conversation.called("PATCH", COMMENT) == 1


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", ["502", "reset", "half an answer", "a page", "silence"])
def test_a_lost_answer_posts_nothing_twice(conversation: Conversation, failure: str, arrives: bool) -> None:
    conversation.github.proxy.lose("POST", COMMENTS, failure, arrives=arrives)

    outcome = conversation.publish("report", timeout_s=1)

    assert outcome.action == "created"
    assert conversation.heads() == ["report"]
    assert conversation.called("POST", COMMENTS) == (1 if arrives else 2)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_edit_is_made_again_from_what_is_there_by_then(conversation: Conversation, arrives: bool) -> None:
    conversation.say(Comment(MARK, (of_others(),)).render())
    conversation.github.proxy.lose("PATCH", COMMENT, "reset", arrives=arrives)
    # Another job overwrites ours, if it has arrived.
    conversation.meanwhile = lambda: conversation.edit(of_others("new", 2))

    assert conversation.publish("report", timeout_s=1).action == "updated"
    assert conversation.heads() == ["report", "new"]
    assert conversation.called("PATCH", COMMENT) == 2


def test_three_failures_in_a_row_are_reported(conversation: Conversation) -> None:
    conversation.github.proxy.fail("POST", COMMENTS, times=9, status=503)

    with pytest.raises(GithubError, match="GitHub answered 503") as caught:
        conversation.publish("report")

    assert caught.value.status == 503
    assert OWNER_TOKEN not in str(caught.value)
    assert conversation.called("POST", COMMENTS) == 3
    assert conversation.pauses == [1.0, 4.0]
    assert conversation.bodies() == []


@pytest.mark.parametrize(
    ("status", "message", "asked", "wait_s"),
    [
        (403, "You have exceeded a secondary rate limit.", None, 60),
        (429, "Too many requests", "9", 9),
    ],
)
def test_a_rate_limit_is_waited_for(
    conversation: Conversation, status: int, message: str, asked: str | None, wait_s: int
) -> None:
    headers = {"Retry-After": asked} if asked else {}
    conversation.say(Comment(MARK, (of_others(),)).render())
    body = {"message": message}
    conversation.github.proxy.fail("PATCH", COMMENT, status=status, headers=headers, body=body)
    conversation.meanwhile = lambda: conversation.edit(of_others("new", 2))

    assert conversation.publish("report").action == "updated"
    assert conversation.pauses[0] == wait_s
    assert conversation.heads() == ["report", "new"]

    conversation.pauses.clear()
    conversation.github.proxy.fail("PATCH", COMMENT, status=429, headers={"Retry-After": "3000"})
    with pytest.raises(GithubError, match="rate limit") as caught:
        conversation.publish("again")
    assert (caught.value.status, conversation.pauses) == (429, [])


def test_an_error_in_the_request_is_not_repeated(conversation: Conversation) -> None:
    refusal = {"message": "Validation Failed", "errors": [{"message": "body is too long"}]}
    conversation.github.proxy.fail("POST", COMMENTS, status=422, body=refusal)

    with pytest.raises(GithubError, match=r"422 \(Validation Failed; body is too long\)"):
        conversation.publish("report")
    assert conversation.github.proxy.writes() == ["POST"]


def test_a_list_that_lags_behind_does_not_post_again(conversation: Conversation) -> None:
    conversation.github.proxy.fail("GET", r"/comments\?", times=100, status=200, body=[])

    assert conversation.publish("report").action == "created"
    assert conversation.github.proxy.writes() == ["POST"]
