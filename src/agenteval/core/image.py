"""Whether agenteval runs in its image, where nothing of earlier steps exists but the workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

# The Dockerfile sets it.
_VARIABLE = "AGENTEVAL_CONTAINER"
_HERE = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - clients use it as an address too
_HINT = (
    "; in the action, localhost is its container, not the machine of the job: use a service container, or "
    "`uses: org/agenteval-action/native@v1`"
)


def is_in_image(environment: Mapping[str, str]) -> bool:
    """Return whether a process with this environment runs in the image."""
    return bool(environment.get(_VARIABLE))


def localhost_hint(address: str) -> str:
    """Return the end of a message about an address that cannot be reached; empty outside of the image."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname
    except ValueError:
        return ""
    return _HINT if host in _HERE and is_in_image(os.environ) else ""
