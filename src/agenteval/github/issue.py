"""The issue about a slow decline of the base branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.core.escape import address, markdown_inline
from agenteval.core.secrets import shortened
from agenteval.github.client import GitHubClient
from agenteval.results.comparison import Comparison

if TYPE_CHECKING:
    from github.Issue import Issue
    from github.Repository import Repository


_COMMIT = 12
_TITLE_LIMIT = 200


def issue_text(comparison: Comparison, branch: str, run_url: str) -> tuple[str, str]:
    """Return the title and body of the issue about a proven decline; later runs find it by its first line.

    Args:
        comparison: of the run of the base branch; its long look proved the decline.
    """
    # The anchor names the state that was left: an issue of another one is another issue.
    mark = f"<!-- agenteval:decline {_hexadecimal(comparison.anchor_sha)} -->"
    title = shortened(f"agenteval: {comparison.headline} on {branch}", _TITLE_LIMIT)
    lines = [
        mark,
        f"{markdown_inline(comparison.long_look)}",
        "",
        f"The newest commit ran side by side with the early one in [this run]({address(run_url)}). "
        "Look for the cause in the merges since then, repair it, and close this issue.",
    ]
    return title, "\n".join(lines) + "\n"


def _hexadecimal(commit: str | None) -> str:
    """Return the beginning of a commit's id without any other character."""
    return "".join(character for character in commit or "" if character in "0123456789abcdef")[:_COMMIT]


PERMISSIONS = ("issues: write",)
# Anybody can open an issue in a public repository and quote the mark of another one.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def publish_issue(client: GitHubClient, repository: str, title: str, body: str) -> tuple[str, str]:
    """Open the issue, or update the open one with the same first line.

    Args:
        repository: ``owner/name``.

    Returns:
        ``opened`` or ``updated``, and the address of the issue.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
    """
    with client.open(f"open an issue in {repository}", PERMISSIONS) as api:
        place = api.get_repo(repository)
        known = _known(place, body.partition("\n")[0])
        if known is None:
            return "opened", place.create_issue(title, body).html_url
        known.edit(title=title, body=body)
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
