"""Publishes the results of a fork's run, from a second workflow.

The first workflow evaluated the pull request without any permissions. The second one has permissions and therefore
trusts nothing: it validates the results, decides by the rules of the base branch, and renders the reports again. The
pull requests come from GitHub, never from an event or a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.escape import markdown_inline
from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import shortened
from agenteval.github.artifacts import PERMISSIONS, DownloadedReport, UnusableArtifactError
from agenteval.github.check_run import Conclusion
from agenteval.github.client import GitHubClient, read_file
from agenteval.github.comment import StepName
from agenteval.github.context import Context
from agenteval.github.publisher import Content, PublicationTarget, Publisher, revision_of
from agenteval.github.pull_request import RESULTS_LABEL, RemoteAcceptances
from agenteval.github.runner import say
from agenteval.github.second_stage import judge
from agenteval.github.workflow_runs import WorkflowJob, artifacts_named, end_of, is_repeated, jobs_of
from agenteval.report.overview import render_nothing_left
from agenteval.results.model import Results
from agenteval.results.store import parse_results
from agenteval.results.verdict import Verdict

if TYPE_CHECKING:
    from github.PullRequest import PullRequest
    from github.Repository import Repository
    from github.WorkflowRun import WorkflowRun

FORK_PERMISSIONS = ("actions: read", "contents: read", "pull-requests: read")


@dataclass(frozen=True)
class FirstStage:
    """The fork's workflow run.

    Attributes:
        workflow: path of its workflow file; of several ones with the same name, each has another path.
        jobs: in all attempts; empty if there are too many.
    """

    run_id: int
    attempt: int
    url: str
    commit: str
    from_fork: bool
    workflow: str
    pull_requests: tuple[PullRequest, ...]
    jobs: tuple[WorkflowJob, ...] = ()


def first_stage(client: GitHubClient, repository: str, run_id: int) -> FirstStage:
    """Ask GitHub about a workflow run."""
    with client.open(f"read workflow run {run_id} of {repository}", FORK_PERMISSIONS) as api:
        place = api.get_repo(repository)
        run = place.get_workflow_run(run_id)
        if run.event != "pull_request":
            raise ConfigError(
                Problem(
                    f"workflow run {run_id} is of the event {run.event!r}, not of a pull request", kind=Kind.GITHUB
                )
            )
        head = run.head_repository.full_name if run.head_repository else None
        pulls = tuple(_pull_requests(place, run))
        return FirstStage(
            run_id=run.id,
            attempt=run.run_attempt or 1,
            url=run.html_url,
            commit=run.head_sha,
            from_fork=head is None or head.casefold() != repository.casefold(),
            workflow=(run.path or "").partition("@")[0],
            pull_requests=pulls,
            jobs=jobs_of(api, repository, run_id) if pulls else (),
        )


def _pull_requests(repository: Repository, run: WorkflowRun) -> Iterator[PullRequest]:
    owner = run.head_repository.owner.login if run.head_repository else None
    if owner is None:
        return
    for pull in repository.get_pulls(state="open", head=f"{owner}:{run.head_branch}"):
        if pull.head.sha == run.head_sha and pull.base.repo.full_name == repository.full_name:
            yield pull


_REASON_LIMIT = 300
# Of several pull requests with one head, the worst decides the check run of the commit.
_WORST: tuple[Conclusion, ...] = ("failure", "action_required", "neutral", "success")


@dataclass(frozen=True)
class Published:
    """The result of a publication.

    Attributes:
        verdict: the gate's verdict; ``error`` if the run left no results.
        contradiction: why the verdict is worse than that of the job that evaluated; empty if it is not.
        comment_url: address of the comment; empty without one.
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
        named: Sequence[PullRequest] = stage.pull_requests
        found = [(pull, second.without_results(error), "") for pull in stage.pull_requests]
    else:
        named = [pull for pull in stage.pull_requests if _is_of(results, pull)] or stage.pull_requests
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
    client: GitHubClient
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

    def judged(self, results: Results, pull: PullRequest) -> tuple[Content, str]:
        """Return the texts for a pull request, and why they contradict the job that evaluated."""
        judged_for, base = results.run.base_ref, pull.base
        if _is_of(results, pull) and judged_for not in {None, base.ref}:
            why = f"they are for merging into {judged_for}, and the pull request is to be merged into {base.ref}"
            return self.without_results(UnusableArtifactError(why)), ""
        of_pull = results.model_copy(update={"run": results.run.model_copy(update={"base_ref": base.ref})})
        content, contradiction = judge(
            of_pull,
            self.context,
            lambda path: read_file(self.client, self.repository, path, base.sha),
            self.step.title,
        )
        if self.stage.from_fork and self.context.inputs.fork_results == "label":
            content = self._with_acceptance(content, pull)
        return content, contradiction

    def publish(
        self, pull: PullRequest, content: Content, contradiction: str, *, checks: bool, comments: bool
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

    def _with_acceptance(self, content: Content, pull: PullRequest) -> Content:
        """Return the texts with who accepted them; without anybody, no rule is satisfied."""
        stage = self.stage
        given = RemoteAcceptances(
            lambda: self.client, self.repository, stage.workflow.rpartition("/")[2], pull.number, stage.commit
        ).results_accepted(end_of(stage.jobs))
        for accepted in given.entries:
            return content.accepted(f"Results of a fork's job, accepted by {markdown_inline(accepted.author)}.")
        why = "; ".join(given.warnings) or f"the label {RESULTS_LABEL} is not set"
        say(f"agenteval: nobody has accepted the results of pull request #{pull.number}: {why}")
        set_label = f"sets the label `{RESULTS_LABEL}` and runs the job again that published this"
        reasons = "".join(f" {markdown_inline(warning[:1].upper() + warning[1:])}." for warning in given.warnings)
        return content.awaiting_acceptance(
            "⚠️ A job of a fork made these results, and its author could have forged them. After a review, a "
            f"person with write access {set_label}.{reasons}"
        )


def _is_of(results: Results, pull: PullRequest) -> bool:
    return results.run.ref == f"refs/pull/{pull.number}/merge"


def _results(client: GitHubClient, repository: str, stage: FirstStage, name: str) -> Results:
    with client.open(f"list the artifacts of workflow run {stage.run_id} of {repository}", PERMISSIONS) as api:
        found = artifacts_named(api, repository, stage.run_id, name)
    if not found:
        raise UnusableArtifactError(f"the run has no artifact {name}")
    made_at = found[0].created_at
    if made_at is not None and is_repeated(stage.jobs, made_at):
        raise UnusableArtifactError(f"attempt {stage.attempt} has no artifact {name}, only an earlier one has")
    results = DownloadedReport.download(client, repository, found[0]).results(parse_results)
    if results.run.commit != stage.commit:
        raise UnusableArtifactError("its results are of another commit than the run")
    return results
