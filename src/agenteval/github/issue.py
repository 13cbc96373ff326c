"""The issue about a slow decline, one for each epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.core.escape import address, markdown_inline
from agenteval.core.secrets import shortened
from agenteval.github.client import GitHubClient
from agenteval.results.epoch import EpochRun, LongLook

if TYPE_CHECKING:
    from github.Issue import Issue
    from github.Repository import Repository


_COMMIT = 12
_TITLE_LIMIT = 200
# Runs in the table; the first and the newest ones are shown.
_MOST_RUNS = 60


@dataclass(frozen=True)
class IssueText:
    """An issue.

    Attributes:
        mark: the first line of its body, by which later runs find it.
    """

    mark: str
    title: str
    body: str


def issue_text(look: LongLook, branch: str, run_url: str) -> IssueText:
    """Return the issue about a proven decline."""
    fallen = [metric.id for metric in look.metrics if metric.proven]
    # The early commit names the epoch: an issue of another epoch is another issue.
    mark = f"<!-- agenteval:decline {_hexadecimal(look.commit)} -->"
    title = shortened(f"agenteval: {', '.join(fallen)} declines slowly on {branch}", _TITLE_LIMIT)
    lines = [
        mark,
        f"{markdown_inline(look.reason)}.",
        "",
        f"The newest commit ran side by side with the early one in [this run]({address(run_url)}). "
        "Look for the cause in the merges since then, repair it, and close this issue.",
        "",
        *_table(look.runs, fallen),
        "",
        "Each row is one run of the base branch. A level is the mean of the first run and the sum of all later "
        "differences between successive runs. Single runs vary.",
    ]
    return IssueText(mark, title, "\n".join(lines) + "\n")


def _table(runs: list[EpochRun], metrics: list[str]) -> Iterator[str]:
    names = [markdown_inline(name) for name in metrics]
    yield f"| commit | run | {' | '.join(names)} |"
    yield f"|---|---|{'--:|' * len(names)}"
    left_out = len(runs) - _MOST_RUNS
    shown: Iterable[EpochRun | None] = runs
    if left_out > 0:
        shown = [*runs[: _MOST_RUNS // 2], None, *runs[-_MOST_RUNS // 2 :]]
    for run in shown:
        if run is None:
            yield f"| … | {left_out} more runs |{' |' * len(names)}"
            continue
        levels = [f"{100 * run.levels[name]:.1f}" if name in run.levels else "–" for name in metrics]
        yield f"| {_hexadecimal(run.commit)} | {markdown_inline(run.created_at[:16])} | {' | '.join(levels)} |"


def _hexadecimal(commit: str | None) -> str:
    """Return the beginning of a commit's id without any other character."""
    return "".join(character for character in commit or "" if character in "0123456789abcdef")[:_COMMIT]


PERMISSIONS = ("issues: write",)
# Anybody can open an issue in a public repository and quote the mark of another one.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def publish_issue(client: GitHubClient, repository: str, text: IssueText) -> tuple[str, str]:
    """Open the issue, or update the open one with the same mark.

    Args:
        repository: ``owner/name``.

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
