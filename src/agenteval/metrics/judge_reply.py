"""Reads the JSON out of what a judge says."""

from __future__ import annotations

import json
import re
from typing import Any

from agenteval.metrics.base import MetricError

_TRAILING_COMMA = re.compile(r",\s*([\]}])")
_SHOWN = 200


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a reply; fences and prose around it do not matter.

    Raises:
        MetricError: there is none.
    """
    start, end = text.find("{"), text.rfind("}")
    inner = text[start : end + 1] if start != -1 and end > start else ""
    # Some models leave a comma before a closing bracket; tried last, as a text may hold one too.
    for candidate in (inner, _TRAILING_COMMA.sub(r"\1", inner)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    shown = " ".join(text.split())
    raise MetricError(f"the judge's reply is not JSON: {shown[:_SHOWN]!r}")
