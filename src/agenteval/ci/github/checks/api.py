"""Writes check runs with PyGithub. Requests that create or append are never sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from github import Github, GithubException
from github.CheckRun import CheckRun
from github.Repository import Repository
from requests import RequestException

from agenteval.ci.github.checks import shared

T = TypeVar("T")

# Seconds to wait after a lost response, before checking for the effect and sending the request again.
_PAUSES_S = (1.0, 2.0, 4.0)
_INVALID = 422
_REFUSED = "GitHub refused the texts of this check run. The job summary has the report, and the log says why."


def create(api: Github, repository: str, body: dict[str, Any]) -> CheckRun:
    """Create a check run; after a lost response, return the one that was created.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        body: body of the request.
    """
    place = api.get_repo(repository)

    def arrived() -> CheckRun | None:
        known = place.get_commit(body["head_sha"]).get_check_runs(check_name=body["name"], filter="all")
        return next((run for run in known if run.external_id == body["external_id"]), None)

    return _once(lambda: place.create_check_run(**body), arrived)


def finish(
    api: Github, repository: str, check_id: int, bodies: Sequence[dict[str, Any]], name: shared.CheckName | None
) -> None:
    """Send every body in order; the last one is sent even if others fail.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        check_id: id of the check run.
        bodies: bodies of the requests; all except the last one add annotations.
        name: what it has in common with those of other jobs; ``None`` if it is alone.
    """
    *additions, completion = bodies
    try:
        _add(api, repository, check_id, additions)
    finally:
        place = api.get_repo(repository)
        if name is None:
            _edit(place.get_check_run(check_id), completion)
        else:
            _complete(place, check_id, completion, name)


def _complete(place: Repository, check_id: int, completion: dict[str, Any], name: shared.CheckName) -> None:
    """Complete a check run, so that all of this name on the commit show the worst verdict."""
    run = place.get_check_run(check_id)
    own: shared.Conclusion = completion["conclusion"]
    try:
        found = _of_name(place, name)
    except Exception:
        _edit(run, shared.undecided(completion, own))
        raise
    _edit(run, shared.decided(completion, own, check_id, found))
    # Another job can have completed its check run after the list was made.
    for other_id, body in shared.corrections(_of_name(place, name), check_id):
        place.get_check_run(other_id).edit(**body)


def _edit(run: CheckRun, body: dict[str, Any]) -> None:
    """Complete a check run; if GitHub refuses the texts, with the verdict alone."""
    try:
        run.edit(**body)
    except GithubException as error:
        if error.status == _INVALID:
            run.edit(**body | {"output": {"title": body["output"]["title"], "summary": _REFUSED}})
        raise


def _of_name(place: Repository, name: shared.CheckName) -> list[shared.Shown]:
    runs = place.get_commit(name.commit).get_check_runs(check_name=name.name, filter="all")
    return [shown for run in runs if (shown := shared.read(run)) is not None]


def abandon(api: Github, repository: str, check_id: int, body: dict[str, Any]) -> bool:
    """Send the body unless the check run is completed; return whether it was sent."""
    run = api.get_repo(repository).get_check_run(check_id)
    if run.status == "completed":
        return False
    run.edit(**body)
    return True


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
    """Write; after a lost response, check for the effect before writing again.

    Raises:
        GithubException: GitHub refused, or all attempts failed.
        RequestException: GitHub could not be reached.
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
