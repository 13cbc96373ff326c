"""Rules of a suite that every answer passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.core.text.pattern import matches_everything


def why_nothing(rule: Mapping[str, Any]) -> str:
    """Return why a rule checks nothing; empty if it checks something.

    Args:
        rule: the name of its check under ``check``, and its parameters.
    """
    if rule["check"] == "matches_regex" and matches_everything(rule["pattern"]):
        return "every text matches this pattern"
    if rule["check"] == "similarity" and rule["expected_path"] == rule.get("target", "output"):
        return "a text is always like itself"
    return ""
