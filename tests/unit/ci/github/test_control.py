"""Where the control is fetched from."""

from __future__ import annotations

import pytest

from agenteval.core.errors import ConfigError, Problem
from agenteval.github.client import GitHubClient
from agenteval.github.history import GithubControl, GithubHistory
from agenteval.run.base_commit import ControlRule

TOKEN = "ghs_0123456789abcdef"


def control(token: str = TOKEN, repository: str = "org/bot", **variables: str) -> GithubControl:
    def client() -> GitHubClient:
        raise ConfigError(Problem("no token"))

    return GithubControl(ControlRule(), GithubHistory(client, repository), token, variables)


def test_the_token_is_sent_in_a_header_and_shown_nowhere() -> None:
    found = control(GITHUB_SERVER_URL="https://github.example.org/", https_proxy="http://proxy:1")
    remote = found.remote
    assert remote is not None
    assert (remote.url, remote.variables) == ("https://github.example.org/org/bot", {"https_proxy": "http://proxy:1"})
    assert remote.header.startswith("Authorization: Basic ")
    for text in (repr(found), repr(remote), remote.url):
        assert TOKEN not in text
        assert remote.header.rpartition(" ")[2] not in text


@pytest.mark.parametrize(
    ("repository", "server"), [("org/bot", "ext::sh -c touch"), ("org/bot", "file:///etc"), ("--upload-pack=x", "")]
)
def test_only_repositories_behind_http_are_fetched_from(repository: str, server: str) -> None:
    assert control(repository=repository, GITHUB_SERVER_URL=server).remote is None


def test_without_a_token_the_repository_is_read_without_credentials() -> None:
    remote = control(token="").remote
    assert remote is not None
    assert remote.header == ""
