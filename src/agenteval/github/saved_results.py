"""Results that exist already: of a workflow run, and in a file, which are published or listed as requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass
from agenteval.gate.verdict import decide_gate, quarantined, rules_of
from agenteval.github.artifacts import PERMISSIONS, DownloadedReport, UnusableArtifactError
from agenteval.github.check_run import creation, updates
from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.comment import StepName
from agenteval.github.comment_sections import Comment, marker
from agenteval.github.event import run_page, workflow_file
from agenteval.github.history import DEFAULT_SERVER_URL
from agenteval.github.publisher import (
    Content,
    PublicationTarget,
    Publisher,
    PublishOptions,
    content_of,
    revision_of,
    section_of,
)
from agenteval.github.workflow_runs import Artifact, WorkflowRun, artifacts_named, get_run
from agenteval.report.facts import facts, notes_of
from agenteval.report.overview import render_running
from agenteval.results.model import Results
from agenteval.results.rollup import check_consistent
from agenteval.results.store import parse_results, read_results
from agenteval.run.config import Settings
from agenteval.run.git import ControlError, git
from agenteval.run.resolve_saved import resolve_saved

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
        repository: ``owner/name``; ``None`` for the one of the environment or of git.
    """

    run_id: int
    name: str = ARTIFACT
    repository: str | None = None


