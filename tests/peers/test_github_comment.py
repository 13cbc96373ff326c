"""The sticky comment against an independent emulation of GitHub."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from github.IssueComment import IssueComment
from requests import PreparedRequest, Response
from tests.peers.github_emulator import (
    OWNER,
    OWNER_TOKEN,
    REPOSITORY,
    STRANGER_TOKEN,
    GithubEmulator,
)
from tests.peers.wire import Wire, answer, text_of

from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.comment import Mode, mark_running, publish_section
from agenteval.github.comment_sections import Comment, Revision, Section, marker, section_key
from agenteval.github.comment_update import CommentOutcome, Pacing, parse
from agenteval.report.parts import COMMENT_LIMIT, characters

pytestmark = pytest.mark.peer

MARK = marker()
KEY = section_key("ci", "evaluate")
_JOBS = 8
_AT_ONCE = Pacing(settle_s=0.0, jitter_s=0.0, sleep=lambda _: None)


class Conversation:
    """One pull request and those who write there."""

    def __init__(self, emulator: GithubEmulator) -> None:
        self.emulator = emulator
        self.pull = emulator.pull_request()

    def publish(
        self,
        head: str,
        token: str = OWNER_TOKEN,
        *,
        comment_id: str = "",
        key: str = KEY,
        detail: str = "",
        run: int = 1,
        mode: Mode = "always",
    ) -> CommentOutcome:
        section = Section(key, head, detail, Revision(run, 1))
        client = GitHubClient(token, self.emulator.url)
        return publish_section(client, REPOSITORY, self.pull.number, comment_id, section, mode=mode, pacing=_AT_ONCE)

    def run(self, notice: str, run: int, key: str = KEY) -> CommentOutcome:
        section = Section(key, notice, revision=Revision(run, 1))
        client = GitHubClient(OWNER_TOKEN, self.emulator.url)
        return mark_running(client, REPOSITORY, self.pull.number, "", section, pacing=_AT_ONCE)

    def say(self, text: str, token: str = OWNER_TOKEN) -> IssueComment:
        pull = self.emulator.api(token).get_repo(REPOSITORY).get_pull(self.pull.number)
        return pull.create_issue_comment(text)

    def bodies(self) -> list[str]:
        return [comment.body for comment in self.pull.get_issue_comments()]

    def comment(self) -> Comment:
        """The one comment there is."""
        [body] = self.bodies()
        return read(body)

    def heads(self) -> list[str]:
        return [section.head for section in self.comment().sections]


def read(body: str) -> Comment:
    comment = parse(body)
    assert comment is not None
    return comment


@pytest.fixture
def conversation(emulator: GithubEmulator) -> Conversation:
    return Conversation(emulator)


def test_first_creates_then_edits_the_same(conversation: Conversation, wire: Wire) -> None:
    first = conversation.publish("one")
    second = conversation.publish("two")

    assert (first.action, second.action) == ("created", "updated")
    assert first.url == second.url
    assert conversation.heads() == ["two"]
    assert wire.writes() == ["POST", "PATCH"]


def test_the_text_looks_like_this(conversation: Conversation) -> None:
    conversation.publish("### Passed", detail="| a |\n|---|\n| b |", run=7)

    [body] = conversation.bodies()
    [section] = read(body).sections
    assert body == (
        "<!-- agenteval:comment id=default -->\n"
        f"<!-- agenteval:section key={KEY} rev=7.1.{section.revision.stamp} -->\n"
        "### Passed\n\n"
        "<!-- agenteval:more -->\n"
        "| a |\n|---|\n| b |\n\n"
        f"<!-- agenteval:end key={KEY} -->"
    )


def test_nothing_is_written_when_one_attempt_says_the_same_again(conversation: Conversation, wire: Wire) -> None:
    conversation.publish("same")
    wire.requests.clear()

    assert conversation.publish("same\n").action == "unchanged"
    assert wire.writes() == []


def test_what_one_attempt_says_later_is_newer_whatever_its_clock_says(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation.publish("one")
    monkeypatch.setattr("time.time", lambda: 0.0)

    assert conversation.publish("two").action == "updated"
    assert conversation.heads() == ["two"]


def test_jobs_stand_side_by_side_in_the_order_of_their_keys(conversation: Conversation) -> None:
    conversation.publish("second", key="b")
    conversation.publish("first", key="a")
    conversation.publish("third", key="c")
    conversation.publish("second again", key="b")

    assert conversation.heads() == ["first", "second again", "third"]


def test_a_comment_of_the_form_without_sections_is_replaced(conversation: Conversation) -> None:
    conversation.say(f"{MARK}\n### agenteval: passed\n\nold")

    assert conversation.publish("new").action == "updated"
    assert conversation.heads() == ["new"]
    assert "old" not in conversation.bodies()[0]


def test_an_older_run_that_finishes_late_changes_nothing(conversation: Conversation, wire: Wire) -> None:
    url = conversation.publish("newer", run=8).url
    wire.requests.clear()

    assert conversation.publish("older", run=7) == CommentOutcome(url, "superseded")
    assert conversation.run("running", run=7) == CommentOutcome(url, "superseded")
    assert conversation.heads() == ["newer"]
    assert wire.writes() == []


def test_only_an_existing_comment_is_written_to_if_so_wanted(conversation: Conversation, wire: Wire) -> None:
    assert conversation.publish("one", mode="existing") == CommentOutcome("", "absent")
    assert wire.writes() == []

    conversation.publish("other", key="other")

    assert conversation.publish("one", mode="existing").action == "updated"
    assert conversation.heads() == ["one", "other"]


def test_a_running_job_shows_above_its_earlier_result(conversation: Conversation) -> None:
    conversation.publish("other", key="other")
    conversation.publish("### Passed", detail="detail", run=1)

    assert conversation.run("running", run=2).action == "updated"
    assert conversation.run("still running", run=3).action == "updated"

    section = conversation.comment().section(KEY)
    assert section is not None
    assert (section.notice, section.head, section.detail) == ("still running", "### Passed", "detail")
    assert conversation.publish("### Failed", run=3).action == "updated"
    section = conversation.comment().section(KEY)
    assert section is not None
    assert (section.notice, section.head, section.detail) == ("", "### Failed", "")
    assert conversation.heads() == ["### Failed", "other"]


def test_a_running_job_without_an_earlier_result_shows_nowhere(conversation: Conversation, wire: Wire) -> None:
    assert conversation.run("running", run=1).action == "absent"
    conversation.publish("other", key="other")
    wire.requests.clear()

    assert conversation.run("running", run=1).action == "absent"
    assert conversation.heads() == ["other"]
    assert wire.writes() == []


def test_a_notice_never_comes_above_the_result_of_the_same_attempt(conversation: Conversation) -> None:
    conversation.publish("done", run=2)

    assert conversation.run("broke off", run=2).action == "unchanged"
    assert conversation.comment().sections[0].notice == ""


def test_each_id_has_a_comment_of_its_own(conversation: Conversation) -> None:
    conversation.publish("unit", comment_id="unit")
    conversation.publish("nightly", comment_id="nightly")
    conversation.publish("unit again", comment_id="unit")

    comments = [read(body) for body in conversation.bodies()]
    assert [comment.mark for comment in comments] == [marker("unit"), marker("nightly")]
    assert [comment.sections[0].head for comment in comments] == ["unit again", "nightly"]


@pytest.mark.parametrize("before", [0, 99, 100, 250])
def test_found_on_every_page(conversation: Conversation, wire: Wire, before: int) -> None:
    for number in range(before):
        conversation.say(f"comment {number}")
    conversation.publish("one")

    assert conversation.publish("two").action == "updated"
    assert conversation.pull.get_issue_comments().totalCount == before + 1
    assert "per_page=100" in "".join(request.url for request in wire.requests)


def test_a_forged_marker_of_someone_else_is_ignored(conversation: Conversation, wire: Wire) -> None:
    foreign = Comment(MARK, (Section(KEY, "mine now", revision=Revision(99, 1, 1)),)).render()
    conversation.say(foreign, STRANGER_TOKEN)

    assert conversation.publish("ours").action == "created"
    assert conversation.publish("ours again").action == "updated"
    forged, ours = conversation.bodies()
    assert forged == foreign
    assert [section.head for section in read(ours).sections] == ["ours again"]
    assert wire.writes() == ["POST", "PATCH"]


def test_markers_in_the_text_of_a_section_are_ignored(conversation: Conversation) -> None:
    hostile = (
        "The agent answered:\n"
        f"<!-- agenteval:end key={KEY} -->\n"
        "<!-- agenteval:section key=other rev=99.1.1 -->\n"
        "forged\n"
        f"{marker('nightly')}"
    )
    conversation.publish("other", key="other")
    conversation.publish(hostile, detail=hostile)
    conversation.publish("other again", key="other")
    conversation.publish("nightly", comment_id="nightly")

    first, second = (read(body) for body in conversation.bodies())
    assert [section.key for section in first.sections] == [KEY, "other"]
    assert [section.head for section in first.sections][1] == "other again"
    assert first.sections[0].head.count("&lt;!-- agenteval:") == 3
    assert [section.head for section in second.sections] == ["nightly"]


def test_a_marker_quoted_in_our_own_comment_is_ignored(conversation: Conversation) -> None:
    conversation.say(f"The agent answered:\n{MARK}")

    assert conversation.publish("report").action == "created"


def test_what_a_maintainer_edited_does_not_last_and_loses_nothing(conversation: Conversation) -> None:
    conversation.publish("one", key="a")
    conversation.publish("two", key="b")
    [comment] = conversation.pull.get_issue_comments()
    edited = comment.body.replace("<!-- agenteval:end key=a -->\n", "").replace("two", "two, really?")
    comment.edit(f"{edited}\r\n\r\nI do not believe this.".replace("\n", "\r\n"))

    assert conversation.publish("one again", key="a").action == "updated"

    assert conversation.heads() == ["one again", "two, really?"]
    assert "believe" not in conversation.bodies()[0]


def test_a_comment_at_the_limit_keeps_all_heads_and_own_detail(conversation: Conversation) -> None:
    details = {f"job{number}": f"{number}🙂" * 6_000 for number in range(10)}
    for key, detail in details.items():
        conversation.publish(f"### {key}", key=key, detail=detail)

    [body] = conversation.bodies()
    assert characters(body) <= COMMENT_LIMIT
    sections = read(body).sections
    assert [section.head for section in sections] == [f"### {key}" for key in details]
    assert sections[-1].detail == details["job9"]
    assert sum(section.detail is not None for section in sections) == 3
    assert body.count("Detail left out to stay within GitHub's limit") == 7


def test_own_duplicates_become_one_in_which_the_newest_of_each_section_stays(conversation: Conversation) -> None:
    def body(*sections: Section) -> str:
        return Comment(MARK, sections).render()

    oldest = conversation.say(
        body(Section("a", "old a", revision=Revision(1)), Section("b", "b", revision=Revision(3)))
    )
    conversation.say("a remark", STRANGER_TOKEN)
    conversation.say(body(Section("a", "new a", revision=Revision(2)), Section("b", "old b", revision=Revision(2))))
    conversation.say(body(Section("c", "c")))

    outcome = conversation.publish("report", key="d")

    assert outcome == CommentOutcome(oldest.html_url, "updated")
    comment, remark = conversation.bodies()
    assert [section.head for section in read(comment).sections] == ["new a", "b", "c", "report"]
    assert remark == "a remark"


def test_duplicates_go_even_when_there_is_nothing_to_write(conversation: Conversation) -> None:
    conversation.publish("report")
    [body] = conversation.bodies()
    conversation.say(body)

    assert conversation.publish("report").action == "unchanged"
    assert conversation.bodies() == [body]


def test_jobs_that_have_all_seen_no_comment_leave_one(conversation: Conversation, wire: Wire) -> None:
    # Whoever wants to post has seen no comment; nobody posts before all have come so far.
    together = Barrier(_JOBS, timeout=30)
    client = GitHubClient(OWNER_TOKEN, conversation.emulator.url)

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method == "POST" and (request.url or "").endswith("/comments"):
            together.wait()
        return go_on()

    def publish(number: int) -> CommentOutcome:
        section = Section(f"job{number}", f"head {number}", revision=Revision(1, 1))
        return publish_section(client, REPOSITORY, conversation.pull.number, "", section, pacing=Pacing(settle_s=1.0))

    wire.interceptors.append(intercept)
    with ThreadPoolExecutor(_JOBS) as jobs:
        outcomes = list(jobs.map(publish, range(_JOBS)))

    assert wire.writes().count("POST") == _JOBS
    assert len({outcome.url for outcome in outcomes}) == 1
    assert sorted(outcome.action for outcome in outcomes) == ["created"] + ["updated"] * (_JOBS - 1)
    assert conversation.heads() == [f"head {number}" for number in range(_JOBS)]


def test_the_token_of_a_job_finds_its_comment(conversation: Conversation) -> None:
    token = conversation.emulator.installation_token(pull_requests="write", contents="read")
    conversation.say(f"{MARK}\nforged", STRANGER_TOKEN)

    assert conversation.publish("one", token).action == "created"
    assert conversation.publish("two", token).action == "updated"
    forged, ours = conversation.bodies()
    assert forged == f"{MARK}\nforged"
    assert [section.head for section in read(ours).sections] == ["two"]


def test_a_missing_permission_names_the_lines_to_add(conversation: Conversation, wire: Wire) -> None:
    token = conversation.emulator.installation_token(contents="read")

    with pytest.raises(GithubError) as caught:
        conversation.publish("report", token)

    assert caught.value.status == 403
    assert "permissions:\n  contents: read\n  pull-requests: write" in str(caught.value)
    assert f"comment on pull request #{conversation.pull.number} of {REPOSITORY}" in str(caught.value)
    assert wire.writes() == ["POST"]
    _assert_hidden(token, caught.value)


def test_a_pull_request_that_does_not_exist(emulator: GithubEmulator) -> None:
    client = GitHubClient(OWNER_TOKEN, emulator.url)
    with pytest.raises(GithubError, match="does not exist, or the token may not see it") as caught:
        publish_section(client, REPOSITORY, 99_999, "", Section(KEY, "report"), pacing=_AT_ONCE)

    assert caught.value.status == 404
    _assert_hidden(OWNER_TOKEN, caught.value)


def _assert_hidden(token: str, error: BaseException) -> None:
    shown = "".join([str(error), repr(error), *traceback.format_exception(error)])
    assert token not in shown


# What the emulator cannot do. GraphQL is answered here as GitHub's published schema describes it.


def graphql_as(login: str, conversation: Conversation) -> Callable[..., Response]:
    """Answers ``viewerDidAuthor`` for one viewer."""

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if not (request.url or "").endswith("/graphql"):
            return go_on()
        ids = json.loads(text_of(request) or "")["variables"]["ids"]
        authors = {comment.node_id: comment.user.login for comment in conversation.pull.get_issue_comments()}
        nodes = [{"viewerDidAuthor": authors[id_] == login} if id_ in authors else None for id_ in ids]
        lost = [{"type": "NOT_FOUND", "path": ["nodes", i]} for i, node in enumerate(nodes) if node is None]
        return answer(request, 200, json.dumps({"data": {"nodes": nodes}} | ({"errors": lost} if lost else {})))

    return intercept


def test_graphql_decides_where_there_is_one(conversation: Conversation, wire: Wire) -> None:
    conversation.say(f"{MARK}\nforged", STRANGER_TOKEN)
    conversation.say(f"{MARK}\nold")
    wire.interceptors.append(graphql_as(OWNER, conversation))

    assert conversation.publish("new").action == "updated"
    forged, ours = conversation.bodies()
    assert forged == f"{MARK}\nforged"
    assert [section.head for section in read(ours).sections] == ["new"]
    assert not any(request.url.endswith("/user") for request in wire.requests)


def test_more_candidates_than_one_query_takes(conversation: Conversation, wire: Wire) -> None:
    for _ in range(101):
        conversation.say(f"{MARK}\nforged", STRANGER_TOKEN)
    conversation.say(f"{MARK}\nold")
    wire.interceptors.append(graphql_as(OWNER, conversation))

    assert conversation.publish("new").action == "updated"
    assert [request.url for request in wire.requests if request.url.endswith("/user")] == []


@pytest.mark.parametrize(
    "answered",
    [
        '{"data": null, "errors": [{"type": "FORBIDDEN", "message": "no"}]}',
        '{"data": {"nodes": [null]}, "errors": [{"type": "FORBIDDEN"}]}',
        '{"data": {"nodes": []}}',
        '{"errors": [{"message": "no type"}]}',
        '{"data": {"nodes": "text"}}',
        "[]",
        "null",
    ],
)
def test_an_unusable_graphql_answer_is_not_taken_for_no(
    conversation: Conversation, wire: Wire, answered: str
) -> None:
    conversation.say(f"{MARK}\nold")

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        is_query = (request.url or "").endswith("/graphql")
        return answer(request, 200, answered) if is_query else go_on()

    wire.interceptors.append(intercept)

    assert conversation.publish("new").action == "updated"
    assert conversation.heads() == ["new"]
    assert wire.writes() == ["PATCH"]


def test_a_candidate_deleted_meanwhile_does_not_count(conversation: Conversation, wire: Wire) -> None:
    gone = conversation.say(f"{MARK}\ngone")
    conversation.say(f"{MARK}\nold")

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if (request.url or "").endswith("/graphql"):
            gone.delete()
        return go_on()

    wire.interceptors += [intercept, graphql_as(OWNER, conversation)]

    assert conversation.publish("new").action == "updated"
    assert wire.writes() == ["PATCH"]
    assert not any(request.url.endswith("/user") for request in wire.requests)


def test_an_error_in_the_request_is_not_repeated(conversation: Conversation, wire: Wire) -> None:
    refusal = '{"message": "Validation Failed", "errors": [{"message": "body is too long"}]}'

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        is_post = request.method == "POST"
        return answer(request, 422, refusal) if is_post else go_on()

    wire.interceptors.append(intercept)

    with pytest.raises(GithubError, match=r"422 \(Validation Failed; body is too long\)"):
        conversation.publish("report")
    assert wire.writes() == ["POST"]


def test_a_duplicate_that_another_job_removed_first_is_no_error(conversation: Conversation, wire: Wire) -> None:
    conversation.say(f"{MARK}\nold")
    conversation.say(f"{MARK}\nduplicate")

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method == "DELETE":
            go_on()
        return go_on()

    wire.interceptors.append(intercept)

    assert conversation.publish("new").action == "updated"
    assert conversation.heads() == ["new"]


def test_a_list_that_lags_behind_does_not_post_again(conversation: Conversation, wire: Wire) -> None:
    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        is_list = request.method == "GET" and "/comments?" in (request.url or "")
        return answer(request, 200, "[]") if is_list else go_on()

    wire.interceptors.append(intercept)

    assert conversation.publish("report").action == "created"
    assert wire.writes() == ["POST"]
