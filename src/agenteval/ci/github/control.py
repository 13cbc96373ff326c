"""What GitHub knows about the control: the event's commits, the repository to fetch from, and merge bases."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.event import Plan
from agenteval.core.errors import AgentEvalError
from agenteval.core.urls import is_http_url
from agenteval.run.control_commit import ControlRule, Remote

DEFAULT_SERVER_URL = "https://github.com"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# Settings of the connection, in the spelling that git reads.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


def control_rule(event: Plan) -> ControlRule:
    """Return how the control follows from an event."""
    if event.event == "pull_request":
        return ControlRule("pull-request", event.github_sha, event.base_commit, event.base_ref)
    if event.event == "merge_group":
        return ControlRule("previous", before=event.before)
    if event.lineage is None:
        return ControlRule("merge-base")
    if event.ref != f"refs/heads/{event.lineage.branch}":
        return ControlRule("merge-base", branch=event.lineage.branch)
    return ControlRule("previous", before=event.before) if event.event == "push" else ControlRule("first-parent")


@dataclass(frozen=True)
class GithubControl:
    """The control of a workflow run.

    Args:
        event: what the event allows.
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        token: the token that reads the repository; empty for none.
        environment: environment variables of the container, as the runner set them.
    """

    event: Plan
    client: Callable[[], Client]
    token: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @property
    def rule(self) -> ControlRule:
        """How the control follows from the event."""
        return control_rule(self.event)

    @property
    def remote(self) -> Remote | None:
        """The repository of the workflow."""
        server = (self.environment.get("GITHUB_SERVER_URL") or DEFAULT_SERVER_URL).rstrip("/")
        repository = self.event.repository or ""
        if not is_http_url(server) or not _REPOSITORY.fullmatch(repository):
            return None
        variables = {name: self.environment[name] for name in _PROXIES if name in self.environment}
        for name in _CERTIFICATES:
            if self.environment.get(name):
                variables.setdefault("GIT_SSL_CAINFO", self.environment[name])
        credentials = b64encode(f"x-access-token:{self.token}".encode()).decode()
        return Remote(
            f"{server}/{repository}", f"Authorization: Basic {credentials}" if self.token else "", variables
        )

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits, from the API.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        from agenteval.ci.github.api.ancestry import merge_base

        if self.event.repository is None:
            raise AgentEvalError("the event names no repository")
        with self.client().open("find the merge base", ("contents: read",)) as api:
            return merge_base(api, self.event.repository, one, other)
