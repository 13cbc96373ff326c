"""The results of one workflow run, from its report artifact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from agenteval.ci.github.api.artifacts import PERMISSIONS, UnusableArtifactError
from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.api.workflow_runs import Artifact, Run, artifacts_named, get_run
from agenteval.ci.github.control import DEFAULT_SERVER_URL
from agenteval.ci.github.downloaded_report import DownloadedReport
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.model import Results
from agenteval.results.store import parse_results
from agenteval.run.control_commit import ControlError
from agenteval.run.git import git

#: Name of the artifact with the report directory, if nothing else is said.
ARTIFACT = "agenteval"

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# git@host:owner/name, the short form of an address of ssh.
_SHORT_ADDRESS = re.compile(r"(?:[^@/\s]+@)?([^:/\s]+):(?!/)(\S+)")
_NOT_FOUND = 404


@dataclass(frozen=True)
class ReportArtifact:
    """A workflow run's artifact with the report directory.

    Attributes:
        run_id: id of the workflow run.
        name: name of the artifact.
        repository: ``owner/name``; ``None`` for the one of the environment or of git.
    """

    run_id: int
    name: str = ARTIFACT
    repository: str | None = None


def results_of_run(wanted: ReportArtifact, environment: Mapping[str, str], here: Path) -> Results:
    """Download the results of a workflow run; nothing is written to disk.

    Args:
        wanted: the artifact.
        environment: ``GITHUB_TOKEN`` or ``GH_TOKEN`` is the token.
        here: the working directory.

    Raises:
        ConfigError: the token or the repository is unknown, or the run has no usable results.
        GithubError: GitHub refused, failed or could not be reached.
    """
    client = _client(environment)
    repository = wanted.repository or repository_of_git(environment, here)
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(
            Problem(f"{repository!r} is not a repository; name it: --repository OWNER/NAME", kind=Kind.GITHUB)
        )
    purpose = f"read workflow run {wanted.run_id} of {repository}"
    try:
        with client.open(purpose, PERMISSIONS) as api:
            run = get_run(api, repository, wanted.run_id)
            artifacts = artifacts_named(api, repository, run.id, wanted.name)
    except ValidationError:
        raise GithubError(f"cannot {purpose}: GitHub's response is invalid") from None
    except GithubError as error:
        if error.status != _NOT_FOUND:
            raise
        why = "the id is the number in the address of its page, and the token must be able to see it"
        raise _wrong(wanted, f"is not in {repository}; {why}") from None
    if not artifacts:
        raise _wrong(wanted, _without_artifact(run, wanted))
    try:
        return _results(client, repository, artifacts[0], run)
    except UnusableArtifactError as error:
        raise _wrong(
            wanted, f"has an artifact {wanted.name} that cannot be used: {error.reason}; run the workflow again"
        ) from None


def repository_of_git(environment: Mapping[str, str], here: Path) -> str:
    """Return the repository of ``GITHUB_REPOSITORY``, else the one that the remote ``origin`` names on this server.

    Raises:
        ConfigError: neither names a repository of the server that gets the token.
    """
    named = environment.get("GITHUB_REPOSITORY")
    if named:
        return named
    try:
        host, path = _parts(git(here, "remote", "get-url", "origin"))
    except ControlError:
        host, path = "", ""
    server = urlsplit(environment.get("GITHUB_SERVER_URL") or DEFAULT_SERVER_URL).hostname
    if host.casefold() != (server or "").casefold() or not _REPOSITORY.fullmatch(path):
        message = f"the remote `origin` names no repository of {server}; name it: --repository OWNER/NAME"
        raise ConfigError(Problem(message, kind=Kind.GITHUB))
    return path


def _client(environment: Mapping[str, str]) -> Client:
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    if not token.strip():
        needed = "a token is needed to download the results of a workflow run"
        raise ConfigError(
            Problem(f"{needed}: set GITHUB_TOKEN, for instance with `gh auth token`", path="--run", kind=Kind.GITHUB)
        )
    return Client.from_environment(token, environment)


def _parts(address: str) -> tuple[str, str]:
    """Return the host and ``owner/name`` of the address of a repository; the address may contain credentials."""
    short = _SHORT_ADDRESS.fullmatch(address) if "://" not in address else None
    try:
        parts = urlsplit(address)
        host, path = (short[1], short[2]) if short else (parts.hostname or "", parts.path)
    except ValueError:
        return "", ""
    return host, path.strip("/").removesuffix(".git")


def _results(client: Client, repository: str, artifact: Artifact, run: Run) -> Results:
    """Return the results in an artifact.

    Raises:
        UnusableArtifactError: it contains none, or those of another commit.
    """
    results = DownloadedReport.download(client, repository, artifact).results(parse_results)
    if results.run.commit not in {None, run.head_sha}:
        raise UnusableArtifactError("its results are of another commit than the run")
    return results


def _without_artifact(run: Run, wanted: ReportArtifact) -> str:
    if run.is_going_on:
        return "has not ended yet; wait for its end"
    upload = "the workflow must upload the report directory, with actions/upload-artifact"
    return f"has no artifact named {wanted.name}: {upload}; another name: --artifact NAME"


def _wrong(wanted: ReportArtifact, why: str) -> ConfigError:
    return ConfigError(Problem(f"workflow run {wanted.run_id} {why}", path="--run", kind=Kind.GITHUB))
