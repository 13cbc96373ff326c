"""A local git repository that an emulated GitHub knows, and the jobs of its events on checkouts of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.git_server import GitServer, git, serving_git
from tests.peers.action_step import Step, as_process, job_environment, written
from tests.peers.github_actions import StoredRun, zipped
from tests.peers.github_proxy import Answer, Incoming
from tests.peers.github_service import GithubService
from tests.support import case, open_folder, results_in, write_suite

from agenteval.results.model import Results

REPOSITORY = "acme/local"
#: The whole history, as ``fetch-depth: 0``.
EVERYTHING = 0
# It is wrong if a commit of the base branch says so, or if a change brings a file.
AGENT = """
import json, pathlib, sys
request = json.load(sys.stdin)
here = pathlib.Path(__file__).parent
right = (here / "answer.txt").read_text() == "right" and not (here / "broken").exists()
print(request["input"] if right else "wrong")
"""
_WORKFLOW = f"{REPOSITORY}/.github/workflows/agenteval.yml@refs/heads/main"


@dataclass
class LocalHistory:
    """A repository with a main branch whose agent is right, and the machine of its jobs.

    Attributes:
        github: the emulated GitHub.
        home: for all files.
        server: serves the repository to git.
    """

    github: GithubService
    home: Path
    server: GitServer
    _jobs: list[Path] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def bare(self) -> Path:
        return self.home / "served" / REPOSITORY

    def create(self) -> None:
        self.work.mkdir()
        self.bare.mkdir(parents=True)
        git(self.work, "init", "--quiet", "--initial-branch", "main")
        git(self.bare, "init", "--quiet", "--bare", "--initial-branch", "main")
        git(self.bare, "config", "uploadpack.allowAnySHA1InWant", "true")
        names = [f"c{number:02}" for number in range(12)]
        write_suite(self.work, [case(name) for name in names], agent={"command": ["python3", "agent.py"]})
        (self.work / "agenteval.yaml").write_text(yaml.safe_dump({"gate": {"pairs": 4}}), encoding="utf-8")
        (self.work / "agent.py").write_text(AGENT, encoding="utf-8")

    def commit(self, *parents: str, **files: str | None) -> str:
        """A commit of these parents with changed files, by name; ``None`` removes one. Merges have no conflicts."""
        if parents:
            git(self.work, "checkout", "--quiet", "--detach", parents[0])
            for other in parents[1:]:
                git(self.work, "merge", "--quiet", "--no-ff", "--no-commit", other)
        for name, text in files.items():
            path = self.work / (f"{name}.txt" if name != "broken" else name)
            path.write_text(text, encoding="utf-8") if text is not None else path.unlink()
        git(self.work, "add", "--all")
        message = f"Change {len(git(self.work, 'rev-list', '--all').split())}"
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", message)
        return git(self.work, "rev-parse", "HEAD")

    def ref(self, name: str, commit: str) -> None:
        """Set a ref of the repository on GitHub."""
        git(self.work, "push", "--quiet", "--force", f"file://{self.bare}", f"{commit}:refs/{name}")

    def job(
        self,
        event: str,
        sha: str,
        ref: str,
        payload: Mapping[str, Any] | None = None,
        *,
        checkout: str | None = None,
        depth: int = 1,
        origin: str = REPOSITORY,
        onto: str = "main",
        variables: Mapping[str, str] | None = None,
        **inputs: str,
    ) -> Step:
        """Run the action as a job does, after the checkout of the event's commit or of another one.

        The branches of another ``origin`` than the repository all are at the commit that is checked out.
        """
        workspace = self.home / f"job-{len(self._jobs)}"
        self._jobs.append(workspace)
        workspace.mkdir()
        git(workspace, "init", "--quiet")
        git(workspace, "remote", "add", "origin", f"file://{self.bare}")
        commit = checkout or sha
        branch = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") and not checkout else "none"
        options = [f"--depth={depth}"] if depth else []
        if not depth:
            git(workspace, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
        git(workspace, "fetch", "--quiet", *options, "origin", f"+{commit}:refs/remotes/job/{branch}")
        if branch != "none" and depth:
            git(workspace, "update-ref", f"refs/remotes/origin/{branch}", commit)
        git(workspace, "checkout", "--quiet", "--detach", commit)
        if origin != REPOSITORY:
            git(workspace, "remote", "set-url", "origin", f"{self.server.url}/{origin}")
            git(workspace, "update-ref", "refs/remotes/origin/main", commit)
        known = {"repository": {"full_name": REPOSITORY, "default_branch": "main"}, **(payload or {})}
        environment = job_environment(self.github.url, event, comment="never", **inputs) | {
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": self.server.url,
            "GITHUB_SHA": sha,
            "GITHUB_REF": ref,
            "GITHUB_BASE_REF": onto if event == "pull_request" else "",
            "GITHUB_WORKFLOW_REF": _WORKFLOW,
            **(variables or {}),
        }
        return as_process(workspace, environment, written(self.home, known))

    def pull_request(self, merge: str, head: str, base: str, onto: str = "main", **options: Any) -> Step:
        """The job of a pull request from a fork, whose event names a base commit."""
        of = {"sha": head, "ref": "feature", "repo": {"full_name": "mallory/local"}}
        below = {"sha": base, "ref": onto, "repo": {"full_name": REPOSITORY}}
        payload = {"number": 7, "pull_request": {"number": 7, "head": of, "base": below}}
        self.ref("pull/7/merge", merge)
        self.ref("pull/7/head", head)
        return self.job("pull_request", merge, "refs/pull/7/merge", payload, onto=onto, **options)

    @property
    def results(self) -> Results:
        """The results of the newest job."""
        return results_in(self._jobs[-1])

    def baseline(self) -> tuple[str | None, int | None, list[str]]:
        """Commit and distance of the newest job's baseline, and the commits between."""
        comparison = self.results.comparison
        assert comparison is not None
        return comparison.baseline.commit, comparison.baseline.distance, comparison.baseline.between

    def upload(self, commit: str, **details: Any) -> StoredRun:
        """Upload the report directory of the newest job, as a run of a commit."""
        results = (self._jobs[-1] / "agenteval-report" / "results.json").read_bytes()
        run = self.github.actions.run(REPOSITORY, commit, **details)
        self.github.actions.artifact(run, "agenteval", zipped(results))
        return run

    def evaluated(self, commit: str) -> StoredRun:
        """A push to main ran, and its artifact is there."""
        self.ref("heads/main", commit)
        self.job("push", commit, "refs/heads/main", {"before": "0" * 40, "created": True}, fail_on="none")
        return self.upload(commit)

    def serve(self) -> None:
        """Answer for commits and merge bases, which the emulator knows only of repositories that it has made."""
        self.github.proxy.serve("GET", f"/repos/{REPOSITORY}/commits", self._commits)
        self.github.proxy.serve(
            "GET", f"/repos/{REPOSITORY}/compare/(?P<one>[^.]+)\\.\\.\\.(?P<two>.+)", self._compare
        )

    def _commits(self, request: Incoming, _found: re.Match[str]) -> Answer:
        query = request.query
        try:
            listed = git(self.bare, "rev-list", "--parents", f"--max-count={query['per_page']}", query["sha"])
        except AssertionError:
            return Answer.message(404, "Not Found")
        found = [line.split() for line in listed.splitlines()]
        return Answer.json([{"sha": sha, "parents": [{"sha": item} for item in of]} for sha, *of in found], 200)

    def _compare(self, _request: Incoming, found: re.Match[str]) -> Answer:
        try:
            base = git(self.bare, "merge-base", found["one"], found["two"])
        except AssertionError:
            return Answer.message(404, "Not Found")
        ahead = int(git(self.bare, "rev-list", "--count", f"{found['one']}..{found['two']}"))
        return Answer.json({"merge_base_commit": {"sha": base, "parents": []}, "ahead_by": ahead}, 200)


@contextmanager
def local_history(github: GithubService) -> Iterator[LocalHistory]:
    """A repository for the length of the block."""
    with open_folder() as home, serving_git(home / "served") as server:
        found = LocalHistory(github, home, server)
        found.create()
        found.serve()
        yield found
        shutil.rmtree(home / "work")
