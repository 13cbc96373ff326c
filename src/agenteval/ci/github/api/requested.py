"""Confirms a comment that asks for the evaluation of a commit of a pull request.

The run has the secrets of the repository, and the commit can come from a fork. So GitHub must say that the author of
the comment may write to the repository, and the commit that the comment names must be the head, and be checked out.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.api.permissions import may_write
from agenteval.ci.github.event import Plan, Request, with_confirmed_request
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import read_regular

PERMISSIONS = ("pull-requests: read",)
_LONGEST = 1_000


def confirmed(planned: Plan, request: Request, client: Client, workspace: Path) -> Plan:
    """Return the plan of a requested run.

    Args:
        planned: the plan, from the event alone.
        request: the comment.
        client: connection to GitHub.
        workspace: directory of the checkout.

    Raises:
        ConfigError: the comment is refused.
        GithubError: GitHub refused, failed or could not be reached.
    """
    repository, number = planned.repository or "", planned.pull_request or 0
    try:
        is_allowed = may_write(client, repository, request.by)
    except ValidationError:
        raise GithubError("cannot read who may write: GitHub's response is invalid") from None
    if not is_allowed:
        raise _refused(f"{request.by} may not write to {repository}; only people with write access can ask for a run")
    with client.open(f"read pull request #{number} of {repository}", PERMISSIONS) as api:
        pull = api.get_repo(repository).get_pull(number)
        head, state, base_ref, base_commit = pull.head.sha, pull.state, pull.base.ref, pull.base.sha
    if state != "open" or head != request.commit:
        raise _refused(
            f"{request.commit} is not the head of the open pull request #{number}; review the new commits, and name "
            "the last one"
        )
    if _checked_out(workspace) != request.commit:
        raise _refused(f"the workspace does not contain {request.commit}; check it out with `ref`, without a branch")
    return with_confirmed_request(planned, base_ref, base_commit)


def _checked_out(workspace: Path) -> str:
    """Return the commit that is checked out without a branch; empty for anything else."""
    try:
        return read_regular(workspace / ".git" / "HEAD", limit=_LONGEST).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _refused(why: str) -> ConfigError:
    return ConfigError(Problem(f"refused: {why}", kind=Kind.GITHUB))
