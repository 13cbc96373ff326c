"""Writes comments and check runs with PyGithub. Slow to import."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from github import Github, GithubException, RateLimitExceededException, UnknownObjectException
from github.CheckRun import CheckRun as GithubCheckRun
from github.IssueComment import IssueComment
from github.Repository import Repository
from github.Requester import Requester
from requests import RequestException

from agenteval.github import check_run
from agenteval.github.check_run import CheckRun
from agenteval.github.client import GitHubClient
from agenteval.github.comment_update import GoneError, Posted, UnansweredError
from agenteval.github.connection import MAX_WAIT_S
from agenteval.report.overview import Annotation

_MAX_NODES = 100
_AUTHORSHIP = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { viewerDidAuthor } } }"


class Thread:
    """The author's comments with one marker on one pull request.

    The connection retries reads. Writes are not retried, because a delayed text is outdated and the caller must read
    again first. A context manager, because writes need a separate connection.

    Args:
        mark: the first line of the comments. Later lines do not count, because a report can quote any text.
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
        """Return the author's comments that begin with the marker, lowest id first, from all pages."""
        marked = [c for c in self._pull.get_issue_comments() if (c.body or "").startswith(self._mark)]
        unknown = [comment for comment in marked if comment.id not in self._authorship]
        if unknown:
            own_ids = {comment.id for comment in _authored(self._api, unknown)}
            self._authorship |= {comment.id: comment.id in own_ids for comment in unknown}
        found = {comment.id: _posted(comment) for comment in marked if self._authorship[comment.id]}
        # The list can lag behind a new comment.
        found |= {id_: comment for id_, comment in self._still_there() if id_ not in found}
        return [found[id_] for id_ in sorted(found)]

    def look(self, comment: Posted) -> Posted:
        """Return the current comment; raise :class:`GoneError` if it was deleted."""
        try:
            return _posted(self._pull.get_issue_comment(comment.id))
        except UnknownObjectException:
            self._posted.pop(comment.id, None)
            raise GoneError from None

    def post(self, text: str) -> Posted:
        """Create a comment and return it as GitHub stored it; raise :class:`UnansweredError` if that is unknown."""
        with _answered():
            _, data = self._once.requestJsonAndCheck("POST", f"{self._pull.issue_url}/comments", input={"body": text})
        stored = _stored(data)
        self._authorship[stored.id] = True
        self._posted[stored.id] = stored
        return stored

    def edit(self, comment: Posted, text: str) -> Posted:
        """Replace the text of a comment and return it as GitHub stored it; raise as :meth:`look` and :meth:`post`."""
        url = self._pull.get_issue_comment(comment.id).url
        try:
            with _answered():
                _, data = self._once.requestJsonAndCheck("PATCH", url, input={"body": text})
        except UnknownObjectException:
            self._posted.pop(comment.id, None)
            raise GoneError from None
        return _stored(data)

    def remove(self, comment: Posted) -> None:
        """Delete a comment, if it still exists."""
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
    """Distinguish a rejected write from one with an unknown result or one to repeat later."""
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
    asked = {name.lower(): text for name, text in (error.headers or {}).items()}.get("retry-after", "")
    if error.status >= 500:
        return float(asked) if asked.isdigit() else 0.0
    if error.status == 429 or isinstance(error, RateLimitExceededException) or (error.status == 403 and asked):
        # GitHub recommends at least a minute if the response has no time.
        return float(asked) if asked.isdigit() else float(MAX_WAIT_S)
    return None


def _authored(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment]:
    """Return the comments of this token's author, by the most reliable method for the token."""
    own = _by_viewer(api, comments)
    if own is None:
        own = _by_login(api, comments)
    if own is None:
        # An app's token on a server without GraphQL cannot ask for its login, but its author is a bot.
        own = [comment for comment in comments if comment.user and comment.user.type == "Bot"]
    return own


def _by_viewer(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment] | None:
    """Ask GraphQL, which works for every kind of token; return ``None`` without a usable response."""
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
    """Return ``viewerDidAuthor`` of each requested node, in order; empty without a usable response."""
    try:
        # A deleted comment is null; null can also have other reasons.
        if any(error["type"] != "NOT_FOUND" for error in answer.get("errors", [])):
            return []
        return [bool(node and node["viewerDidAuthor"]) for node in answer["data"]["nodes"]]
    except (AttributeError, KeyError, TypeError):
        return []


def _by_login(api: Github, comments: Sequence[IssueComment]) -> list[IssueComment] | None:
    """Compare logins; return ``None`` if the token cannot request its login."""
    try:
        login = api.get_user().login
    except GithubException:
        return None
    return [comment for comment in comments if comment.user and comment.user.login == login]


T = TypeVar("T")

# Seconds to wait after a lost response, before checking for the effect and sending the request again.
_PAUSES_S = (1.0, 2.0, 4.0)
_INVALID = 422
_REFUSED = "GitHub refused the texts of this check run. The job summary has the report, and the log says why."


