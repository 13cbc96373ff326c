"""Removes the sections of jobs that a workflow does not have any more. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agenteval.ci.github.comment.sections import Comment, Origin, Section


@dataclass(frozen=True)
class Job:
    """A job of a workflow run.

    Attributes:
        name: its name, with the values of its matrix.
        is_done: whether it has ended.
        conclusion: how it has ended, such as ``skipped``; empty if it has not, or if that is unknown.
        page: address of its log; empty if it is unknown.
    """

    name: str
    is_done: bool
    conclusion: str = ""
    page: str = ""


def _nobody(_name: str) -> bool:
    return False


@dataclass(frozen=True)
class RunJobs:
    """The jobs of the workflow run that publishes.

    Attributes:
        own: name of the job that publishes.
        others: the other jobs.
        evaluates: whether the workflow's file has a step in the job of a name that writes a section.
    """

    own: str
    others: tuple[Job, ...]
    evaluates: Callable[[str], bool] = _nobody


def without_left_behind(comment: Comment, own: Section, jobs: RunJobs) -> Comment:
    """Return the comment without the sections that no job of this workflow run will write again.

    A section stays while a job of the run that has written to the comment before is still at work: the jobs that come
    after it are unknown.

    Args:
        comment: the current comment.
        own: the section that is published.
        jobs: the jobs of its workflow run.
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
    """Return whether an earlier run of the same workflow wrote a section."""
    of_workflow = section.origin is not None and section.origin.workflow == origin.workflow
    return of_workflow and section.key != own.key and section.revision.run_id < own.revision.run_id


def _is_gone(section: Section, origin: Origin, jobs: RunJobs, fresh: Iterable[str]) -> bool:
    if section.origin is None:
        return False
    if section.origin.job == origin.job:
        # The same step had another leg. Another step of this job may be yet to come.
        return section.origin.step == origin.step
    return section.origin.job in fresh or not _is_of_any(section, jobs.others)


def _is_of_any(section: Section, jobs: Iterable[Job]) -> bool:
    return section.origin is not None and any(section.origin.is_job(job.name) for job in jobs)
