"""Whether agenteval runs in its image, where nothing of earlier steps exists but the workspace."""

from __future__ import annotations

from collections.abc import Mapping

# The Dockerfile sets it.
_VARIABLE = "AGENTEVAL_CONTAINER"


def is_in_image(environment: Mapping[str, str]) -> bool:
    """Return whether a process with this environment runs in the image."""
    return bool(environment.get(_VARIABLE))
