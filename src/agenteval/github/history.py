"""The history of a repository, as GitHub knows it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from agenteval.core.errors import AgentEvalError
from agenteval.core.escape import is_http_url
from agenteval.core.records import dataclass, field
from agenteval.github.client import GitHubClient, GithubError
from agenteval.run.base_commit import ControlRule
from agenteval.run.git import Head, Remote

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
        repository: ``owner/name``.
        head: a commit, also one of a fork.

    Raises:
        GithubException: one of them does not exist, or they have no common commit.
        ValidationError: the response does not match GitHub's documentation.
    """
    return _compared(api, repository, base, head).merge_base_commit.sha


def distance(api: Github, repository: str, earlier: str, later: str) -> int | None:
    """Return how many commits a commit has more than its ancestor; ``None`` if the other one is no ancestor.

    Args:
        repository: ``owner/name``.
        earlier: the commit that may be the ancestor; it need not exist any more.

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


_PERMISSIONS = ("contents: read",)


@dataclass(frozen=True)
class GithubHistory:
    """Answers questions about commits.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        repository: ``owner/name``; ``None`` if it is unknown.
    """

    client: Callable[[], GitHubClient]
    repository: str | None

    def head(self, commit: str) -> Head:
        """Return a commit with its parents.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        with self._asking("read the parents of a commit") as (api, repository):
            return Head(commit, parents(api, repository, commit))

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits; the first can be a branch.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        with self._asking("find the merge base") as (api, repository):
            return merge_base(api, repository, one, other)

    @contextmanager
    def _asking(self, purpose: str) -> Iterator[tuple[Github, str]]:
        from pydantic import ValidationError

        if self.repository is None:
            raise AgentEvalError("the event names no repository")
        try:
            with self.client().open(purpose, _PERMISSIONS) as api:
                yield api, self.repository
        except ValidationError:
            raise GithubError(f"cannot {purpose}: GitHub's response is invalid") from None


DEFAULT_SERVER_URL = "https://github.com"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# Settings of the connection, in the spelling that git reads.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class GithubControl:
    """The control of a workflow run.

    Args:
        rule: how the control follows from the commit that is checked out.
        history: what GitHub knows about the commits.
        token: the token that reads the repository; empty for none.
        environment: environment variables of the container, as the runner set them.
    """

    rule: ControlRule
    history: GithubHistory
    token: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @property
    def remote(self) -> Remote | None:
        """The repository of the workflow."""
        server = (self.environment.get("GITHUB_SERVER_URL") or DEFAULT_SERVER_URL).rstrip("/")
        repository = self.history.repository or ""
        if not is_http_url(server) or not _REPOSITORY.fullmatch(repository):
            return None
        variables = {name: self.environment[name] for name in _PROXIES if name in self.environment}
        for name in _CERTIFICATES:
            if self.environment.get(name):
                variables.setdefault("GIT_SSL_CAINFO", self.environment[name])
        credentials = b64encode(f"x-access-token:{self.token}".encode()).decode()
        header = f"Authorization: Basic {credentials}" if self.token else ""
        return Remote(f"{server}/{repository}", header, variables)

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits, from the API.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        return self.history.merge_base(one, other)
