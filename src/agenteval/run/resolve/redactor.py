"""The redactor of a run: it masks the secrets of suites, configuration and environment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agenteval.core.secrets import is_secret_name
from agenteval.core.text.redact import Redactor

# Shorter values of variables with secret-like names are words like "yes".
SECRET_LENGTH = 8


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return a redactor for the given secrets and for the values of environment variables with secret-like names."""
    ambient = (
        value
        for name, value in os.environ.items()
        if is_secret_name(name) and len(value) >= SECRET_LENGTH and not _is_path(value)
    )
    return Redactor([*secrets, *ambient])


def _is_path(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        # The text is too long for a path or has characters that no path has.
        return False
