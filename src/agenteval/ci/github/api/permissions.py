"""Who may write to a repository."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import BaseModel

from agenteval.ci.github.api.client import Client, GithubError

_MAY_WRITE = frozenset({"admin", "write"})
_NOT_FOUND = 404
# GitHub gives this name to apps only. A text that an app writes may repeat what a stranger told it.
_APP = "[bot]"


class _Permission(BaseModel):
    permission: str


def may_write(client: Client, repository: str, login: str) -> bool:
    """Return whether a person may write to a repository; false for apps and for deleted accounts (an empty login).

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
        ValidationError: the response does not match GitHub's documentation.
    """
    if not login or login.endswith(_APP):
        return False
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        with client.open(f"read the permission of {login}", ("metadata: read",)) as api:
            _, answer = api.requester.requestJsonAndCheck("GET", path)
    except GithubError as error:
        # Strangers are no collaborators.
        if error.status == _NOT_FOUND:
            return False
        raise
    return _Permission.model_validate(answer).permission in _MAY_WRITE
