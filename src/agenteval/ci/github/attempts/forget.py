"""The label that makes agenteval forget the earlier attempts of a pull request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter

from agenteval.ci.github.api.client import Client, GithubError

if TYPE_CHECKING:
    from github import Github

FORGET = "agenteval: forget"
PERMISSIONS = ("pull-requests: read",)
_PER_PAGE = 100
_PAGES = 10
_MAY_WRITE = frozenset({"admin", "write"})
_NOT_FOUND = 404


@dataclass(frozen=True)
class Forgetting:
    """The label on a pull request.

    Attributes:
        by: who set it.
        at: when; attempts that are older are forgotten.
        is_allowed: whether this person may write to the repository.
    """

    by: str
    at: datetime
    is_allowed: bool


class _Named(BaseModel):
    name: str | None = None


class _Actor(BaseModel):
    login: str = Field(max_length=100)


class _Event(BaseModel):
    """One event of a pull request; other kinds of events have no label."""

    event: str | None = None
    created_at: datetime
    actor: _Actor | None = None
    label: _Named | None = None


class _Permission(BaseModel):
    permission: str


def forgetting(client: Client, repository: str, number: int) -> Forgetting | None:
    """Return who set the label, if the pull request has it.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        number: number of the pull request.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
        ValidationError: the response does not match GitHub's documentation.
    """
    with client.open(f"read the labels of pull request #{number}", PERMISSIONS) as api:
        newest = _newest(api, repository, number)
    if newest is None or newest.event != "labeled":
        return None
    # A deleted account has no login.
    login = newest.actor.login if newest.actor else ""
    return Forgetting(login or "an unknown user", newest.created_at, _may_write(client, repository, login))


def _newest(api: Github, repository: str, number: int) -> _Event | None:
    """Return the last time that the label was set or removed."""
    found: _Event | None = None
    for page in range(1, _PAGES + 1):
        sent = {"per_page": str(_PER_PAGE), "page": str(page)}
        path = f"/repos/{repository}/issues/{number}/events"
        _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=sent)
        events = TypeAdapter(list[_Event]).validate_python(answer)
        for event in events:
            named = event.label is not None and event.label.name == FORGET
            if named and event.event in {"labeled", "unlabeled"}:
                found = event
        if len(events) < _PER_PAGE:
            break
    return found


def _may_write(client: Client, repository: str, login: str) -> bool:
    if not login:
        return False
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        with client.open(f"read the permission of {login}", ("metadata: read",)) as api:
            _, answer = api.requester.requestJsonAndCheck("GET", path)
    except GithubError as error:
        # Apps and strangers are no collaborators.
        if error.status == _NOT_FOUND:
            return False
        raise
    return _Permission.model_validate(answer).permission in _MAY_WRITE
