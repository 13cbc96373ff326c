"""The sticky comment against an independent emulation of GitHub."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import requests
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

from agenteval.github import thread
from agenteval.github.client import Client, GithubError
from agenteval.github.comment import CommentOutcome, marker, upsert

pytestmark = pytest.mark.peer

MARK = marker()
_JOBS = 8


class Conversation:
    """One pull request and those who write there."""

    def __init__(self, emulator: GithubEmulator) -> None:
        self.emulator = emulator
        self.pull = emulator.pull_request()

    def publish(self, body: str, token: str = OWNER_TOKEN, mark: str = MARK) -> CommentOutcome:
        return upsert(Client(token, self.emulator.url), REPOSITORY, self.pull.number, body, mark)

    def say(self, text: str, token: str = OWNER_TOKEN) -> IssueComment:
        pull = self.emulator.api(token).get_repo(REPOSITORY).get_pull(self.pull.number)
        return pull.create_issue_comment(text)

    def bodies(self) -> list[str]:
        return [comment.body for comment in self.pull.get_issue_comments()]


@pytest.fixture
def conversation(emulator: GithubEmulator) -> Conversation:
    return Conversation(emulator)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "_PAUSES_S", (0.0, 0.0))


def test_first_creates_then_edits_the_same(conversation: Conversation, wire: Wire) -> None:
    first = conversation.publish("one")
    second = conversation.publish("two")

    assert (first.action, second.action) == ("created", "updated")
    assert first.url == second.url
    assert conversation.bodies() == [f"{MARK}\ntwo"]
    assert wire.writes() == ["POST", "PATCH"]


def test_nothing_is_written_when_nothing_changed(conversation: Conversation, wire: Wire) -> None:
    conversation.publish("same")
    wire.requests.clear()

    assert conversation.publish("same\n").action == "unchanged"
    assert wire.writes() == []


def test_a_marker_already_in_front_is_not_doubled(conversation: Conversation) -> None:
    conversation.publish(f"{MARK}\ntext")

    assert conversation.bodies() == [f"{MARK}\ntext"]


def test_each_id_has_a_comment_of_its_own(conversation: Conversation) -> None:
    conversation.publish("unit", mark=marker("unit"))
    conversation.publish("nightly", mark=marker("nightly"))
    conversation.publish("unit again", mark=marker("unit"))

    assert conversation.bodies() == [f"{marker('unit')}\nunit again", f"{marker('nightly')}\nnightly"]


@pytest.mark.parametrize("before", [0, 99, 100, 131])
def test_found_on_every_page(conversation: Conversation, wire: Wire, before: int) -> None:
    for number in range(before):
        conversation.say(f"comment {number}")
    conversation.publish("one")

    assert conversation.publish("two").action == "updated"
    assert conversation.pull.get_issue_comments().totalCount == before + 1
    assert "per_page=100" in "".join(request.url for request in wire.requests)


def test_a_forged_marker_of_someone_else_is_ignored(conversation: Conversation, wire: Wire) -> None:
    forged = conversation.say(f"{MARK}\nmine now", STRANGER_TOKEN)

    assert conversation.publish("ours").action == "created"
    assert conversation.publish("ours again").action == "updated"
    assert conversation.bodies() == [forged.body, f"{MARK}\nours again"]
    assert wire.writes() == ["POST", "PATCH"]


def test_a_marker_quoted_in_our_own_comment_is_ignored(conversation: Conversation) -> None:
    conversation.say(f"The agent answered:\n{MARK}")

    assert conversation.publish("report").action == "created"


def test_own_duplicates_are_removed_and_the_oldest_stays(conversation: Conversation) -> None:
    oldest = conversation.say(f"{MARK}\nold")
    conversation.say("a remark", STRANGER_TOKEN)
    conversation.say(f"{MARK}\nnewer")
    conversation.say(f"{MARK}\nnewest")

    outcome = conversation.publish("report")

    assert outcome == CommentOutcome(oldest.html_url, "updated")
    assert conversation.bodies() == [f"{MARK}\nreport", "a remark"]


def test_duplicates_go_even_when_the_text_is_the_same(conversation: Conversation) -> None:
    conversation.say(f"{MARK}\nreport")
    conversation.say(f"{MARK}\nreport")

    assert conversation.publish("report").action == "unchanged"
    assert conversation.bodies() == [f"{MARK}\nreport"]


def test_racing_jobs_leave_one_comment(conversation: Conversation, wire: Wire) -> None:
    # Whoever wants to post has seen no comment; nobody posts before all have come so far.
    together = Barrier(_JOBS, timeout=30)

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method == "POST" and (request.url or "").endswith("/comments"):
            together.wait()
        return go_on()

    wire.interceptors.append(intercept)
    with ThreadPoolExecutor(_JOBS) as jobs:
        outcomes = list(jobs.map(lambda number: conversation.publish(f"job {number}"), range(_JOBS)))

    assert wire.writes().count("POST") == _JOBS

    assert len({outcome.url for outcome in outcomes}) == 1
    [body] = conversation.bodies()
    assert body in {f"{MARK}\njob {number}" for number in range(_JOBS)}


def test_the_token_of_a_job_finds_its_comment(conversation: Conversation) -> None:
    token = conversation.emulator.installation_token(pull_requests="write", contents="read")
    conversation.say(f"{MARK}\nforged", STRANGER_TOKEN)

    assert conversation.publish("one", token).action == "created"
    assert conversation.publish("two", token).action == "updated"
    assert conversation.bodies() == [f"{MARK}\nforged", f"{MARK}\ntwo"]


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
    with pytest.raises(GithubError, match="does not exist, or the token may not see it") as caught:
        upsert(Client(OWNER_TOKEN, emulator.url), REPOSITORY, 99_999, "report", MARK)

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
    assert conversation.bodies() == [f"{MARK}\nforged", f"{MARK}\nnew"]
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
    assert conversation.bodies() == [f"{MARK}\nnew"]
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


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("failure", ["502", "reset", "timeout"])
def test_a_lost_answer_posts_nothing_twice(
    conversation: Conversation, wire: Wire, failure: str, arrives: bool
) -> None:
    failures = [failure]

    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        if request.method != "POST" or (request.url or "").endswith("/graphql") or not failures:
            return go_on()
        kind = failures.pop()
        if arrives:
            go_on()
        if kind == "reset":
            raise requests.ConnectionError("connection reset by peer")
        if kind == "timeout":
            raise requests.ReadTimeout("timed out")
        return answer(request, 502, '{"message": "Server Error"}')

    wire.interceptors.append(intercept)

    assert conversation.publish("report").action == "created"
    assert conversation.bodies() == [f"{MARK}\nreport"]
    assert wire.writes() == (["POST"] if arrives else ["POST", "POST"])


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
    assert conversation.bodies() == [f"{MARK}\nnew"]


def test_a_list_that_lags_behind_does_not_post_again(conversation: Conversation, wire: Wire) -> None:
    def intercept(request: PreparedRequest, go_on: Callable[[], Response]) -> Response:
        is_list = request.method == "GET" and "/comments?" in (request.url or "")
        return answer(request, 200, "[]") if is_list else go_on()

    wire.interceptors.append(intercept)

    assert conversation.publish("report").action == "created"
    assert wire.writes() == ["POST"]
