"""The label that makes agenteval forget the earlier attempts of a pull request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.permissions import may_write
from agenteval.ci.github.api.pull_request import PERMISSIONS, label_key, newest_label_events

FORGET = "agenteval: forget"


@dataclass(frozen=True)
class Forgetting:
    """The label on a pull request.

    Attributes:
        by: who set it.
        at: when; attempts that are older are forgotten.
        is_allowed: whether this person may write to the repository.
    """

    by: str
    at: datetime
    is_allowed: bool


def forgetting(client: Client, repository: str, number: int) -> Forgetting | None:
    """Return who set the label, if the pull request has it.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        number: number of the pull request.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
        ValidationError: the response does not match GitHub's documentation.
    """
    with client.open(f"read the labels of pull request #{number}", PERMISSIONS) as api:
        newest = newest_label_events(api, repository, number).get(label_key(FORGET))
    if newest is None or not newest.is_set:
        return None
    return Forgetting(newest.by or "an unknown user", newest.created_at, may_write(client, repository, newest.by))
