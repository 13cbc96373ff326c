"""The sticky comment: one comment per pull request and id, with a section per job."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import shortened
from agenteval.github.client import GitHubClient
from agenteval.github.comment_sections import Absent, AbsentState, Comment, Origin, Section, marker, section_key
from agenteval.github.comment_update import CommentOutcome, Pacing, Tidy, as_it_is, publish
from agenteval.github.workflow_runs import RunJobs, WorkflowJob

# The runner numbers the steps of one action that have no id: __owner_action, __owner_action_2.
_UNNAMED = re.compile(r"__.*?(?:_(\d{1,4}))?", re.DOTALL)
_LONGEST_TITLE = 99


# A value of a matrix: what tells it from those of other legs (``1`` and ``"1"`` are two), and its text.
MatrixValue = tuple[str, str]


@dataclass(frozen=True)
class StepName:
    """What tells the steps apart that write to one comment.

    Args:
        step: ``GITHUB_ACTION``: the id of the step, or a name that the runner makes.
        file: file of the workflow, because several workflows can have the same name; empty if it is unknown.
        first: path of the workflow whose run the step publishes; empty if it publishes its own one.
    """

    workflow: str = ""
    job: str = ""
    leg: tuple[MatrixValue, ...] = ()
    step: str = ""
    file: str = ""
    first: str = ""

    @property
    def origin(self) -> str:
        """Return what tells the workflow from others."""
        return "\0".join((self.workflow, *self._files))

    @property
    def key(self) -> str:
        """Return the key of the section."""
        return section_key(self.workflow, self.job, *(key for key, _ in self.leg), self.step, *self._files)

    @property
    def title(self) -> str:
        """Return the name for headings: ``evaluate (ubuntu, 3.12)``; empty if the job is unknown."""
        leg = f" ({', '.join(text for _, text in self.leg)})" if self.leg else ""
        more = "".join(f" · {part}" for part in (self._step, self.first.rpartition("/")[2]) if part)
        return shortened(f"{self.job}{leg}{more}".strip(), _LONGEST_TITLE)

    @property
    def _files(self) -> tuple[str, ...]:
        if self.first:
            return (self.file, self.first)
        return (self.file,) if self.file else ()

    @property
    def _step(self) -> str:
        unnamed = _UNNAMED.fullmatch(self.step)
        if unnamed is None:
            return self.step
        return f"step {unnamed[1]}" if unnamed[1] else ""


def leg_of(matrix: object) -> tuple[MatrixValue, ...]:
    """Return the values of a matrix, in the order of their keys; other values than objects have none.

    An object with an ``id`` counts by its id, because its other values can change with every commit.
    """
    if not isinstance(matrix, dict):
        return ()
    return tuple(value for key in sorted(matrix) for value in _values((key,), matrix[key]))


def _matrix_value(place: tuple[str | int, ...], value: Any) -> MatrixValue:
    return json.dumps([*place, value]), value if isinstance(value, str) else json.dumps(value)


def _values(place: tuple[str | int, ...], value: Any) -> Iterator[MatrixValue]:
    if isinstance(value, dict):
        known = value.get("id")
        if isinstance(known, str | int) and known != "":
            yield _matrix_value((*place, "id"), known)
            return
        for key in sorted(value):
            yield from _values((*place, key), value[key])
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _values((*place, number), item)
    elif value is not None:
        yield _matrix_value(place, value)


def without_left_behind(comment: Comment, own: Section, jobs: RunJobs) -> Comment:
    """Return the comment without the sections that no job of this workflow run will write again.

    A section stays while a job of the run that has written to the comment before is still at work: the jobs that come
    after it are unknown.
    """
    origin = own.origin
    if origin is None:
        return comment
    older = [section for section in comment.sections if _is_older(section, own, origin)]
    waiting = [job for job in jobs.others if not job.is_done]
    if any(_is_of_any(section, waiting) for section in older):
        return comment
    fresh = {
        section.origin.job
        for section in comment.sections
        if section.origin is not None and section.revision.run_id == own.revision.run_id
    }
    gone = [section for section in older if _is_gone(section, origin, jobs, fresh)]
    return comment.merged(section.emptied(own.revision.run_id) for section in gone)


def _is_older(section: Section, own: Section, origin: Origin) -> bool:
    of_workflow = section.origin is not None and section.origin.workflow == origin.workflow
    return of_workflow and section.key != own.key and section.revision.run_id < own.revision.run_id


def _is_gone(section: Section, origin: Origin, jobs: RunJobs, fresh: Iterable[str]) -> bool:
    if section.origin is None:
        return False
    if section.origin.job == origin.job:
        # The same step had another leg. Another step of this job may be yet to come.
        return section.origin.step == origin.step
    return section.origin.job in fresh or not _is_of_any(section, jobs.others)


def _is_of_any(section: Section, jobs: Iterable[WorkflowJob]) -> bool:
    return section.origin is not None and any(section.origin.is_job(job.name) for job in jobs)


_MOST = 50


def with_absent(comment: Comment, own: Section, jobs: RunJobs, *, waiting: bool) -> Comment:
    """Return the comment with the jobs that evaluate an agent and have no section of this workflow run.

    They are the legs of a matrix of which one has written a section, and the jobs that wrote one for an earlier run.
    """
    origin = own.origin
    if origin is None:
        return comment
    of_workflow = [
        section
        for section in comment.sections
        if section.origin is not None and section.origin.workflow == origin.workflow and not section.is_empty
    ]
    fresh = [section for section in of_workflow if section.revision.run_id >= own.revision.run_id]
    written = {_matrix(job.name) for job in jobs.others if _of_job(fresh, job)} | {_matrix(jobs.own)}
    found = []
    for job in jobs.others:
        state = _state(job, waiting=waiting)
        if state is None or _of_job(fresh, job):
            continue
        earlier = _of_job(of_workflow, job)
        if earlier or (_is_leg(job) and _matrix(job.name) in written):
            keys = tuple(section.key for section in earlier)
            found.append(Absent(job.name, state, job.html_url or "", keys))
    return replace(comment, absent=tuple(sorted(found, key=lambda each: each.name)[:_MOST]))


def _of_job(sections: Iterable[Section], job: WorkflowJob) -> list[Section]:
    return [section for section in sections if section.origin is not None and section.origin.is_job(job.name)]


def _state(job: WorkflowJob, *, waiting: bool) -> AbsentState | None:
    if not job.is_done:
        return "waiting" if waiting else None
    if job.conclusion == "skipped":
        return "skipped"
    # A job that succeeded without a section needed no comment, or comments elsewhere.
    return None if job.conclusion in {"success", "neutral", None} else "ended"


def _is_leg(job: WorkflowJob) -> bool:
    return job.name.endswith(")") and " (" in job.name


def _matrix(name: str) -> str:
    return name.partition(" (")[0]


PERMISSIONS = ("contents: read", "pull-requests: write")

#: ``existing`` never creates a comment and only updates an existing one.
Mode = Literal["always", "existing"]

_MILLISECONDS = 1_000


def publish_section(
    client: GitHubClient,
    repository: str,
    pull_request: int,
    comment_id: str,
    section: Section,
    *,
    mode: Mode = "always",
    jobs: RunJobs | None = None,
    waiting: bool = True,
    pacing: Pacing = Pacing(),  # noqa: B008 - immutable
) -> CommentOutcome:
    """Write a job's section to the comment and keep the sections of other jobs.

    Only comments with the same author count. Jobs that write at the same time end up with one comment with all
    sections. A section of a newer run stays unchanged. The function takes about two seconds longer than its requests,
    to check that no other job has overwritten the section.

    Args:
        comment_id: distinguishes several comments on one pull request; empty for the default one.
        section: the text, with run and attempt; this function sets the stamp of its revision.
        jobs: the jobs of the workflow run; sections of jobs that it does not have any more are removed, and jobs
            without a result are listed.
    """

    def compose(comment: Comment) -> Section:
        return _after(comment.section(section.key), section)

    def tidy(comment: Comment, own: Section) -> Comment:
        if jobs is None:
            return comment
        return with_absent(without_left_behind(comment, own, jobs), own, jobs, waiting=waiting)

    create = mode == "always"
    return _published(client, repository, pull_request, comment_id, compose, create=create, pacing=pacing, tidy=tidy)


def mark_running(
    client: GitHubClient,
    repository: str,
    pull_request: int,
    comment_id: str,
    section: Section,
    *,
    pacing: Pacing = Pacing(),  # noqa: B008 - immutable
) -> CommentOutcome:
    """Put a notice above the job's section of an earlier run; return ``absent`` without one.

    GitHub mails the first text of a comment, so a notice never creates a comment. It replaces a notice of the same
    job, also to announce that a run failed. A result that this attempt has published stays.

    Args:
        section: its head is the notice; head and detail of the comment stay unchanged.
    """

    def compose(comment: Comment) -> Section | None:
        earlier = comment.section(section.key)
        if earlier is None or earlier.is_empty:
            return None
        if _are_of_one_attempt(earlier, section) and not earlier.notice:
            return earlier
        return _after(earlier, replace(earlier, notice=section.head, revision=section.revision))

    return _published(client, repository, pull_request, comment_id, compose, create=False, pacing=pacing)


def _published(
    client: GitHubClient,
    repository: str,
    pull_request: int,
    comment_id: str,
    compose: Callable[[Comment], Section | None],
    *,
    create: bool,
    pacing: Pacing,
    tidy: Tidy = as_it_is,
) -> CommentOutcome:
    # PyGithub is slow to import.
    from agenteval.github.pygithub import Thread

    mark = marker(comment_id)
    with (
        client.open(f"comment on pull request #{pull_request} of {repository}", PERMISSIONS) as api,
        Thread(api, repository, pull_request, mark) as thread,
    ):
        return publish(thread, mark, compose, create=create, pacing=pacing, tidy=tidy)


def _are_of_one_attempt(one: Section, other: Section) -> bool:
    return (one.revision.run_id, one.revision.attempt) == (other.revision.run_id, other.revision.attempt)


def _after(earlier: Section | None, section: Section) -> Section:
    """Return the section with the time in its revision, or the earlier one with the same attempt and text."""
    now = int(time.time() * _MILLISECONDS)
    if earlier and _are_of_one_attempt(earlier, section):
        if earlier == replace(section, revision=earlier.revision):
            return earlier
        # A later text of one attempt is newer, even if the clock went back.
        now = max(now, earlier.revision.stamp + 1)
    return replace(section, revision=replace(section.revision, stamp=now))
