"""Publishes the results in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.comment.step import StepName
from agenteval.ci.github.event import run_page, workflow_file
from agenteval.ci.github.publish.publisher import (
    Content,
    PublicationTarget,
    Publisher,
    PublishOptions,
    content_of,
    revision_of,
)
from agenteval.compare.gate import decide_gate, quarantined, rules_of
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.report.view.view import view_of
from agenteval.results.consistency import check_consistent
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings

_PULL_REQUEST = "refs/pull/"
_COMMIT_LENGTHS = {40, 64}


@dataclass(frozen=True)
class Target:
    """Target from the command line; ``None`` is taken from the results and the environment."""

    repository: str | None = None
    pull_request: int | None = None
    commit: str | None = None


def publish_file(
    path: Path, target: Target, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
) -> list[str]:
    """Publish a results file.

    Args:
        path: the file, or the report directory that contains it.
        target: repository, commit and pull request.
        options: options of the publication.
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
    publisher = Publisher(Client.from_environment(token, environment), place, options)
    send(publisher, content)
    return publisher.done or ["nothing to publish: the results have no pull request, and no check run is enabled"]


def dry_run(
    path: Path, target: Target, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
) -> list[str]:
    """Return every call of `publish_file`, with its body.

    Raises:
        ConfigError: as for `publish_file`, but without a token.
    """
    from agenteval.ci.github.publish.dry_run import planned_calls

    place, content = _prepared(path, target, options, config, environment)
    return [str(call) for call in planned_calls(place, options, content)] or ["no call would be made"]


def _prepared(
    path: Path, target: Target, options: PublishOptions, config: Path | None, environment: Mapping[str, str]
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
        results: the run.
        options: options of the publication.
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
    return content_of(judged, view_of(gate, judged), options, presentation=spec.presentation)


def _place(results: Results, target: Target, environment: Mapping[str, str]) -> PublicationTarget:
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
