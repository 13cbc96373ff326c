"""Finds the jobs of a workflow run without a result in the comment: waiting, skipped or broken off. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agenteval.ci.github.comment.left_behind import Job, RunJobs
from agenteval.ci.github.comment.overview import Absent, AbsentState
from agenteval.ci.github.comment.sections import Comment, Section

_MOST = 50


def with_absent(comment: Comment, own: Section, jobs: RunJobs, *, waiting: bool) -> Comment:
    """Return the comment with the jobs that evaluate an agent and have no section of this workflow run.

    They are the legs of a matrix of which one has written a section, the jobs that wrote one for an earlier run, and
    those that ``jobs.evaluates`` names.

    Args:
        comment: the current comment.
        own: the section that is published.
        jobs: the jobs of its workflow run.
        waiting: whether a job that has not ended will write a section.
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
        if earlier or jobs.evaluates(job.name) or (_is_leg(job) and _matrix(job.name) in written):
            keys = tuple(section.key for section in earlier)
            found.append(Absent(job.name, state, job.page, keys))
    return replace(comment, absent=tuple(sorted(found, key=lambda each: each.name)[:_MOST]))


def _of_job(sections: Iterable[Section], job: Job) -> list[Section]:
    return [section for section in sections if section.origin is not None and section.origin.is_job(job.name)]


def _state(job: Job, *, waiting: bool) -> AbsentState | None:
    if not job.is_done:
        return "waiting" if waiting else None
    if job.conclusion == "skipped":
        return "skipped"
    # A job that succeeded without a section needed no comment, or comments elsewhere.
    return None if job.conclusion in {"success", "neutral", ""} else "ended"


def _is_leg(job: Job) -> bool:
    return job.name.endswith(")") and " (" in job.name


def _matrix(name: str) -> str:
    return name.partition(" (")[0]
