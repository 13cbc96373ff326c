"""The user's directory of HoloDeck."""

from __future__ import annotations

from pathlib import Path

from agenteval.core.files.boundary import boundary


def holodeck_home() -> Path | None:
    """Return ``~/.holodeck``; ``None`` without a home directory, or if only files of the workspace are read."""
    if boundary().roots:
        return None
    try:
        return Path.home() / ".holodeck"
    except RuntimeError:
        return None
