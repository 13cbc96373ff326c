"""Opens or updates the issue about a slow decline, one for each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.issue.text import IssueText

if TYPE_CHECKING:
    from github.Issue import Issue
    from github.Repository import Repository

PERMISSIONS = ("issues: write",)
# Anybody can open an issue in a public repository and quote the mark of another one.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def publish_issue(client: Client, repository: str, text: IssueText) -> tuple[str, str]:
    """Open the issue, or update the open one with the same mark.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        text: the issue.

    Returns:
        ``opened`` or ``updated``, and the address of the issue.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
    """
    with client.open(f"open an issue in {repository}", PERMISSIONS) as api:
        place = api.get_repo(repository)
        known = _known(place, text.mark)
        if known is None:
            return "opened", place.create_issue(text.title, text.body).html_url
        known.edit(title=text.title, body=text.body)
        return "updated", known.html_url


def _known(place: Repository, mark: str) -> Issue | None:
    for issue in place.get_issues(state="open", sort="created", direction="asc"):
        is_marked = (issue.body or "").partition("\n")[0].strip() == mark
        if is_marked and issue.pull_request is None and _is_trusted(issue):
            return issue
    return None


def _is_trusted(issue: Issue) -> bool:
    association = issue.raw_data.get("author_association")
    return issue.user.type == "Bot" or association in _TRUSTED
