"""The sticky comment: one comment per pull request and id, with a section for each job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.comment.absent import with_absent
from agenteval.ci.github.comment.left_behind import RunJobs, without_left_behind
from agenteval.ci.github.comment.sections import Comment, Section, marker
from agenteval.ci.github.comment.update import CommentOutcome, Pacing, Tidy, as_it_is, publish

__all__ = ["PERMISSIONS", "CommentOutcome", "Mode", "Pacing", "mark_running", "publish_section"]

PERMISSIONS = ("contents: read", "pull-requests: write")

#: ``existing`` never creates a comment and only updates an existing one.
Mode = Literal["always", "existing"]

_MILLISECONDS = 1_000


def publish_section(
    client: Client,
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
        client: connection to GitHub.
        repository: ``owner/name``.
        pull_request: its number.
        comment_id: distinguishes several comments on one pull request; empty for the default one.
        section: the text, with run and attempt; this function sets the stamp of its revision.
        mode: whether to create a comment.
        jobs: the jobs of the workflow run; sections of jobs that it does not have any more are removed, and jobs
            without a result are listed.
        waiting: whether the jobs that have not ended will write a section, too.
        pacing: waiting times for other jobs.

    Raises:
        GithubError: GitHub refused, failed or could not be reached, or other jobs kept overwriting the section.
        ReportTooLargeError: the first line of the section does not fit into a comment.
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
    client: Client,
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
        client: connection to GitHub.
        repository: ``owner/name``.
        pull_request: its number.
        comment_id: as for :func:`publish_section`.
        section: its head is the notice; head and detail of the comment stay unchanged.
        pacing: waiting times for other jobs.

    Raises:
        GithubError: as for :func:`publish_section`.
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
    client: Client,
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
    from agenteval.ci.github.comment.thread import Thread

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
