"""The control of each event, and where it is fetched from."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ci.github.test_event import BASE, HEAD, MERGE, MERGE_GROUP, ON_PULL_REQUEST, environment

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.control import GithubControl, control_rule
from agenteval.ci.github.event import plan
from agenteval.core.errors import ConfigError, Problem
from agenteval.run.control_commit import ControlRule

PROPOSED = {"pull_request": {"number": 7, "head": {"sha": HEAD}, "base": {"ref": "main", "sha": BASE}}}
TOKEN = "ghs_0123456789abcdef"


@pytest.mark.parametrize(
    ("event", "variables", "payload", "expected"),
    [
        ("pull_request", ON_PULL_REQUEST, PROPOSED, ControlRule("pull-request", MERGE, BASE, "main")),
        ("merge_group", {}, MERGE_GROUP, ControlRule("previous", before=BASE)),
        ("push", {}, {"before": BASE}, ControlRule("previous", before=BASE)),
        ("push", {}, {"before": BASE, "forced": True}, ControlRule("previous")),
        ("schedule", {}, {}, ControlRule("first-parent")),
        ("workflow_dispatch", {}, {}, ControlRule("first-parent")),
        (
            "push",
            {"GITHUB_REF": "refs/heads/feature"},
            {"before": BASE, "repository": {"default_branch": "main"}},
            ControlRule("merge-base", branch="main"),
        ),
        ("issue_comment", {}, {}, ControlRule("merge-base")),
    ],
)
def test_the_rule_of_each_event(
    event: str, variables: dict[str, str], payload: dict[str, Any], expected: ControlRule
) -> None:
    assert control_rule(plan(environment(event, **variables), payload)) == expected


def control(token: str = TOKEN, repository: str = "org/bot", **variables: str) -> GithubControl:
    def client() -> Client:
        raise ConfigError(Problem("no token"))

    of = {**environment("push"), "GITHUB_REPOSITORY": repository, **variables}
    return GithubControl(plan(of, {}), client, token, of)


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
