"""Keeps variables (``${NAME}``) away from YAML, whose braces theirs would be inside ``{…}`` and ``[…]``."""

from __future__ import annotations

import re

from agenteval.suite.document import VARIABLE, substituted

# While YAML is parsed, they wear other braces.
OPEN, _CLOSE = "\ue000", "\ue001"
SEALED = re.compile(VARIABLE.pattern.replace(r"\{", OPEN).replace(r"\}", _CLOSE).replace("[^}]", f"[^{_CLOSE}]"))


def seal(text: str) -> str:
    """The text with the braces of variables replaced by characters that mean nothing to YAML."""
    if "${" not in text:
        return text
    plain = text.replace(OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    return substituted(VARIABLE, lambda match: f"${OPEN}{match.group()[2:-1]}{_CLOSE}", plain)


def unseal(text: str) -> str:
    """The text as it was written."""
    return text.replace(OPEN, "{").replace(_CLOSE, "}")
