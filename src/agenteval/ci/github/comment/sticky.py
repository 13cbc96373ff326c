"""The sticky comment: one comment per pull request and id, with a section for each job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.comment.sections import Comment, Section, marker
from agenteval.ci.github.comment.update import CommentOutcome, Pacing, publish

__all__ = ["PERMISSIONS", "CommentOutcome", "Mode", "Pacing", "mark_running", "publish_section"]

PERMISSIONS = ("contents: read", "pull-requests: write")

#: ``existing`` never creates a comment: it writes only where there is one already.
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
    pacing: Pacing = Pacing(),  # noqa: B008 - immutable
) -> CommentOutcome:
    """Writes a job's section into the comment; the sections of other jobs stay.

    Only comments written with the same identity count, whatever text others' comments contain. Jobs that race end
    up with one comment, which has the sections of all; a section that a newer run wrote is left alone. Takes about
    two seconds more than the requests, to see that no other job has overwritten it.

    Args:
        client: where, and as whom, to write.
        repository: ``owner/name``.
        pull_request: its number.
        comment_id: tells apart several comments on one pull request; empty for the only one.
        section: the text, and the run and attempt it comes from; the stamp of its revision is set here.
        mode: whether a comment may be created.
        pacing: how long to wait for other jobs.

    Raises:
        GithubError: GitHub refused, failed or could not be reached, or other jobs kept overwriting the section.
        ReportTooLargeError: not even the first line of the section fits into a comment.
    """

    def compose(comment: Comment) -> Section:
        return _after(comment.section(section.key), section)

    create = mode == "always"
    return _published(client, repository, pull_request, comment_id, compose, create=create, pacing=pacing)


def mark_running(
    client: Client,
    repository: str,
    pull_request: int,
    comment_id: str,
    section: Section,
    *,
    pacing: Pacing = Pacing(),  # noqa: B008 - immutable
) -> CommentOutcome:
    """Puts a notice above the job's section of an earlier run, if there is one; ``absent`` otherwise.

    GitHub mails the first text of a comment, so a new comment only comes with a result. A notice of the same job
    is replaced, which also serves to say that a run broke off. What this attempt has published as its result stays.

    Args:
        client: where, and as whom, to write.
        repository: ``owner/name``.
        pull_request: its number.
        comment_id: as for :func:`publish_section`.
        section: its head is the notice; head and detail in the comment stay those of the earlier run.
        pacing: how long to wait for other jobs.

    Raises:
        GithubError: as for :func:`publish_section`.
    """

    def compose(comment: Comment) -> Section | None:
        earlier = comment.section(section.key)
        if earlier is None or (_are_of_one_attempt(earlier, section) and not earlier.notice):
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
) -> CommentOutcome:
    # PyGithub is slow to import.
    from agenteval.ci.github.comment.thread import Thread

    mark = marker(comment_id)
    with (
        client.open(f"comment on pull request #{pull_request} of {repository}", PERMISSIONS) as api,
        Thread(api, repository, pull_request, mark) as thread,
    ):
        return publish(thread, mark, compose, create=create, pacing=pacing)


def _are_of_one_attempt(one: Section, other: Section) -> bool:
    return (one.revision.run_id, one.revision.attempt) == (other.revision.run_id, other.revision.attempt)


def _after(earlier: Section | None, section: Section) -> Section:
    """The section with the time in its revision, or the earlier one where the same attempt said the same."""
    now = int(time.time() * _MILLISECONDS)
    if earlier and _are_of_one_attempt(earlier, section):
        if earlier == replace(section, revision=earlier.revision):
            return earlier
        # What one attempt says later is newer, whatever the clock says.
        now = max(now, earlier.revision.stamp + 1)
    return replace(section, revision=replace(section.revision, stamp=now))
