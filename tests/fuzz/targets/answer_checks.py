"""An agent's answer, as deterministic metrics read it: as JSON, as text, by patterns. MetricError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.core.refusal import is_refusal
from agenteval.metrics.base import MetricError
from agenteval.metrics.schema import check, parsed
from agenteval.metrics.text import found, full_match
from agenteval.suite.forms import FieldSpec, FieldType

_ANY = FieldSpec((FieldType("dict"), FieldType("list"), FieldType("str")))
_PATTERNS = (r"(a+)+$", r"^\d+(\.\d+)?$", r"(\w+\s?)*!")


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    is_refusal(text)
    with suppress(ValueError):
        check(_ANY, parsed(text))
    for pattern in _PATTERNS:
        for matches in (found, full_match):
            with suppress(MetricError):
                matches(pattern, text[:200])
