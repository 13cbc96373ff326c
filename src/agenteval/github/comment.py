"""The sticky comment: one comment per pull request and id, created once and edited ever after."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agenteval.github.client import Client

if TYPE_CHECKING:
    from github.IssueComment import IssueComment

    from agenteval.github.thread import Thread

PERMISSIONS = ("contents: read", "pull-requests: write")

_DEFAULT_ID = "default"
_MAX_ID = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class CommentOutcome:
    """Where the comment is, and what had to be done to it."""

    url: str
    action: Literal["created", "updated", "unchanged"]


def marker(comment_id: str = "") -> str:
    """The hidden line a comment begins with, by which it is found again.

    Args:
        comment_id: tells apart the comments of several jobs; empty for the only one. Characters that could
            end an HTML comment are replaced, and a hash keeps such ids apart.
    """
    name = comment_id.strip() or _DEFAULT_ID
    safe = _UNSAFE.sub("-", name)[:_MAX_ID]
    if safe != name:
        safe = f"{safe}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"<!-- agenteval:comment id={safe} -->"


def upsert(client: Client, repository: str, pull_request: int, body: str, mark: str) -> CommentOutcome:
    """Creates or edits the comment that begins with ``mark``; writes nothing when it says the same already.

    Only comments written with the same identity count, whatever text others' comments contain. Jobs that
    race end up with one comment: the lowest id wins, further ones of our own are deleted.

    Args:
        client: where, and as whom, to write.
        repository: ``owner/name``.
        pull_request: its number.
        body: Markdown, with or without ``mark`` in front; GitHub takes at most 65,536 characters.
        mark: what :func:`marker` returned.

    Raises:
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.github.thread import Thread

    text = body if body.startswith(mark) else f"{mark}\n{body}"
    with client.open(f"comment on pull request #{pull_request} of {repository}", PERMISSIONS) as api:
        thread = Thread(api, repository, pull_request)
        own = thread.own(mark)
        return _settle(thread, own, text) if own else _create(thread, text, mark)


def _create(thread: Thread, text: str, mark: str) -> CommentOutcome:
    posted = thread.post(text, mark)
    # Another job may have posted between our look and our post. Both look again and keep the same one.
    own = thread.own(mark) or [posted]
    settled = _settle(thread, own, text)
    return CommentOutcome(settled.url, "created") if own[0].id == posted.id else settled


def _settle(thread: Thread, own: Sequence[IssueComment], text: str) -> CommentOutcome:
    """Writes the text into the first comment and deletes the others."""
    keep, *duplicates = own
    same = _normal(keep.body or "") == _normal(text)
    if not same:
        keep.edit(text)
    for duplicate in duplicates:
        thread.remove(duplicate)
    return CommentOutcome(keep.html_url, "unchanged" if same else "updated")


def _normal(text: str) -> str:
    """GitHub may change line ends and outer white space of what it stores."""
    return text.replace("\r\n", "\n").strip()
