"""Who may write to a repository."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import BaseModel

from agenteval.ci.github.api.client import Client, GithubError

_MAY_WRITE = frozenset({"admin", "write"})
_NOT_FOUND = 404


class _Permission(BaseModel):
    permission: str


def may_write(client: Client, repository: str, login: str) -> bool:
    """Return whether a user may write to a repository; false for an empty login, which a deleted account has.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
        ValidationError: the response does not match GitHub's documentation.
    """
    if not login:
        return False
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        with client.open(f"read the permission of {login}", ("metadata: read",)) as api:
            _, answer = api.requester.requestJsonAndCheck("GET", path)
    except GithubError as error:
        # Apps and strangers are no collaborators.
        if error.status == _NOT_FOUND:
            return False
        raise
    return _Permission.model_validate(answer).permission in _MAY_WRITE
