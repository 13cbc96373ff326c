"""What GitHub knows about the control: how it follows from the event, and the repository to fetch it from."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.ci.github.history import GithubHistory
from agenteval.core.urls import is_http_url
from agenteval.run.control_commit import ControlRule, Remote

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
        return Remote(
            f"{server}/{repository}", f"Authorization: Basic {credentials}" if self.token else "", variables
        )

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits, from the API.

        Raises:
            AgentEvalError: it is unknown, or GitHub cannot be reached.
        """
        return self.history.merge_base(one, other)
