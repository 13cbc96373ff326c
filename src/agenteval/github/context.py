"""Inputs and event of one step, and what the step may write on GitHub."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field
from agenteval.github.baseline import Lineage, Start, find_lineage, short
from agenteval.github.client import GitHubClient
from agenteval.github.comment import StepName, leg_of
from agenteval.github.event import EventRights, plan, read_event, run_page
from agenteval.github.history import GithubControl, GithubHistory
from agenteval.github.inputs import Inputs, read_inputs
from agenteval.github.publisher import PublicationTarget, Publisher, PublishOptions, revision_of
from agenteval.github.runner import warn
from agenteval.github.workflow_runs import RunJobs, jobs_of_run
from agenteval.results.model import DEFAULT_ARTIFACT
from agenteval.run.config import Settings
from agenteval.run.context import Given, Recollection, RunContext, Search
from agenteval.run.git import Provenance


@dataclass(frozen=True)
class Context:
    """Inputs and event of a step.

    Attributes:
        given: the settings of the run; ``None`` for those of the inputs.
    """

    environment: Mapping[str, str] = field(repr=False)
    inputs: Inputs
    event: EventRights
    given: Settings | None = None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Context:
        """Read inputs and event."""
        return cls.of(environment, read_inputs(environment))

    @classmethod
    def of(cls, environment: Mapping[str, str], inputs: Inputs, given: Settings | None = None) -> Context:
        """Read the event."""
        event = plan(environment, read_event(environment))
        if event.requested_by is not None:
            from agenteval.github.client import confirmed

            client = GitHubClient.from_environment(inputs.github_token, environment)
            event = confirmed(event, client, _workspace(environment))
        return cls(environment, inputs, event, given)

    @property
    def settings(self) -> Settings:
        """The settings of a run in the current directory."""
        return self.inputs.settings() if self.given is None else self.given

    @property
    def options(self) -> PublishOptions:
        """The options of the publication."""
        inputs = self.inputs
        if inputs.shard is not None:
            # A shard alone is not published.
            return PublishOptions(comment="never", annotations=False)
        return PublishOptions(inputs.comment, inputs.comment_id, inputs.check_name)

    @cached_property
    def step(self) -> StepName:
        """The name of this step, which its section in the comment has."""
        workflow, job, step = (self.environment.get(f"GITHUB_{name}", "") for name in ("WORKFLOW", "JOB", "ACTION"))
        if self.inputs.job[0] is None and self.event.may_comment and self.options.comment != "never":
            # A command gets no `toJSON(matrix)`: the names of jobs that GitHub shows tell its legs apart.
            with suppress(ConfigError):
                job = own.own if (own := self.jobs()) else job
        return StepName(workflow, job, leg_of(self.inputs.job[1]), step, self.event.workflow or "")

    def jobs(self) -> RunJobs | None:
        """Return the jobs of this workflow run; ``None`` if they are unknown."""
        repository, run_id = self.event.repository, self.event.workflow_run_id or ""
        if repository is None or not (run_id.isascii() and run_id.isdigit()):
            return None
        runner = self.environment.get("RUNNER_NAME", "")
        return jobs_of_run(self.client(), repository, int(run_id), str(self.inputs.job[0]), runner)

    @property
    def provenance(self) -> Provenance:
        """The repository, commit and workflow run that are evaluated."""
        event, head = self.event, self.lineage.head
        # The results of a shard are in another artifact than those of the merged run, which names it.
        name = None if self.inputs.shard is not None else self.inputs.baseline_artifact
        artifact = None if name == DEFAULT_ARTIFACT else name
        if event.event != "pull_request" and head is not None and head.commit != event.github_sha:
            # The workflow has checked out something else than the commit of its branch.
            return Provenance(head.commit, None, event.repository, event.workflow_run_id, artifact)
        base = event.base_ref if event.pull_request is not None else None
        return Provenance(event.commit, event.ref, event.repository, event.workflow_run_id, artifact, base_ref=base)

    @cached_property
    def history(self) -> GithubHistory:
        """What GitHub knows about the commits of the repository."""
        return GithubHistory(self.client, self.event.repository)

    @cached_property
    def lineage(self) -> Lineage:
        """What the run is compared with; found before user code runs."""
        return find_lineage(self.event, self.workspace / self.inputs.working_directory, self.history)

    def client(self) -> GitHubClient:
        """Return the client of the GitHub API."""
        return GitHubClient.from_environment(self.inputs.github_token, self.environment)

    @property
    def workspace(self) -> Path:
        """The directory of the checkout."""
        return _workspace(self.environment)

    @cached_property
    def publisher(self) -> Publisher | None:
        """Return the publisher; ``None`` if nothing may be written or the target is unknown."""
        event = self.event
        if event.repository is None or event.commit is None or not (event.may_comment or event.may_check):
            return None
        try:
            client = self.client()
        except ConfigError as error:
            warn([str(error)])
            return None
        place = PublicationTarget(
            repository=event.repository,
            commit=self._published_commit or event.commit,
            run_url=run_page(self.environment),
            step=self.step,
            revision=revision_of(event.workflow_run_id, self.environment.get("GITHUB_RUN_ATTEMPT")),
            pull_request=event.pull_request if event.may_comment else None,
            takes_checks=event.may_check,
            jobs=self.jobs,
        )
        return Publisher(client, place, self.options)

    def enter(self) -> None:
        """Change to the working directory of the inputs."""
        workspace = self.workspace
        path = workspace / self.inputs.working_directory
        try:
            if not path.resolve().is_relative_to(workspace):
                message = f"{path} leads out of the workspace; name a directory inside"
                raise ConfigError(Problem(message, path="working-directory", kind=Kind.GITHUB))
            os.chdir(path)
        except OSError as error:
            raise ConfigError(
                Problem(f"{path}: {error.strerror}", path="working-directory", kind=Kind.GITHUB)
            ) from None

    @property
    def _published_commit(self) -> str | None:
        """The commit that is evaluated; that of the event if a step has made it, so that GitHub does not know it."""
        event, evaluated = self.event, self.provenance.commit
        if self.inputs.mode != "run" or event.is_proposed or evaluated in {None, event.commit}:
            return event.commit
        try:
            return self.history.head(evaluated or "").commit
        except AgentEvalError:
            return event.commit

    def check_checkout(self) -> None:
        """Check that what would be evaluated is the change of the event."""
        event, lineage = self.event, self.lineage
        kind = {"pull_request": "pull request", "merge_group": "merge group"}.get(event.event)
        if kind is None or lineage.head is None or not lineage.is_stray:
            return
        fix = "check out what actions/checkout does without `ref`"
        if event.event == "pull_request":
            fix = f"{fix}, or `ref: ${{{{ github.event.pull_request.head.sha }}}}`"
        raise ConfigError(
            Problem(
                f"the workspace contains commit {short(lineage.head.commit)}, which is without commit "
                f"{short(event.commit or '')} of the {kind}; {fix}",
                kind=Kind.GITHUB,
            )
        )

    @property
    def runs(self) -> int:
        """The number of runs, from 1."""
        inputs, event = self.inputs, self.event
        if inputs.runs == 1:
            return 1
        if inputs.mode != "run":
            raise ConfigError(
                Problem(f"has no effect with mode {inputs.mode}; remove it", path="runs", kind=Kind.GITHUB)
            )
        if event.is_proposed:
            message = f"{event.event} events have one run, because a second one would be compared with the first"
            raise ConfigError(
                Problem(f"{message}; set it only for commits of a branch", path="runs", kind=Kind.GITHUB)
            )
        return inputs.runs

    def run_context(self) -> RunContext:
        """Return what this step contributes to a run in the current directory."""
        inputs = self.inputs
        control = GithubControl(self.lineage.rule, self.history, inputs.github_token, self.environment)
        return RunContext(
            self.provenance,
            self._baseline_source(),
            inputs.setup,
            control=control,
            attempts=self._attempts(),
            acceptances=self._acceptances(),
        )

    def _acceptances(self) -> Callable[[], Given] | None:
        event = self.event
        if event.event != "pull_request" or event.pull_request is None or event.commit is None:
            return None
        if event.repository is None or event.workflow is None:
            return None
        from agenteval.github.pull_request import RemoteAcceptances

        number, label = event.pull_request, event.new_label or ""
        return RemoteAcceptances(self.client, event.repository, event.workflow, number, event.commit, label).read

    def _attempts(self) -> Callable[[], Recollection] | None:
        """Return what finds the earlier attempts of the pull request; ``None`` for other events, and for forks."""
        inputs, event = self.inputs, self.event
        number, branch = event.pull_request, event.head_ref
        if event.event != "pull_request" or number is None or branch is None:
            return None
        if event.repository is None or event.workflow is None:
            return None
        from agenteval.github.pull_request import RemoteAttempts

        return RemoteAttempts(
            self.client,
            event.repository,
            event.workflow,
            inputs.baseline_artifact,
            number,
            branch,
            event.base_ref or "",
            event.commit if event.is_text_edit else None,
        ).recall

    def _baseline_source(self) -> Callable[[Collection[str]], Search] | None:
        """Return what finds the baseline; ``None`` if the caller names a file that exists, or wants none."""
        inputs, event = self.inputs, self.event
        from agenteval.github.baseline_search import BaselineSearch

        if not inputs.baseline_is_searched:
            if inputs.missing_baseline is None:
                return None
            start: Start | int | str = f"the baseline {inputs.missing_baseline} does not exist"
        elif event.repository is None:
            start = "the repository is unknown"
        else:
            start = int(inputs.baseline) if inputs.baseline.isdigit() else self.lineage.start
        return BaselineSearch(
            self.client,
            event.repository or "",
            event.workflow or "",
            inputs.baseline_artifact,
            event.baseline_branch or "",
            start,
            event.workflow_run_id,
            event.default_branch,
            self.lineage.clone,
        ).search


def _workspace(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("GITHUB_WORKSPACE") or ".").resolve()
