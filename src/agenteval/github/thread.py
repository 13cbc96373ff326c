"""The comments of one pull request, as PyGithub gives them and as one identity sees them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from github import Github, GithubException, UnknownObjectException
from github.IssueComment import IssueComment
from requests import ConnectionError as Disconnected
from requests import Timeout

# Seconds before looking whether a comment has arrived whose answer was lost, and posting it again if not.
_PAUSES_S = (1.0, 4.0)
_MAX_NODES = 100
_AUTHORSHIP = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { viewerDidAuthor } } }"


class Thread:
    """The conversation of one pull request.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        pull_request: its number.
    """

    def __init__(self, api: Github, repository: str, pull_request: int) -> None:
        self._api = api
        self._pull = api.get_repo(repository).get_pull(pull_request)

    def own(self, mark: str) -> list[IssueComment]:
        """Our own comments that begin with the marker, oldest first."""
        # Only the very beginning counts: a report quotes text that may contain anything.
        marked = [c for c in self._pull.get_issue_comments() if (c.body or "").startswith(mark)]
        return sorted(_authored(self._api, marked), key=lambda comment: comment.id) if marked else []

    def post(self, text: str, mark: str) -> IssueComment:
        """A new comment. When an answer is lost, looks whether the comment arrived before posting again."""
        for pause_s in _PAUSES_S:
            try:
                return self._pull.create_issue_comment(text)
            except GithubException as error:
                if error.status < 500:
                    raise
            except (Disconnected, Timeout):
                pass
            time.sleep(pause_s)
            if arrived := self.own(mark):
                return arrived[0]
        return self._pull.create_issue_comment(text)

    def remove(self, comment: IssueComment) -> None:
        """Deletes a comment, unless a job we raced with was faster."""
        with suppress(UnknownObjectException):
            comment.delete()


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
