"""The issue about a slow decline, against an independent emulation of GitHub."""

from __future__ import annotations

import pytest
from tests.peers.github_emulator import REPOSITORY, STRANGER_TOKEN
from tests.peers.github_service import GithubService

from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.issue import IssueText, issue_text, publish_issue
from agenteval.results.epoch import EpochRun, LongLook, LookedMetric

pytestmark = pytest.mark.peer


def text(commit: str, drop: str = "4.2 points") -> IssueText:
    runs = [
        EpochRun(
            commit=f"{number:040x}", run_id=str(number), created_at="2026-01-01T00:00:00.000Z", levels={"q": 0.9}
        )
        for number in range(3)
    ]
    look = LongLook(
        commit=commit,
        merges=2,
        verdict="regressed",
        reason=f"since {commit[:7]} (2 merges) q fell by at least {drop}",
        is_issue=True,
        metrics=[LookedMetric(id="q", current=0.8, then=0.9, proven=True)],
        runs=runs,
    )
    return issue_text(look, "main", "https://github.com/acme/widgets/actions/runs/1")


def opened(github: GithubService, mark: str) -> list[tuple[str, str]]:
    issues = github.emulator.api().get_repo(REPOSITORY).get_issues(state="all")
    return [
        (issue.state, issue.body) for issue in issues if issue.pull_request is None and mark in (issue.body or "")
    ]


def test_one_issue_for_each_epoch_is_opened_and_then_updated(github: GithubService) -> None:
    first, again = text("a" * 40), text("a" * 40, drop="5.0 points")
    done, url = publish_issue(github.client(), REPOSITORY, first)
    assert done == "opened"
    assert publish_issue(github.client(), REPOSITORY, again) == ("updated", url)
    assert opened(github, first.mark) == [("open", again.body)]
    assert publish_issue(github.client(), REPOSITORY, text("b" * 40))[0] == "opened"


def test_a_closed_issue_stays_closed(github: GithubService) -> None:
    asked = text("c" * 40)
    publish_issue(github.client(), REPOSITORY, asked)
    place = github.emulator.api().get_repo(REPOSITORY)
    next(issue for issue in place.get_issues() if asked.mark in (issue.body or "")).edit(state="closed")
    assert publish_issue(github.client(), REPOSITORY, asked)[0] == "opened"
    assert sorted(state for state, _ in opened(github, asked.mark)) == ["closed", "open"]


def test_a_strangers_issue_with_the_same_mark_is_not_taken(github: GithubService) -> None:
    asked = text("d" * 40)
    strange = github.emulator.api(STRANGER_TOKEN).get_repo(REPOSITORY).create_issue("spam", f"{asked.mark}\nspam")
    done, url = publish_issue(github.client(), REPOSITORY, asked)
    assert (done, url == strange.html_url) == ("opened", False)


def test_a_missing_permission_names_what_to_add(github: GithubService) -> None:
    token = github.emulator.installation_token(contents="read")
    with pytest.raises(GithubError, match="issues: write"):
        publish_issue(GitHubClient(token, github.client().api_url, retries=0), REPOSITORY, text("e" * 40))
