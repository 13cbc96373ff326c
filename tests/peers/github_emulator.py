"""Starts the ``emulate`` package's GitHub service and makes what the tests need in it, through its API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from github import Auth, Github, GithubIntegration
from github.PullRequest import PullRequest
from tests.peers.node_program import node_program
from tests.peers.node_program import running as node_program_running

OWNER = "octocat"
OWNER_TOKEN = "ghp_owner0000000000000000000000000000000"
STRANGER = "mallory"
STRANGER_TOKEN = "ghp_stranger00000000000000000000000000000"
REPOSITORY = "acme/widgets"

_APP, _INSTALLATION = 15368, 100
_RIGHTS = {"contents": "write", "pull_requests": "write", "issues": "write", "metadata": "read"}


@dataclass(frozen=True)
class GithubEmulator:
    """A running emulator. Every test makes a pull request of its own."""

    url: str
    private_key: str = field(repr=False)
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    def api(self, token: str = OWNER_TOKEN) -> Github:
        """PyGithub with its own defaults but no pauses: the tests' hands, not the code under test."""
        return Github(
            auth=Auth.Token(token),
            base_url=self.url,
            seconds_between_requests=0,
            seconds_between_writes=0,
            retry=None,
        )

    def pull_request(self) -> PullRequest:
        """A new open pull request from a branch of the repository."""
        repository = self.api().get_repo(REPOSITORY)
        branch = f"change-{next(self._numbers)}"
        repository.create_git_ref(f"refs/heads/{branch}", repository.get_branch("main").commit.sha)
        repository.create_file(f"{branch}.txt", "Change", "text", branch=branch)
        return repository.create_pull(base="main", head=branch, title=branch, body="")

    def installation_token(self, **permissions: str) -> str:
        """A token like a job's ``GITHUB_TOKEN``, with these permissions only."""
        with GithubIntegration(
            auth=Auth.AppAuth(_APP, self.private_key),
            base_url=self.url,
            seconds_between_requests=0,
            seconds_between_writes=0,
        ) as integration:
            return integration.get_access_token(_INSTALLATION, permissions=permissions).token


@contextmanager
def running(folder: Path, port: int, public_url: str) -> Iterator[GithubEmulator]:
    """Runs the emulator for the length of the block; its seed and log are kept in the folder.

    Args:
        folder: for the files.
        port: where it listens.
        public_url: what it calls itself in its answers, because a proxy stands in front of it.
    """
    key = _private_key()
    seed, log = folder / "seed.yaml", folder / "emulate.log"
    seed.write_text(yaml.safe_dump(_seed(key)), encoding="utf-8")
    # Without --base-url it calls itself localhost, and PyGithub accepts no URL of another host.
    command = [*node_program("emulate", "dist/index.js", "22.15"), "start", "--service", "github"]
    command += ["--port", str(port), "--base-url", public_url, "--seed", str(seed)]
    with node_program_running(command, f"http://127.0.0.1:{port}/rate_limit", log):
        yield GithubEmulator(public_url, key)


def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


def _seed(private_key: str) -> dict[str, object]:
    app = {
        "app_id": _APP,
        "slug": "github-actions",
        "name": "GitHub Actions",
        "events": [],
        "permissions": _RIGHTS,
        "private_key": private_key,
        "installations": [
            {
                "installation_id": _INSTALLATION,
                "account": "acme",
                "repository_selection": "all",
                "permissions": _RIGHTS,
            }
        ],
    }
    return {
        "tokens": {
            OWNER_TOKEN: {"login": OWNER, "scopes": ["repo", "workflow"]},
            STRANGER_TOKEN: {"login": STRANGER, "scopes": []},
        },
        "github": {
            "users": [{"login": OWNER}, {"login": STRANGER}],
            "orgs": [{"login": "acme", "members": [{"login": OWNER, "role": "admin"}]}],
            "repos": [{"owner": "acme", "name": "widgets", "auto_init": True}],
            "apps": [app],
        },
    }
