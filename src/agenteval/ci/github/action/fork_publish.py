"""Publishes the results of a fork's run, from a second workflow.

The first workflow evaluated the pull request without any permissions. The second one has permissions and therefore
trusts nothing: it reads the results, validates them against their schema, and renders the reports again.
"""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.ci.github.action.context import Context
from agenteval.ci.github.action.outputs import say
from agenteval.ci.github.api.artifacts import PERMISSIONS, UnusableArtifactError
from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.fork_run import FirstStage, first_stage
from agenteval.ci.github.api.workflow_runs import artifacts_named
from agenteval.ci.github.downloaded_report import DownloadedReport
from agenteval.ci.github.publish.publisher import Content, PublicationTarget, Publisher, revision_of
from agenteval.ci.github.publish.saved_results import judged_content, send
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.masking import shortened
from agenteval.core.text.escape import markdown_inline
from agenteval.report.markdown.placeholders import render_nothing_left
from agenteval.results.model import Results
from agenteval.results.store import parse_results
from agenteval.results.verdict import Verdict

_REASON_LIMIT = 300


@dataclass(frozen=True)
class Published:
    """The result of a publication.

    Attributes:
        content: the texts of the run.
        verdict: the gate's verdict; ``error`` if the run left no results.
        comment_url: address of the comment; empty without one.
        done: the completed steps, as text.
    """

    content: Content
    verdict: Verdict
    comment_url: str
    done: tuple[str, ...]


def publish_first_stage(context: Context) -> Published | None:
    """Publish the workflow run of the event; return ``None`` if its pull request has a newer commit.

    Raises:
        ConfigError: the event has no workflow run of a pull request, or the configuration is invalid.
        GithubError: a read or write failed.
    """
    event, inputs = context.event, context.inputs
    if event.first_stage is None or event.repository is None:
        message = "mode publish needs the event workflow_run, which names the run to publish"
        raise ConfigError(Problem(message, path="mode"))
    client = context.client()
    stage = first_stage(client, event.repository, event.first_stage)
    if stage.pull_request is None:
        say(f"agenteval: nothing to publish: no open pull request has {stage.commit} as its head")
        return None
    place = PublicationTarget(
        repository=event.repository,
        commit=stage.commit,
        run_url=stage.url,
        step=context.step,
        revision=revision_of(str(stage.run_id), str(stage.attempt)),
        pull_request=stage.pull_request,
        jobs=context.jobs,
    )
    publisher = Publisher(client, place, context.options)
    try:
        results = _results(client, event.repository, stage, inputs.baseline_artifact)
    except UnusableArtifactError as error:
        content = _without_results(stage, error, context.step.title)
    else:
        content = judged_content(
            results, context.options, inputs.settings_of_reports(), context.environment, name=context.step.title
        )
    # The author of the pull request can have forged the results.
    url = send(publisher, content.untrusted() if stage.from_fork else content)
    return Published(content, content.verdict, url, tuple(publisher.done))


def _without_results(stage: FirstStage, error: UnusableArtifactError, name: str) -> Content:
    reason = shortened(error.reason, _REASON_LIMIT)
    text = render_nothing_left(stage.commit, stage.url, markdown_inline(reason), name)
    return Content(f"no results: {reason}", text, text, "failure")


def _results(client: Client, repository: str, stage: FirstStage, name: str) -> Results:
    with client.open(f"list the artifacts of workflow run {stage.run_id} of {repository}", PERMISSIONS) as api:
        found = artifacts_named(api, repository, stage.run_id, name)
    if not found:
        raise UnusableArtifactError(f"the run has no artifact {name}")
    results = DownloadedReport.download(client, repository, found[0]).results(parse_results)
    if results.run.commit != stage.commit:
        raise UnusableArtifactError("its results are of another commit than the run")
    return results
