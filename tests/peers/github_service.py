"""The emulated GitHub behind the proxy, as tests use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from github.Repository import Repository
from tests.peers import github_emulator, github_gaps
from tests.peers.github_actions import BLOB_HOST, Actions
from tests.peers.github_emulator import OWNER_TOKEN, GithubEmulator
from tests.peers.github_gaps import Labels
from tests.peers.github_proxy import GithubProxy
from tests.peers.openapi import Description
from tests.support import free_port

from agenteval.github.client import GitHubClient

_START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class GithubService:
    """Everything a test needs of GitHub.

    Attributes:
        emulator: the ``emulate`` package; what it makes goes through the proxy, unrecorded.
        proxy: records and breaks what agenteval asks.
        actions: workflow runs and artifacts.
        labels: events of labels.
    """

    emulator: GithubEmulator
    proxy: GithubProxy
    actions: Actions
    labels: Labels
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @property
    def url(self) -> str:
        return self.proxy.url

    def client(self, token: str = OWNER_TOKEN, timeout_s: int = 20, retries: int = 3) -> GitHubClient:
        return GitHubClient(token, self.url, timeout_s, retries)

    def history(self) -> History:
        """A new repository with one commit on ``main``."""
        organization = self.emulator.api().get_organization("acme")
        repository = organization.create_repo(f"history-{next(self._numbers)}", auto_init=True)
        return History(repository)

    def violations(self, description: Description) -> list[str]:
        """What in the recorded requests GitHub's description does not allow."""
        # GraphQL is one operation to OpenAPI, and not described there; a blob store is none of GitHub's API.
        rest = [r for r in self.proxy.requests if r.route != "/graphql" and r.host != BLOB_HOST]
        return [problem for request in rest for problem in description.violations(request.as_request(self.url))]


class History:
    """Commits in a repository of its own; each is a minute younger than the one made before."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.name = repository.full_name
        self.root = repository.get_branch("main").commit.sha
        self._tree = repository.get_git_tree(self.root).sha
        self._made = 0

    def commit(self, *parents: str) -> str:
        """A new commit; a merge if it has several parents."""
        self._made += 1
        when = (_START + timedelta(minutes=self._made)).isoformat()
        person = {"name": "octocat", "email": "octocat@example.com", "date": when}
        made = {"message": f"Change {self._made}", "tree": self._tree, "parents": list(parents)}
        return str(self.post("git/commits", {**made, "author": person, "committer": person})["sha"])

    def chain(self, start: str, length: int) -> list[str]:
        """That many commits on top of another, oldest first."""
        made: list[str] = []
        for _ in range(length):
            made.append(self.commit(made[-1] if made else start))
        return made

    def branch(self, name: str, commit: str) -> None:
        """Creates a branch."""
        self.post("git/refs", {"ref": f"refs/heads/{name}", "sha": commit})

    def main(self, commit: str) -> None:
        """Moves ``main`` forward to a commit."""
        url = f"{self._repository.url}/git/refs/heads/main"
        self._repository.requester.requestJsonAndCheck("PATCH", url, input={"sha": commit})

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        url = f"{self._repository.url}/{path}"
        _, answer = self._repository.requester.requestJsonAndCheck("POST", url, input=body)
        return dict(answer or {})


@contextmanager
def running(folder: Path) -> Iterator[GithubService]:
    """Runs emulator and proxy for the length of the block."""
    proxy = GithubProxy()
    port = free_port()
    with proxy.running(port), github_emulator.running(folder, port, proxy.url) as emulator:
        actions = Actions(proxy.url)
        actions.served_by(proxy)
        labels = Labels()
        github_gaps.served_by(proxy, labels)
        yield GithubService(emulator, proxy, actions, labels)
