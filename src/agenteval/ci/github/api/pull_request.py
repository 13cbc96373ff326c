"""What people did with a pull request: labels, reviews and commits, as GitHub recorded them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, TypeAdapter

from agenteval.ci.github.api.client import GithubError

if TYPE_CHECKING:
    from github import Github

PERMISSIONS = ("pull-requests: read",)
_PER_PAGE = 100
_PAGES = 30


class _Named(BaseModel):
    name: str | None = None


class _User(BaseModel):
    login: str = Field(max_length=100)


class LabelEvent(BaseModel):
    """One event of a pull request; other kinds of events have no label."""

    event: str | None = None
    created_at: datetime
    actor: _User | None = None
    label: _Named | None = None

    @property
    def by(self) -> str:
        """Login of the person; empty for a deleted account."""
        return self.actor.login if self.actor else ""

    @property
    def label_name(self) -> str:
        """Name of the label as it is written; empty for other events."""
        return (self.label.name if self.label else None) or ""

    @property
    def is_set(self) -> bool:
        """Whether the event set the label."""
        return self.event == "labeled"


class Review(BaseModel):
    """One review; GitHub records the commit that was the head at that time."""

    user: _User | None = None
    body: str | None = None
    state: str
    commit_id: str | None = None

    @property
    def by(self) -> str:
        """Login of the person; empty for a deleted account."""
        return self.user.login if self.user else ""


class _Message(BaseModel):
    message: str


class Commit(BaseModel):
    """One commit; its author and its date are texts that anybody can choose."""

    sha: str
    commit: _Message


def newest_label_events(api: Github, repository: str, number: int) -> dict[str, LabelEvent]:
    """Return for each label of a pull request the last time that it was set or removed, by the label's key.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        number: number of the pull request.

    Raises:
        GithubException: GitHub refuses.
        GithubError: there are too many events to read the newest one.
        ValidationError: the response does not match GitHub's documentation.
    """
    found: dict[str, LabelEvent] = {}
    for page in _pages(api, f"/repos/{repository}/issues/{number}/events"):
        for event in TypeAdapter(list[LabelEvent]).validate_python(page):
            if event.label is not None and event.label.name and event.event in {"labeled", "unlabeled"}:
                found[label_key(event.label.name)] = event
    return found


def label_key(name: str) -> str:
    """Return what tells a label from others: on GitHub, capitals do not."""
    return name.casefold()


def reviews_of(api: Github, repository: str, number: int) -> list[Review]:
    """Return the reviews of a pull request, the oldest first; see `newest_label_events`."""
    pages = _pages(api, f"/repos/{repository}/pulls/{number}/reviews")
    return [review for page in pages for review in TypeAdapter(list[Review]).validate_python(page)]


def commits_of(api: Github, repository: str, number: int) -> list[Commit]:
    """Return the commits of a pull request, the oldest first, at most 250; see `newest_label_events`."""
    pages = _pages(api, f"/repos/{repository}/pulls/{number}/commits")
    return [commit for page in pages for commit in TypeAdapter(list[Commit]).validate_python(page)]


def _pages(api: Github, path: str) -> Iterator[list[Any]]:
    for page in range(1, _PAGES + 1):
        sent = {"per_page": str(_PER_PAGE), "page": str(page)}
        _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=sent)
        items = TypeAdapter(list[Any]).validate_python(answer)
        yield items
        if len(items) < _PER_PAGE:
            return
    # The newest items are the last ones, and one of them can withdraw what is known.
    raise GithubError(f"{path} lists more than {_PAGES * _PER_PAGE:,} items, which are too many to read all of them")
