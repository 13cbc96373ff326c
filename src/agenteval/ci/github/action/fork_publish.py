"""Publishes the results of a fork's run, from a second workflow.

The first workflow evaluated the pull request without any permissions. The second one has permissions and therefore
trusts nothing: it validates the results, decides by the rules of the base branch, and renders the reports again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agenteval.ci.github.acceptances.source import RESULTS_LABEL, RemoteAcceptances
from agenteval.ci.github.action.context import Context
from agenteval.ci.github.action.outputs import say
from agenteval.ci.github.api.artifacts import PERMISSIONS, UnusableArtifactError
from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.fork_run import FirstStage, OpenPullRequest, first_stage
from agenteval.ci.github.api.jobs import end_of, is_repeated
from agenteval.ci.github.api.workflow_runs import artifacts_named
from agenteval.ci.github.checks.shared import Conclusion
from agenteval.ci.github.comment.step import StepName
from agenteval.ci.github.downloaded_report import DownloadedReport
from agenteval.ci.github.publish.base_copy import BaseCommitFiles
from agenteval.ci.github.publish.publisher import Content, PublicationTarget, Publisher, revision_of
from agenteval.ci.github.publish.second_stage import SecondStage
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.masking import shortened
from agenteval.core.text.escape import markdown_inline
from agenteval.report.markdown.placeholders import render_nothing_left
from agenteval.results.model import Results
from agenteval.results.store import parse_results
from agenteval.results.verdict import Verdict

_REASON_LIMIT = 300
# Of several pull requests with one head, the worst decides the check run of the commit.
_WORST: tuple[Conclusion, ...] = ("failure", "action_required", "neutral", "success")


@dataclass(frozen=True)
class Published:
    """The result of a publication.

    Attributes:
        content: the texts of the run.
        verdict: the gate's verdict; ``error`` if the run left no results.
        contradiction: why the verdict is worse than that of the job that evaluated; empty if it is not.
        comment_url: address of the comment; empty without one.
        done: the completed steps, as text.
        problems: the failed steps, with reasons.
    """

    content: Content
    verdict: Verdict
    contradiction: str
    comment_url: str
    done: tuple[str, ...]
    problems: tuple[str, ...] = ()


def publish_first_stage(context: Context) -> tuple[Published, ...]:
    """Publish the workflow run of the event to its pull requests, the worst verdict first.

    Returns:
        Nothing if no open pull request has the commit as its head any more.

    Raises:
        ConfigError: the event has no workflow run of a pull request, or the configuration is invalid.
        GithubError: a read failed. A failed write prevents no other one.
    """
    event, inputs = context.event, context.inputs
    if event.first_stage is None or event.repository is None:
        message = "mode publish needs the event workflow_run, which names the run to publish"
        raise ConfigError(Problem(message, path="mode", kind=Kind.GITHUB))
    client = context.client()
    stage = first_stage(client, event.repository, event.first_stage)
    if not stage.pull_requests:
        say(f"agenteval: nothing to publish: no open pull request has {stage.commit} as its head")
        return ()
    second = _SecondStage(context, client, event.repository, stage)
    try:
        results = _results(client, event.repository, stage, inputs.baseline_artifact)
    except UnusableArtifactError as error:
        named: Sequence[OpenPullRequest] = stage.pull_requests
        found = [(pull, second.without_results(error), "") for pull in stage.pull_requests]
    else:
        named = _proposing(stage, results)
        found = [(pull, *second.judged(results, pull)) for pull in stage.pull_requests]
    found.sort(key=lambda item: _WORST.index(item[1].conclusion))
    # The fork says which pull request its results are for. It must not choose the rules that decide the check run.
    (worst, *_), *_ = found
    return tuple(
        second.publish(*item, checks=item[0] is worst, comments=item[0] in named)
        for item in found
        if item[0] is worst or item[0] in named
    )


@dataclass(frozen=True)
class _SecondStage:
    context: Context
    client: Client
    repository: str
    stage: FirstStage

    @property
    def step(self) -> StepName:
        """The name of this step, which publishes for one of several first workflows."""
        return replace(self.context.step, first=self.stage.workflow)

    def without_results(self, error: UnusableArtifactError) -> Content:
        reason, stage = shortened(error.reason, _REASON_LIMIT), self.stage
        text = render_nothing_left(stage.commit, stage.url, markdown_inline(reason), self.step.title)
        return Content(f"no results: {reason}", text, text, "failure")

    def judged(self, results: Results, pull: OpenPullRequest) -> tuple[Content, str]:
        """Return the texts for a pull request, and why they contradict the job that evaluated."""
        inputs, context = self.context.inputs, self.context
        rules = SecondStage(
            context.options,
            inputs.settings_of_reports(),
            inputs.working_directory,
            context.environment,
            self.step.title,
        )
        content, decision = rules.judge(results, BaseCommitFiles(self.client, self.repository, pull.base))
        if self.stage.from_fork and inputs.fork_results == "label":
            content = self._with_acceptance(content, pull)
        return content, decision.contradiction

    def publish(
        self, pull: OpenPullRequest, content: Content, contradiction: str, *, checks: bool, comments: bool
    ) -> Published:
        stage, context = self.stage, self.context
        place = PublicationTarget(
            repository=self.repository,
            commit=stage.commit,
            run_url=stage.url,
            step=self.step,
            revision=revision_of(str(stage.run_id), str(stage.attempt)),
            pull_request=pull.number if comments else None,
            takes_checks=checks,
            jobs=context.jobs,
        )
        publisher = Publisher(self.client, place, context.options)
        publisher.start_check()
        url = publisher.finish(content)
        done, problems = tuple(publisher.done), tuple(publisher.problems)
        return Published(content, content.verdict, contradiction, url, done, problems)

    def _with_acceptance(self, content: Content, pull: OpenPullRequest) -> Content:
        """Return the texts with who accepted them; without anybody, no rule is satisfied."""
        stage = self.stage
        given = RemoteAcceptances(
            lambda: self.client, self.repository, stage.workflow.rpartition("/")[2], pull.number, stage.commit
        ).results_accepted(end_of(stage.executions))
        for accepted in given.entries:
            return content.accepted(f"Results of a fork's job, accepted by {markdown_inline(accepted.author)}.")
        why = "; ".join(given.warnings) or f"the label {RESULTS_LABEL} is not set"
        say(f"agenteval: nobody has accepted the results of pull request #{pull.number}: {why}")
        set_label = f"sets the label `{RESULTS_LABEL}` and runs the job again that published this"
        reasons = "".join(f" {markdown_inline(warning[:1].upper() + warning[1:])}." for warning in given.warnings)
        return content.awaiting_acceptance(
            "⚠️ A job of a fork has made these results, and its author can have written them. After a review, a "
            f"person with write access {set_label}.{reasons}"
        )


def _proposing(stage: FirstStage, results: Results) -> Sequence[OpenPullRequest]:
    """Return the pull requests that results are for: the one that they name, if it has the commit as its head."""
    named = [pull for pull in stage.pull_requests if results.run.ref == f"refs/pull/{pull.number}/merge"]
    return named or stage.pull_requests


def _results(client: Client, repository: str, stage: FirstStage, name: str) -> Results:
    with client.open(f"list the artifacts of workflow run {stage.run_id} of {repository}", PERMISSIONS) as api:
        found = artifacts_named(api, repository, stage.run_id, name)
    if not found:
        raise UnusableArtifactError(f"the run has no artifact {name}")
    made_at = found[0].created_at
    if made_at is not None and is_repeated(stage.executions, made_at):
        raise UnusableArtifactError(f"attempt {stage.attempt} has no artifact {name}, only an earlier one has")
    results = DownloadedReport.download(client, repository, found[0]).results(parse_results)
    if results.run.commit != stage.commit:
        raise UnusableArtifactError("its results are of another commit than the run")
    return results
