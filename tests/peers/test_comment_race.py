"""Eight processes that publish their sections to one pull request at the same moment."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pytest
from github.PullRequest import PullRequest
from tests.peers.github_emulator import OWNER_TOKEN, REPOSITORY
from tests.peers.github_service import GithubService

from agenteval.github.client import GitHubClient
from agenteval.github.comment import mark_running, publish_section
from agenteval.github.comment_sections import Comment, Revision, Section, marker, section_key
from agenteval.github.comment_update import CommentOutcome, parse

pytestmark = pytest.mark.peer

_JOBS = 8
_BEFORE = Section(section_key("nightly", "evaluate"), "### nightly", "detail", Revision(1, 1, 1))
_TOGETHER: list[threading.Barrier] = []


@dataclass(frozen=True)
class Order:
    """What one process is to publish."""

    api_url: str
    pull_request: int
    section: Section
    first_says_it_runs: bool = False


def _take(together: threading.Barrier) -> None:
    _TOGETHER.append(together)


def _publish(order: Order) -> CommentOutcome:
    import agenteval.github.pygithub  # noqa: F401 - slow; the race begins when all are ready

    client = GitHubClient(OWNER_TOKEN, order.api_url)
    _TOGETHER[0].wait(60)
    if order.first_says_it_runs:
        notice = Section(order.section.key, "running", revision=order.section.revision)
        mark_running(client, REPOSITORY, order.pull_request, "", notice)
    return publish_section(client, REPOSITORY, order.pull_request, "", order.section)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(_JOBS)
    with ProcessPoolExecutor(_JOBS, context, initializer=_take, initargs=(together,)) as pool:
        yield pool


def job(number: int, run: int = 2) -> Section:
    key = section_key("ci", "evaluate", f"model {number}")
    return Section(key, f"### job {number} of run {run}", f"detail {number}", Revision(run, 1))


def race(processes: ProcessPoolExecutor, orders: list[Order]) -> list[CommentOutcome]:
    assert len(orders) == _JOBS
    return list(processes.map(_publish, orders, timeout=120))


def ours(pull: PullRequest) -> Comment:
    """The one comment that is ours."""
    [comment] = [comment for comment in map(parse, (c.body for c in pull.get_issue_comments())) if comment]
    return comment


def texts(*sections: Section) -> list[tuple[str, str, str | None]]:
    return sorted((section.key, section.head, section.detail) for section in sections)


def test_eight_processes_leave_one_comment_with_eight_sections(
    github: GithubService, processes: ProcessPoolExecutor
) -> None:
    pull = github.emulator.pull_request()
    sections = [job(number) for number in range(_JOBS)]

    outcomes = race(processes, [Order(github.url, pull.number, section) for section in sections])

    comment = ours(pull)
    assert texts(*comment.sections) == texts(*sections)
    assert all(section.notice == "" for section in comment.sections)
    [posted] = pull.get_issue_comments()
    assert {outcome.url for outcome in outcomes} == {posted.html_url}
    assert {outcome.action for outcome in outcomes} <= {"created", "updated"}


def test_eight_processes_add_to_the_comment_among_many(github: GithubService, processes: ProcessPoolExecutor) -> None:
    pull = github.emulator.pull_request()
    for number in range(101):
        pull.create_issue_comment(f"before {number}")
    sections = [job(number) for number in range(_JOBS)]
    earlier = [job(number, run=1) for number in range(3)]
    existing = pull.create_issue_comment(Comment(marker(), (_BEFORE, *earlier)).render())

    orders = [Order(github.url, pull.number, section, first_says_it_runs=True) for section in sections]
    outcomes = race(processes, orders)

    bodies = [comment.body for comment in pull.get_issue_comments()]
    assert len(bodies) == 102
    comment = parse(bodies[-1])
    assert comment is not None
    assert texts(*comment.sections) == texts(_BEFORE, *sections)
    assert outcomes == [CommentOutcome(existing.html_url, "updated")] * _JOBS
