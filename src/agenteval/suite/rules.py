"""Rules of a suite that every answer passes."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from operator import or_
from typing import Any

from agenteval.core.text.pattern import matches_everything


def why_nothing(rule: Mapping[str, Any]) -> str:
    """Return why a rule checks nothing; empty if it checks something.

    Args:
        rule: the name of its check under ``check``, and its parameters.
    """
    flags = [getattr(re, name) for name in rule.get("flags", ())]
    if rule["check"] == "matches_regex" and matches_everything(rule["pattern"], functools.reduce(or_, flags, 0)):
        return "every text matches this pattern"
    if rule["check"] == "similarity" and rule["expected_path"] == rule.get("target", "output"):
        return "a text is always like itself"
    return ""
