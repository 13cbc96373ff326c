"""What a provider's HTTP status means for the caller."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agenteval.llm.model import LlmError
from agenteval.suite.model import ModelSpec

_SERVER_ERRORS = 500
_PASSING = frozenset({408, 409, 429})
_SHOWN = 300


def status_error(model: ModelSpec, status: int, message: str, headers: Mapping[str, str]) -> LlmError:
    """The error for an HTTP status; 408, 409, 429 and 5xx may pass, but not a spent quota."""
    text = " ".join(str(message).split())[:_SHOWN]
    passing = status in _PASSING or status >= _SERVER_ERRORS
    if "insufficient_quota" in text:
        passing = False
    return LlmError(
        f"{model.label} answered {status}: {text}", transient=passing, retry_after_s=retry_after_s(headers)
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: ``retry-after-ms``, or ``Retry-After`` as number or date (RFC 9110)."""
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    value = headers.get("retry-after")
    if not value:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None
