"""Recognises secret variables by their names."""

from __future__ import annotations

import re

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def is_secret_name(variable: str) -> bool:
    """Return whether the name of an environment variable looks like that of a secret."""
    return _SECRET_NAME.search(variable) is not None
