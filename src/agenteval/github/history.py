"""The history of a repository, as GitHub knows it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import BaseModel

from agenteval.core.errors import AgentEvalError
from agenteval.core.escape import is_http_url
from agenteval.core.records import dataclass, field
from agenteval.github.client import GitHubClient, ask
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
    """Return the merge base of a branch and a commit, which can be one of a fork."""
    return _compared(api, repository, base, head).merge_base_commit.sha


def distance(api: Github, repository: str, earlier: str, later: str) -> int | None:
    """Return how many commits a commit has more than its ancestor; ``None`` if the other one is no ancestor."""
    from github import UnknownObjectException

    try:
        found = _compared(api, repository, earlier, later)
    except UnknownObjectException:
        return None
    return found.ahead_by if found.merge_base_commit.sha == earlier else None


def first_parents(api: Github, repository: str, commit: str) -> tuple[str, ...]:
    """Return a commit and its first parents, nearest first, as far as one page of commits contains them."""
    known = {found.sha: found for found in _listed(api, repository, commit, _PER_PAGE)}
    states: list[str] = []
    while commit in known:
        states.append(commit)
        before = known.pop(commit).parents
        commit = before[0].sha if before else ""
    return tuple(states)


def _listed(api: Github, repository: str, commit: str, count: int) -> list[_Commit]:
    return ask(api, list[_Commit], f"/repos/{repository}/commits", sha=commit, per_page=str(count))


def _compared(api: Github, repository: str, base: str, head: str) -> _Comparison:
    path = f"/repos/{repository}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # Only the first page contains changed files, which may be megabytes.
    answer: Any = ask(api, object, path, per_page="1", page="2")
    if "merge_base_commit" not in (answer or {}):
        return ask(api, _Comparison, path)
    return _Comparison.model_validate(answer)


_PERMISSIONS = ("contents: read",)


@dataclass(frozen=True)
class GithubHistory:
    """Answers questions about commits; ``client`` raises ``ConfigError`` without a token."""

    client: Callable[[], GitHubClient]
    repository: str | None

    def head(self, commit: str) -> Head:
        """Return a commit with its parents."""
        with self._asking("read the parents of a commit") as (api, repository):
            listed = _listed(api, repository, commit, 1)[:1]
            return Head(commit, tuple(parent.sha for found in listed for parent in found.parents))

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits; the first can be a branch."""
        with self._asking("find the merge base") as (api, repository):
            return merge_base(api, repository, one, other)

    @contextmanager
    def _asking(self, purpose: str) -> Iterator[tuple[Github, str]]:
        if self.repository is None:
            raise AgentEvalError("the event names no repository")
        with self.client().open(purpose, _PERMISSIONS) as api:
            yield api, self.repository


DEFAULT_SERVER_URL = "https://github.com"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# Settings of the connection, in the spelling that git reads.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class GithubControl:
    """The control of a workflow run; ``token`` reads the repository, empty for none."""

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
        """Return the merge base of two commits, from the API."""
        return self.history.merge_base(one, other)
