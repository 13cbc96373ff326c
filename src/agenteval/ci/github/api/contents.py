"""Reads one file of a commit."""

from __future__ import annotations

from base64 import b64decode
from typing import Any
from urllib.parse import quote

from agenteval.ci.github.api.client import Client
from agenteval.core.errors import AgentEvalError

PERMISSIONS = ("contents: read",)
# GitHub sends no content of larger files.
MAX_BYTES = 1_000_000


def read_file(client: Client, repository: str, path: str, commit: str) -> str:
    """Return the text of a file at a commit.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        path: path in the repository, with forward slashes.
        commit: SHA of the commit.

    Raises:
        GithubError: the commit does not have the file, or GitHub refused, failed or could not be reached.
        AgentEvalError: it is not a plain file, too large or not UTF-8.
    """
    with client.open(f"read {path} of {repository} at {commit}", PERMISSIONS) as api:
        place = f"/repos/{repository}/contents/{quote(path)}"
        _, answer = api.requester.requestJsonAndCheck("GET", place, parameters={"ref": commit})
    return _text(answer, path)


def _text(answer: Any, path: str) -> str:
    """Return the text in GitHub's description of a file; the content is untrusted."""
    if not isinstance(answer, dict) or answer.get("type") != "file":
        raise AgentEvalError(f"{path} is not a plain file there")
    content, encoding = answer.get("content"), answer.get("encoding")
    if encoding != "base64" or not isinstance(content, str) or len(content) > 2 * MAX_BYTES:
        raise AgentEvalError(f"{path} has more than {MAX_BYTES:,} bytes there")
    try:
        return b64decode(content).decode("utf-8-sig")
    except ValueError:
        raise AgentEvalError(f"{path} is not UTF-8 text there") from None
