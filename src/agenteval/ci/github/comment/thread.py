"""The comments of one pull request, as PyGithub gives them and as one identity sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from github import Github, GithubException, RateLimitExceededException, UnknownObjectException
from github.IssueComment import IssueComment
from github.Requester import Requester
from requests import RequestException

from agenteval.ci.github.api.connection import MAX_WAIT_S
from agenteval.ci.github.comment.update import GoneError, Posted, UnansweredError

_MAX_NODES = 100
_AUTHORSHIP = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { viewerDidAuthor } } }"


class Thread:
    """Our own comments with one marker in the conversation of one pull request.

    Reads are repeated as the connection does it. Writes are not: text that waited for its turn is out of date, so
    the caller has to look again first. A context manager, as the writes need a connection of their own.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        pull_request: its number.
        mark: the beginning of the comments. Only the very beginning counts: a report quotes text that may contain
            anything.
    """

    def __init__(self, api: Github, repository: str, pull_request: int, mark: str) -> None:
        self._api = api
        self._pull = api.get_repo(repository).get_pull(pull_request)
        self._mark = mark
        self._once = Requester(**{**api.requester.kwargs, "retry": None})
        self._authorship: dict[int, bool] = {}
        self._posted: dict[int, Posted] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._once.close()

    def own(self) -> list[Posted]:
        """Our own comments that begin with the marker, lowest id first; all pages are read."""
        marked = [c for c in self._pull.get_issue_comments() if (c.body or "").startswith(self._mark)]
        unknown = [comment for comment in marked if comment.id not in self._authorship]
        if unknown:
            own_ids = {comment.id for comment in _authored(self._api, unknown)}
            self._authorship |= {comment.id: comment.id in own_ids for comment in unknown}
        found = {comment.id: _posted(comment) for comment in marked if self._authorship[comment.id]}
        # The list can lag behind what we have just posted.
        found |= {id_: comment for id_, comment in self._still_there() if id_ not in found}
        return [found[id_] for id_ in sorted(found)]

    def look(self, comment: Posted) -> Posted:
        """The comment as it is now.

        Raises:
            GoneError: it was deleted.
        """
        try:
            return _posted(self._pull.get_issue_comment(comment.id))
        except UnknownObjectException:
            self._posted.pop(comment.id, None)
            raise GoneError from None

    def post(self, text: str) -> Posted:
        """A new comment, as GitHub stored it.

        Raises:
            UnansweredError: it may be there or not.
        """
        with _answered():
            _, data = self._once.requestJsonAndCheck("POST", f"{self._pull.issue_url}/comments", input={"body": text})
        stored = _stored(data)
        self._authorship[stored.id] = True
        self._posted[stored.id] = stored
        return stored

    def edit(self, comment: Posted, text: str) -> Posted:
        """Replaces the text of a comment; returns it as GitHub stored it.

        Raises:
            UnansweredError: it may have happened or not.
            GoneError: the comment was deleted.
        """
        url = self._pull.get_issue_comment(comment.id).url
        try:
            with _answered():
                _, data = self._once.requestJsonAndCheck("PATCH", url, input={"body": text})
        except UnknownObjectException:
            self._posted.pop(comment.id, None)
            raise GoneError from None
        return _stored(data)

    def remove(self, comment: Posted) -> None:
        """Deletes a comment, unless a job we raced with was faster."""
        self._posted.pop(comment.id, None)
        with suppress(UnknownObjectException):
            self._pull.get_issue_comment(comment.id).delete()

    def _still_there(self) -> Iterator[tuple[int, Posted]]:
        for comment in list(self._posted.values()):
            with suppress(GoneError):
                yield comment.id, self.look(comment)


def _posted(comment: IssueComment) -> Posted:
    return Posted(comment.id, comment.html_url, comment.body or "")


def _stored(data: Any) -> Posted:
    try:
        return Posted(data["id"], data["html_url"], data["body"])
    except (KeyError, TypeError):
        cause = GithubException(200, message="the answer is not a comment")
        raise UnansweredError(cause) from cause


@contextmanager
def _answered() -> Iterator[None]:
    """Tells a write that GitHub refused from one whose fate is unknown or that may come again later."""
    try:
        yield
    except GithubException as error:
        wait_s = _wait_s(error)
        if wait_s is None or wait_s > MAX_WAIT_S:
            raise
        raise UnansweredError(error, wait_s) from error
    except RequestException as error:
        raise UnansweredError(error) from error


def _wait_s(error: GithubException) -> float | None:
    """Seconds to wait before trying again; ``None`` when that has no use."""
    asked = {name.lower(): text for name, text in (error.headers or {}).items()}.get("retry-after", "")
    if error.status >= 500:
        return float(asked) if asked.isdigit() else 0.0
    if error.status == 429 or isinstance(error, RateLimitExceededException) or (error.status == 403 and asked):
        # GitHub's advice where it does not say how long: at least a minute.
        return float(asked) if asked.isdigit() else float(MAX_WAIT_S)
    return None


def _authored(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment]:
    """Those of the comments that were written with our identity, by the surest way this token has."""
    own = _by_viewer(api, comments)
    if own is None:
        own = _by_login(api, comments)
    if own is None:
        # The token of an app, on a server without GraphQL: it may not ask who it is, but it is a bot.
        own = [comment for comment in comments if comment.user and comment.user.type == "Bot"]
    return own


def _by_viewer(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment] | None:
    """Asks GraphQL, which knows for every kind of token; ``None`` where it gives no usable answer."""
    own: list[IssueComment] = []
    for start in range(0, len(comments), _MAX_NODES):
        some = comments[start : start + _MAX_NODES]
        question = {"query": _AUTHORSHIP, "variables": {"ids": [comment.node_id for comment in some]}}
        try:
            _, answer = api.requester.requestJsonAndCheck("POST", api.requester.graphql_url, input=question)
        except GithubException:
            return None
        flags = _viewer_flags(answer)
        if len(flags) != len(some):
            return None
        own += [comment for comment, is_own in zip(some, flags, strict=True) if is_own]
    return own


def _viewer_flags(answer: Any) -> list[bool]:
    """``viewerDidAuthor`` of each node asked for, in their order; empty when the answer is not usable."""
    try:
        # A comment that was deleted meanwhile is null; null for any other reason says nothing about it.
        if any(error["type"] != "NOT_FOUND" for error in answer.get("errors", [])):
            return []
        return [bool(node and node["viewerDidAuthor"]) for node in answer["data"]["nodes"]]
    except (AttributeError, KeyError, TypeError):
        return []


def _by_login(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment] | None:
    """Compares logins; ``None`` when the token may not ask for its own."""
    try:
        login = api.get_user().login
    except GithubException:
        return None
    return [comment for comment in comments if comment.user and comment.user.login == login]
