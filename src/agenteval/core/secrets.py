"""Tells by its name whether a variable is secret."""

from __future__ import annotations

import re

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def is_secret_name(variable: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret."""
    return _SECRET_NAME.search(variable) is not None
