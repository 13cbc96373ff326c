"""``agenteval publish`` sends what its dry run shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY
from tests.peers.github_service import GithubService

pytestmark = pytest.mark.peer

_CALL = re.compile(r"(?m)^(GET|POST|PATCH|DELETE) (\S+)(?:   \(.*\))?\n((?:(?!^(?:GET|POST|PATCH|DELETE) /)[\s\S])*)")


def agenteval(workspace: Path, github: GithubService, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-m", "agenteval", *arguments],
        cwd=workspace,
        env={
            "PATH": "/usr/bin:/bin",
            "GITHUB_TOKEN": OWNER_TOKEN,
            "GITHUB_API_URL": github.url,
            "GITHUB_RUN_ID": "4711",
            "QUICKSTART_RANKING": "first-match",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def bodies(text: str, method: str, path: str) -> list[str]:
    return [body.strip() for found, where, body in _CALL.findall(text) if (found, where) == (method, path)]


def test_what_is_sent_is_what_was_shown(github: GithubService, workspace: Path) -> None:
    assert agenteval(workspace, github, "run", "agent.yaml", "--iterations", "1", "--quiet").returncode == 1
    pull = github.emulator.pull_request()
    place = ["--repository", REPOSITORY, "--commit", pull.head.sha, "--pull-request", str(pull.number)]
    asked = ["publish", "agenteval-report", *place, "--check-name", "agent evaluation"]

    shown = agenteval(workspace, github, *asked, "--dry-run")

    assert shown.returncode == 0, shown.stderr
    assert github.proxy.requests == []

    sent = agenteval(workspace, github, *asked)

    assert sent.returncode == 0, sent.stderr
    assert "comment created" in sent.stdout
    root = f"/repos/{REPOSITORY}"
    [created] = github.proxy.called("POST", f"{root}/check-runs")
    assert [json.loads(created.body)] == [
        json.loads(body) for body in bodies(shown.stdout, "POST", f"{root}/check-runs")
    ]
    updated = [json.loads(request.body) for request in github.proxy.called("PATCH", f"{root}/check-runs/")]
    planned = [json.loads(body) for body in bodies(shown.stdout, "PATCH", f"{root}/check-runs/{{id}}")]
    assert updated == planned
    [comment] = list(pull.get_issue_comments())
    [text] = bodies(shown.stdout, "PATCH", f"{root}/issues/comments/{{id}}")
    # The revision says when it was written.
    revision = re.compile(r" rev=\S+")
    assert revision.sub("", comment.body.strip()) == revision.sub("", text)
    shown_routes = {(method, where.partition("?")[0]) for method, where, _ in _CALL.findall(shown.stdout)}
    number = re.compile(r"(?<=check-runs/)\d+|(?<=issues/comments/)\d+")
    asked_routes = {(request.method, number.sub("{id}", request.route)) for request in github.proxy.requests}
    assert asked_routes <= shown_routes