def start_check(
    client: GitHubClient, repository: str, commit: str, name: str, *, details_url: str, external_id: str, summary: str
) -> CheckRun:
    """Create a check run in progress; after a lost response, return the one that was created.

    Args:
        name: name of the check run; the same in every run, so that a branch can require it.
    """
    body = check_run.creation(commit, name, details_url, external_id, summary)
    with client.open(f"create a check run on {commit} of {repository}", check_run.PERMISSIONS) as api:
        place = api.get_repo(repository)

        def arrived() -> GithubCheckRun | None:
            known = place.get_commit(commit).get_check_runs(check_name=name, filter="all")
            return next((run for run in known if run.external_id == external_id), None)

        run = _once(lambda: place.create_check_run(**body), arrived)
        return CheckRun(run.id, run.html_url, external_id, commit, name)


def finish_check(
    client: GitHubClient,
    repository: str,
    check: CheckRun,
    *,
    conclusion: check_run.Conclusion,
    title: str,
    summary: str,
    text: str,
    annotations: Sequence[Annotation],
) -> None:
    """Add the annotations and complete the check run, even if annotations are rejected.

    Of all check runs of this name on the commit, each shows the worst verdict then. If a text is too long, nothing is
    sent: see :func:`.check_run.updates`.
    """
    *additions, completion = check_run.updates(conclusion, title, summary, text, annotations, start=check.external_id)
    with client.open(f"complete check run {check.id} of {repository}", check_run.PERMISSIONS) as api:
        try:
            _add(api, repository, check.id, additions)
        finally:
            place = api.get_repo(repository)
            if check.name:
                _complete(place, check, completion)
            else:
                _edit(place.get_check_run(check.id), completion)


def abandon_check(client: GitHubClient, repository: str, check_id: int, summary: str) -> bool:
    """Complete a check run as cancelled, unless it is completed; return whether it was open."""
    body = check_run.abandonment(summary)
    with client.open(f"complete check run {check_id} of {repository}", check_run.PERMISSIONS) as api:
        run = api.get_repo(repository).get_check_run(check_id)
        if run.status == "completed":
            return False
        run.edit(**body)
        return True


def _complete(place: Repository, check: CheckRun, completion: dict[str, Any]) -> None:
    """Complete a check run, so that all of this name on the commit show the worst verdict."""
    run = place.get_check_run(check.id)
    own: check_run.Conclusion = completion["conclusion"]
    try:
        found = _of_name(place, check)
    except Exception:
        _edit(run, check_run.undecided(completion, own))
        raise
    _edit(run, check_run.decided(completion, own, check.id, found))
    # Another job can have completed its check run after the list was made.
    for other_id, body in check_run.corrections(_of_name(place, check), check.id):
        place.get_check_run(other_id).edit(**body)


def _edit(run: GithubCheckRun, body: dict[str, Any]) -> None:
    """Complete a check run; if GitHub refuses the texts, with the verdict alone."""
    try:
        run.edit(**body)
    except GithubException as error:
        if error.status == _INVALID:
            run.edit(**body | {"output": {"title": body["output"]["title"], "summary": _REFUSED}})
        raise


def _of_name(place: Repository, check: CheckRun) -> list[check_run.Shown]:
    runs = place.get_commit(check.commit).get_check_runs(check_name=check.name, filter="all")
    return [shown for run in runs if (shown := check_run.read(run)) is not None]


def _add(api: Github, repository: str, check_id: int, additions: Sequence[dict[str, Any]]) -> None:
    """Add annotations. If GitHub rejects some as invalid, continue and raise the error at the end."""
    refusal: GithubException | None = None
    added = 0
    with _not_repeating(api) as once:
        for body in additions:
            after = added + len(body["output"]["annotations"])
            try:
                _add_once(once, repository, check_id, body, after)
            except GithubException as error:
                if error.status != _INVALID:
                    raise
                refusal = refusal or error
            else:
                added = after
    if refusal:
        raise refusal


def _add_once(api: Github, repository: str, check_id: int, body: dict[str, Any], after: int) -> None:
    place = api.get_repo(repository)

    def write() -> bool:
        place.get_check_run(check_id).edit(**body)
        return True

    def arrived() -> bool | None:
        return place.get_check_run(check_id).output.annotations_count >= after or None

    _once(write, arrived)


@contextmanager
def _not_repeating(api: Github) -> Iterator[Github]:
    """Return the connection without retries of PATCH, because GitHub appends annotations."""
    settings = api.requester.kwargs
    retry = settings["retry"].new(allowed_methods=frozenset({"GET", "HEAD"}))
    with Github(**settings | {"retry": retry}) as once:
        yield once


def _once(write: Callable[[], T], arrived: Callable[[], T | None]) -> T:
    """Write; after a lost response, check for the effect before writing again."""
    for pause_s in _PAUSES_S:
        try:
            return write()
        except GithubException as error:
            if error.status < 500:
                raise
            lost: Exception = error
        except RequestException as error:
            lost = error
        time.sleep(pause_s)
        if (found := arrived()) is not None:
            return found
    raise lost
