"""Check runs as PyGithub writes them. What creates or adds is never done twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from github import Github, GithubException
from github.CheckRun import CheckRun
from requests import RequestException

T = TypeVar("T")

# Seconds before looking whether a request has arrived whose answer was lost, and sending it again if not.
_PAUSES_S = (1.0, 2.0, 4.0)
_INVALID = 422


def create(api: Github, repository: str, body: dict[str, Any]) -> CheckRun:
    """A new check run; the one that arrived where the answer was lost.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        body: of the request.
    """
    place = api.get_repo(repository)

    def arrived() -> CheckRun | None:
        known = place.get_commit(body["head_sha"]).get_check_runs(check_name=body["name"], filter="all")
        return next((run for run in known if run.external_id == body["external_id"]), None)

    return _once(lambda: place.create_check_run(**body), arrived)


def finish(api: Github, repository: str, check_id: int, bodies: Sequence[dict[str, Any]]) -> None:
    """Sends every body in turn, the last one whatever becomes of the others.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        check_id: of the check run.
        bodies: of the requests; all but the last one add annotations.
    """
    *additions, completion = bodies
    try:
        _add(api, repository, check_id, additions)
    finally:
        api.get_repo(repository).get_check_run(check_id).edit(**completion)


def abandon(api: Github, repository: str, check_id: int, body: dict[str, Any]) -> bool:
    """Sends the body if the check run is not completed; says whether it did."""
    run = api.get_repo(repository).get_check_run(check_id)
    if run.status == "completed":
        return False
    run.edit(**body)
    return True


def _add(api: Github, repository: str, check_id: int, additions: Sequence[dict[str, Any]]) -> None:
    """Adds annotations. Goes on where GitHub finds one of them invalid, and raises its refusal in the end."""
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
    """The same connection, but it does not send a PATCH again: GitHub appends annotations to those it has."""
    settings = api.requester.kwargs
    retry = settings["retry"].new(allowed_methods=frozenset({"GET", "HEAD"}))
    with Github(**settings | {"retry": retry}) as once:
        yield once


def _once(write: Callable[[], T], arrived: Callable[[], T | None]) -> T:
    """Writes; when the answer is lost, looks for what may have arrived before writing again.

    Raises:
        GithubException: GitHub refused, or failed each time.
        RequestException: it could not be reached.
    """
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
