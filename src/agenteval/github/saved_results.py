"""Results that exist already: of a workflow run, and in a file, which are published or listed as requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agenteval.core.errors import ConfigError, Kind, Problem
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
from agenteval.github.workflow_runs import WorkflowRun, artifacts_named, get_run
from agenteval.report.facts import facts, notes_of
from agenteval.report.overview import render_running
from agenteval.results.model import DEFAULT_ARTIFACT, Results
from agenteval.results.rollup import check_consistent
from agenteval.results.store import parse_results, read_results
from agenteval.run.config import Settings
from agenteval.run.git import ControlError, git
from agenteval.run.resolve_saved import resolve_saved

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
# git@host:owner/name, the short form of an address of ssh.
_SHORT_ADDRESS = re.compile(r"(?:[^@/\s]+@)?([^:/\s]+):(?!/)(\S+)")
_NOT_FOUND = 404


def results_of_run(
    run_id: int, environment: Mapping[str, str], here: Path, artifact: str | None, repository: str | None
) -> Results:
    """Download the results of a workflow run; nothing is written to disk.

    Args:
        artifact: name of the artifact with the report directory; ``None`` for the usual one.
        repository: ``None`` for the one of the environment or of git.
    """
    client, name = _client(environment), artifact or DEFAULT_ARTIFACT
    repository = repository or repository_of_git(environment, here)
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(
            Problem(f"{repository!r} is not a repository; name it: --repository OWNER/NAME", kind=Kind.GITHUB)
        )
    try:
        with client.open(f"read workflow run {run_id} of {repository}", PERMISSIONS) as api:
            run = get_run(api, repository, run_id)
            artifacts = artifacts_named(api, repository, run.id, name)
    except GithubError as error:
        if error.status != _NOT_FOUND:
            raise
        why = "the id is the number in the address of its page, and the token must be able to see it"
        raise _wrong(run_id, f"is not in {repository}; {why}") from None
    if not artifacts:
        raise _wrong(run_id, _without_artifact(run, name))
    try:
        results = DownloadedReport.download(client, repository, artifacts[0]).results(parse_results)
        if results.run.commit not in {None, run.head_sha}:
            raise UnusableArtifactError("its results are of another commit than the run")
    except UnusableArtifactError as error:
        raise _wrong(
            run_id, f"has an artifact {name} that cannot be used: {error.reason}; run the workflow again"
        ) from None
    return results


def repository_of_git(environment: Mapping[str, str], here: Path) -> str:
    """Return the repository of ``GITHUB_REPOSITORY``, else that of the remote ``origin`` on this server."""
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


def _without_artifact(run: WorkflowRun, name: str) -> str:
    if run.is_going_on:
        return "has not ended yet; wait for its end"
    upload = "the workflow must upload the report directory, with actions/upload-artifact"
    return f"has no artifact named {name}: {upload}; another name: --artifact NAME"


def _wrong(run_id: int, why: str) -> ConfigError:
    return ConfigError(Problem(f"workflow run {run_id} {why}", path="--run", kind=Kind.GITHUB))


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


def publish_file(
    path: Path,
    options: PublishOptions,
    config: Path | None,
    environment: Mapping[str, str],
    *,
    is_dry_run: bool,
    repository: str | None = None,
    pull_request: int | None = None,
    commit: str | None = None,
) -> list[str]:
    """Publish a results file; return the completed steps, or in a dry run every call with its body.

    What is ``None`` is taken from the results and the environment.
    """
    results = read_results(path)
    check_consistent(results, path)
    place = _place(results, repository, pull_request, commit, environment)
    content = _judged_content(results, options, Settings(config=config), environment)
    if is_dry_run:
        return [*planned_calls(place, options, content)] or ["no call would be made"]
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    publisher = Publisher(GitHubClient.from_environment(token, environment), place, options)
    publisher.start_check()
    publisher.finish(content)
    if publisher.problems:
        raise GithubError("\n".join(publisher.problems))
    return publisher.done or ["nothing to publish: the results have no pull request, and no check run is enabled"]


def _judged_content(
    results: Results, options: PublishOptions, settings: Settings, environment: Mapping[str, str]
) -> Content:
    spec = resolve_saved(results, settings, environment)
    gate = decide_gate(results, spec.gate)
    rules = rules_of(spec.gate, quarantined(results, spec.gate))
    judged = results.model_copy(update={"gate": gate.model_copy(update={"rules": rules})})
    return content_of(facts(judged, gate, notes_of(judged), presentation=spec.presentation), options)


def _place(
    results: Results,
    repository: str | None,
    pull_request: int | None,
    commit: str | None,
    environment: Mapping[str, str],
) -> PublicationTarget:
    run = results.run
    problems = []
    repository = repository or run.repository or environment.get("GITHUB_REPOSITORY")
    if not repository or repository.count("/") != 1:
        problems.append(
            Problem(f"{repository or ''!r} is not a repository; name it: --repository OWNER/NAME", kind=Kind.GITHUB)
        )
    commit = commit or run.commit or ""
    if len(commit) not in _COMMIT_LENGTHS or not commit.isalnum():
        problems.append(Problem("the results contain no commit; name it: --commit SHA", kind=Kind.GITHUB))
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
        pull_request=pull_request or _number_in(run.ref or ""),
    )


def _number_in(ref: str) -> int | None:
    text = ref.removeprefix(_PULL_REQUEST).partition("/")[0]
    return int(text) if ref.startswith(_PULL_REQUEST) and text.isascii() and text.isdigit() else None
