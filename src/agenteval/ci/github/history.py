"""The history of a repository, as GitHub knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.ci.github.api.client import Client, GithubError
from agenteval.core.errors import AgentEvalError
from agenteval.run.control_commit import Head

if TYPE_CHECKING:
    from github import Github

_PERMISSIONS = ("contents: read",)


@dataclass(frozen=True)
class GithubHistory:
    """Answers questions about commits.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        repository: ``owner/name``; ``None`` if it is unknown.
    """

    client: Callable[[], Client]
    repository: str | None

    def head(self, commit: str) -> Head:
        """Return a commit with its parents.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        from agenteval.ci.github.api.ancestry import parents

        with self._asking("read the parents of a commit") as (api, repository):
            return Head(commit, parents(api, repository, commit))

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits; the first can be a branch.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        from agenteval.ci.github.api.ancestry import merge_base

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
