"""The sections that jobs, legs of a matrix and steps write to one comment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from github.PullRequest import PullRequest
from tests.peers.action_step import job_environment, of_pull_request
from tests.peers.github_actions import StoredJob
from tests.peers.github_service import GithubService

from agenteval.github.comment_sections import Section
from agenteval.github.comment_update import parse
from agenteval.github.context import Context
from agenteval.github.publisher import Content
from agenteval.results.verdict import Verdict

pytestmark = pytest.mark.peer


@dataclass(frozen=True)
class Workflow:
    """A workflow run of a pull request after the other."""

    github: GithubService
    pull: PullRequest
    folder: Path

    def jobs(self, run: int, *names: str) -> dict[str, StoredJob]:
        """The jobs of a run, all at work."""
        return {name: self.github.actions.job(run, name, runner_name=f"runner of {name}") for name in names}

    def end(self, job: StoredJob) -> None:
        jobs = self.github.actions.jobs
        jobs[jobs.index(job)] = StoredJob(job.id, job.run_id, job.name, "completed", "")

    def publish(
        self,
        job: StoredJob,
        verdict: Verdict = "passed",
        step: str = "__self",
        row: str = "",
        *,
        by_command: bool = False,
        **matrix: Any,
    ) -> None:
        """Publish a verdict as a step of a job does: the action, or a command, which knows neither matrix nor id."""
        known = {"INPUT_JOB": json.dumps([str(job.id), matrix or None, None])}
        environment = job_environment(self.github.url, "pull_request") | {
            "GITHUB_EVENT_PATH": str(of_pull_request(self.pull, self.folder)),
            "GITHUB_RUN_ID": str(job.run_id),
            "GITHUB_JOB": job.name.partition(" (")[0],
            "GITHUB_ACTION": step,
        }
        context = Context.read(environment | ({"RUNNER_NAME": job.runner_name} if by_command else known))
        publisher = context.publisher
        assert publisher is not None
        head_line = f"### agenteval · {context.step.title}: {verdict}\n\nnumbers of run {job.run_id}"
        publisher.finish(Content(verdict, head_line, "", "success", verdict, row=row))
        assert publisher.problems == []

    @property
    def sections(self) -> list[Section]:
        [comment] = list(self.pull.get_issue_comments())
        parsed = parse(comment.body)
        assert parsed is not None
        return [section for section in parsed.sections if not section.is_empty]

    @property
    def headings(self) -> list[str]:
        return [section.head.partition("\n")[0].removeprefix("### agenteval · ") for section in self.sections]


@pytest.fixture
def workflow(github: GithubService, tmp_path: Path) -> Workflow:
    return Workflow(github, github.emulator.pull_request(), tmp_path)


def test_legs_and_steps_keep_their_sections_and_the_worst_leads(workflow: Workflow) -> None:
    ubuntu, windows = workflow.jobs(1, "evaluate (3.12, ubuntu)", "evaluate (3.12, windows)").values()

    workflow.publish(ubuntu, os="ubuntu", python=3.12)
    workflow.publish(windows, "unproven", os="windows", python=3.12)
    workflow.publish(windows, "failed", "__self_2", os="windows", python=3.12)

    assert workflow.headings == [
        "evaluate (windows, 3.12) · step 2: failed",
        "evaluate (windows, 3.12): unproven",
        "evaluate (ubuntu, 3.12): passed",
    ]


def test_legs_of_a_command_keep_their_sections_too(workflow: Workflow) -> None:
    legs = workflow.jobs(1, "evaluate (ubuntu)", "evaluate (windows)")

    workflow.publish(legs["evaluate (ubuntu)"], "failed", by_command=True)
    workflow.publish(legs["evaluate (windows)"], by_command=True)
    assert workflow.headings == ["evaluate (ubuntu): failed", "evaluate (windows): passed"]

    again = workflow.jobs(2, "evaluate (ubuntu)", "evaluate (windows)")
    workflow.publish(again["evaluate (ubuntu)"], by_command=True)
    assert workflow.headings == ["evaluate (ubuntu): passed", "evaluate (windows): passed"]


def test_a_job_that_is_gone_loses_its_section_when_the_last_job_publishes(workflow: Workflow) -> None:
    for job in workflow.jobs(1, "old", "renamed (1)", "renamed (2)", "broken").values():
        workflow.publish(job, n=job.name[-2]) if "(" in job.name else workflow.publish(job)
        workflow.end(job)
    assert len(workflow.headings) == 4

    now = workflow.jobs(2, "new", "renamed (1)", "broken", "lint")
    workflow.publish(now["new"])
    assert "old: passed" in workflow.headings
    workflow.end(now["broken"])
    workflow.publish(now["renamed (1)"], n="1")

    assert sorted(workflow.headings) == ["broken: passed", "new: passed", "renamed (1): passed"]


def test_a_token_that_may_not_list_the_jobs_removes_nothing(workflow: Workflow) -> None:
    workflow.publish(workflow.jobs(1, "old")["old"])
    workflow.github.proxy.refuse("/jobs")

    workflow.publish(workflow.jobs(2, "new")["new"])

    assert workflow.headings == ["new: passed", "old: passed"]


def test_legs_without_a_result_have_a_row_until_they_publish(workflow: Workflow) -> None:
    now = workflow.jobs(1, "evaluate (ubuntu)", "evaluate (windows)", "lint")
    row = "| ✅ | <b>bot</b> | 1 of 1 | – | | | |"

    workflow.publish(now["evaluate (ubuntu)"], row=row, os="ubuntu")
    (first,) = [comment.body for comment in workflow.pull.get_issue_comments()]
    workflow.publish(now["evaluate (windows)"], row=row, os="windows")
    (second,) = [comment.body for comment in workflow.pull.get_issue_comments()]

    assert "### ⏳ 1 of 2 agents have a result: nothing broke or fell so far" in first
    assert "| ⏳ | <b>evaluate (windows)</b> | | no result yet |" in first
    assert "### ✅ 2 agents: nothing broke or fell" in second
    assert "no result yet" not in second
