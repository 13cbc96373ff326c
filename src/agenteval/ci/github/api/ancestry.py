"""Ancestors of a commit, from GitHub's API."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

if TYPE_CHECKING:
    from github import Github

_PER_PAGE = 100


class _Parent(BaseModel):
    sha: str


class _Commit(BaseModel):
    sha: str
    parents: list[_Parent]


class _Comparison(BaseModel):
    merge_base_commit: _Commit
    ahead_by: int


def merge_base(api: Github, repository: str, base: str, head: str) -> str:
    """Return the merge base of a branch and a commit.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        base: a branch or a commit.
        head: a commit, also one of a fork.

    Raises:
        GithubException: one of them does not exist, or they have no common commit.
        ValidationError: the response does not match GitHub's documentation.
    """
    return _compared(api, repository, base, head).merge_base_commit.sha


def distance(api: Github, repository: str, earlier: str, later: str) -> int | None:
    """Return how many commits a commit has more than its ancestor; ``None`` if the other one is no ancestor.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        earlier: the commit that may be the ancestor; it need not exist any more.
        later: the other commit.

    Raises:
        GithubException: GitHub refuses.
        ValidationError: the response does not match GitHub's documentation.
    """
    from github import UnknownObjectException

    try:
        found = _compared(api, repository, earlier, later)
    except UnknownObjectException:
        return None
    return found.ahead_by if found.merge_base_commit.sha == earlier else None


def parents(api: Github, repository: str, commit: str) -> tuple[str, ...]:
    """Return the parents of a commit.

    Raises:
        GithubException: the commit does not exist.
        ValidationError: the response does not match GitHub's documentation.
    """
    return tuple(parent.sha for found in _listed(api, repository, commit, 1)[:1] for parent in found.parents)


def first_parents(api: Github, repository: str, commit: str) -> tuple[str, ...]:
    """Return a commit and its first parents, nearest first, as far as one page of commits contains them.

    Raises:
        GithubException: the commit does not exist.
        ValidationError: the response does not match GitHub's documentation.
    """
    known = {found.sha: found for found in _listed(api, repository, commit, _PER_PAGE)}
    states: list[str] = []
    while commit in known:
        states.append(commit)
        before = known.pop(commit).parents
        commit = before[0].sha if before else ""
    return tuple(states)


def _listed(api: Github, repository: str, commit: str, count: int) -> list[_Commit]:
    """Return a commit and its ancestors, at most one page."""
    sent = {"sha": commit, "per_page": str(count)}
    _, answer = api.requester.requestJsonAndCheck("GET", f"/repos/{repository}/commits", parameters=sent)
    return TypeAdapter(list[_Commit]).validate_python(answer)


def _compared(api: Github, repository: str, base: str, head: str) -> _Comparison:
    path = f"/repos/{repository}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # Only the first page contains changed files, which may be megabytes.
    _, answer = api.requester.requestJsonAndCheck("GET", path, parameters={"per_page": "1", "page": "2"})
    if "merge_base_commit" not in (answer or {}):
        _, answer = api.requester.requestJsonAndCheck("GET", path)
    return _Comparison.model_validate(answer)