def results_of_run(wanted: ReportArtifact, environment: Mapping[str, str], here: Path) -> Results:
    """Download the results of a workflow run; nothing is written to disk.

    Args:
        environment: ``GITHUB_TOKEN`` or ``GH_TOKEN`` is the token.

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


def _client(environment: Mapping[str, str]) -> GitHubClient:
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    if not token.strip():
        needed = "a token is needed to download the results of a workflow run"
        raise ConfigError(
            Problem(f"{needed}: set GITHUB_TOKEN, for instance with `gh auth token`", path="--run", kind=Kind.GITHUB)
        )
    return GitHubClient.from_environment(token, environment)


def _parts(address: str) -> tuple[str, str]:
    """Return the host and ``owner/name`` of the address of a repository; the address may contain credentials."""
    short = _SHORT_ADDRESS.fullmatch(address) if "://" not in address else None
    try:
        parts = urlsplit(address)
        host, path = (short[1], short[2]) if short else (parts.hostname or "", parts.path)
    except ValueError:
        return "", ""
    return host, path.strip("/").removesuffix(".git")


def _results(client: GitHubClient, repository: str, artifact: Artifact, run: WorkflowRun) -> Results:
    """Return the results in an artifact.

    Raises:
        UnusableArtifactError: it contains none, or those of another commit.
    """
    results = DownloadedReport.download(client, repository, artifact).results(parse_results)
    if results.run.commit not in {None, run.head_sha}:
        raise UnusableArtifactError("its results are of another commit than the run")
    return results


def _without_artifact(run: WorkflowRun, wanted: ReportArtifact) -> str:
    if run.is_going_on:
        return "has not ended yet; wait for its end"
    upload = "the workflow must upload the report directory, with actions/upload-artifact"
    return f"has no artifact named {wanted.name}: {upload}; another name: --artifact NAME"


def _wrong(wanted: ReportArtifact, why: str) -> ConfigError:
    return ConfigError(Problem(f"workflow run {wanted.run_id} {why}", path="--run", kind=Kind.GITHUB))


def planned_calls(target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[str]:
    """Yield every request that publishing this content can make, in order."""
    root = f"/repos/{target.repository}"
    if options.check_name and target.takes_checks:
        yield from _check_calls(root, target, options, content)
    if target.pull_request is not None and options.comment != "never":
        yield from _comment_calls(root, target, options, content)


def _check_calls(root: str, target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[str]:
    note = render_running(target.commit, target.run_url)
    start = creation(target.commit, options.check_name, target.run_url, target.external_id, note)
    yield _listed(f"POST {root}/check-runs", body=_json(start))
    texts = (content.title, content.summary, content.details)
    *additions, completion = updates(content.conclusion, *texts, content.annotations, start=target.external_id)
    for body in additions:
        yield _listed(f"PATCH {root}/check-runs/{{id}}", body=_json(body))
    of_name = f"GET {root}/commits/{target.commit}/check-runs"
    yield _listed(of_name, "those of this name; again after the completion, to correct the others")
    yield _listed(f"PATCH {root}/check-runs/{{id}}", "with the conclusion of the worst one", _json(completion))


def _comment_calls(root: str, target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[str]:
    mark = marker(options.comment_id)
    text = Comment(mark, (section_of(target, content, target.jobs()),)).render()
    thread = f"{root}/issues/{target.pull_request}/comments"
    yield _listed(f"GET {root}/pulls/{target.pull_request}")
    yield _listed(f"GET {thread}?per_page=100", "every page; again after a write")
    yield _listed("POST /graphql", "which comments with the marker this token wrote")
    yield _listed(f"GET {root}/issues/comments/{{id}}", "if such a comment exists")
    yield _listed(f"PATCH {root}/issues/comments/{{id}}", "if its text differs; its other sections stay", text)
    if content.calls_for(options.comment):
        yield _listed(f"POST {thread}", "if no such comment exists; the same text")
    yield _listed(f"DELETE {root}/issues/comments/{{id}}", "further comments of this token with the marker")


def _listed(request: str, when: str = "", body: str = "") -> str:
    """Return a request; values that only GitHub has are in braces, and ``when`` is the condition for sending it."""
    condition = f"   ({when})" if when else ""
    return f"{request}{condition}\n{body}".rstrip() + "\n"


def _json(body: Any) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False)


_PULL_REQUEST = "refs/pull/"
_COMMIT_LENGTHS = {40, 64}


@dataclass(frozen=True)
class PublishTarget:
    """Target from the command line; ``None`` is taken from the results and the environment."""

    repository: str | None = None
    pull_request: int | None = None
    commit: str | None = None


def publish_file(
    path: Path, target: PublishTarget, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
) -> list[str]:
    """Publish a results file.

    Args:
        path: the file, or the report directory that contains it.
        target: repository, commit and pull request.
        config: ``agenteval.yaml`` with the gate's settings.
        environment: ``GITHUB_TOKEN`` or ``GH_TOKEN`` is the token.

    Returns:
        The completed steps, as text.

    Raises:
        ConfigError: the file cannot be read, or the target or the token is unknown.
        GithubError: a write failed.
    """
    place, content = _prepared(path, target, options, config, environment)
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    publisher = Publisher(GitHubClient.from_environment(token, environment), place, options)
    send(publisher, content)
    return publisher.done or ["nothing to publish: the results have no pull request, and no check run is enabled"]


def dry_run(
    path: Path, target: PublishTarget, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
) -> list[str]:
    """Return every call of `publish_file`, with its body.

    Raises:
        ConfigError: as for `publish_file`, but without a token.
    """
    place, content = _prepared(path, target, options, config, environment)
    return [*planned_calls(place, options, content)] or ["no call would be made"]


def _prepared(
    path: Path, target: PublishTarget, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
) -> tuple[PublicationTarget, Content]:
    results = read_results(path)
    check_consistent(results, path)
    settings = Settings(config=config)
    return _place(results, target, environment), judged_content(results, options, settings, environment)


def send(publisher: Publisher, content: Content) -> str:
    """Write everything; return the address of the comment.

    Raises:
        GithubError: with every failed write.
    """
    publisher.start_check()
    url = publisher.finish(content)
    if publisher.problems:
        raise GithubError("\n".join(publisher.problems))
    return url


def judged_content(
    results: Results, options: PublishOptions, settings: Settings, environment: Mapping[str, str]
) -> Content:
    """Return the texts of saved results.

    Args:
        settings: configuration, gate and templates.
        environment: environment variables of the runner; links point only to its repository.

    Raises:
        ConfigError: the configuration is invalid.
    """
    spec = resolve_saved(results, settings, environment)
    gate = decide_gate(results, spec.gate)
    judged = results.model_copy(
        update={"gate": gate.model_copy(update={"rules": rules_of(spec.gate, quarantined(results, spec.gate))})}
    )
    return content_of(facts(judged, gate, notes_of(judged), presentation=spec.presentation), options)


def _place(results: Results, target: PublishTarget, environment: Mapping[str, str]) -> PublicationTarget:
    run = results.run
    problems = []
    repository = target.repository or run.repository or environment.get("GITHUB_REPOSITORY")
    if not repository or repository.count("/") != 1:
        problems.append(
            Problem(f"{repository or ''!r} is not a repository; name it: --repository OWNER/NAME", kind=Kind.GITHUB)
        )
    commit = target.commit or run.commit or ""
    if len(commit) not in _COMMIT_LENGTHS or not commit.isalnum():
        problems.append(Problem("the results contain no commit; name it: --commit SHA", kind=Kind.GITHUB))
    number = target.pull_request or _number_in(run.ref or "")
    if problems or repository is None:
        raise ConfigError(problems)
    file = workflow_file(environment.get("GITHUB_WORKFLOW_REF")) or ""
    step = StepName(environment.get("GITHUB_WORKFLOW", ""), environment.get("GITHUB_JOB", ""), file=file)
    run_id = environment.get("GITHUB_RUN_ID") or run.workflow_run_id
    return PublicationTarget(
        repository=repository,
        commit=commit,
        run_url=run_page(environment, repository, run_id),
        step=step,
        revision=revision_of(run_id, environment.get("GITHUB_RUN_ATTEMPT")),
        pull_request=number,
    )


def _number_in(ref: str) -> int | None:
    """Return the number in ``refs/pull/7/merge``."""
    text = ref.removeprefix(_PULL_REQUEST).partition("/")[0]
    return int(text) if ref.startswith(_PULL_REQUEST) and text.isascii() and text.isdigit() else None
