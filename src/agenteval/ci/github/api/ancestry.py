"""Ancestors of a commit, from GitHub's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

if TYPE_CHECKING:
    from github import Github

_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A commit and its distance from the start of the search, in commits."""

    sha: str
    distance: int


class _Parent(BaseModel):
    sha: str


class _Commit(BaseModel):
    sha: str
    parents: list[_Parent]


class _Comparison(BaseModel):
    merge_base_commit: _Commit


def merge_base(api: Github, repository: str, base: str, head: str) -> str:
    """Return the merge base of a branch and a commit.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        base: a branch.
        head: a commit, also one of a fork.

    Raises:
        GithubException: one of them does not exist, or they have no common commit.
        ValidationError: the response does not match GitHub's documentation.
    """
    path = f"/repos/{repository}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # Only the first page contains changed files, which may be megabytes.
    _, answer = api.requester.requestJsonAndCheck("GET", path, parameters={"per_page": "1", "page": "2"})
    if "merge_base_commit" not in (answer or {}):
        _, answer = api.requester.requestJsonAndCheck("GET", path)
    return _Comparison.model_validate(answer).merge_base_commit.sha


def ancestors(api: Github, repository: str, start: str, count: int) -> list[Ancestor]:
    """Return a commit and its ancestors, nearest first.

    Distances count first parents, which are the states of a branch. Merged commits count by position in the list.

    Args:
        api: an open connection.
        repository: ``owner/name``.
        start: the first commit.
        count: limit of commits.

    Raises:
        GithubException: the commit does not exist.
        ValidationError: the response does not match GitHub's documentation.
    """
    commits: list[_Commit] = []
    for page in range(1, -(-count // _PER_PAGE) + 1):
        sent = {"sha": start, "per_page": str(min(count, _PER_PAGE)), "page": str(page)}
        _, answer = api.requester.requestJsonAndCheck("GET", f"/repos/{repository}/commits", parameters=sent)
        some = TypeAdapter(list[_Commit]).validate_python(answer)
        commits += some
        if len(some) < min(count, _PER_PAGE):
            break
    states = _first_parents(commits)
    return [Ancestor(c.sha, states.get(c.sha, place)) for place, c in islice(enumerate(commits), count)]


def _first_parents(commits: Sequence[_Commit]) -> Mapping[str, int]:
    known = {commit.sha: commit for commit in commits}
    found: dict[str, int] = {}
    sha = commits[0].sha if commits else ""
    while sha in known and sha not in found:
        found[sha] = len(found)
        parents = known[sha].parents
        sha = parents[0].sha if parents else ""
    return found
