"""What a provider's HTTP status means for the caller."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agenteval.core.llm.errors import LlmError, OptionRefusedError
from agenteval.core.llm.spec import ModelSpec

_SERVER_ERRORS = 500
_PASSING = frozenset({408, 409, 429})
_WRONG_REQUEST = frozenset({400, 422})
_SHOWN = 300


def status_error(model: ModelSpec, status: int, body: object, headers: Mapping[str, str]) -> LlmError:
    """The error for an HTTP status; 408, 409, 429 and 5xx may pass, but not a spent quota.

    Args:
        model: who answered.
        status: the HTTP status.
        body: what came with it, decoded if it was JSON.
        headers: of the reply.
    """
    passing = status in _PASSING or status >= _SERVER_ERRORS
    if "insufficient_quota" in str(body):
        passing = False
    text = " ".join(_message(body).split())[:_SHOWN]
    return LlmError(
        f"{model.label} answered {status}{': ' if text else ''}{text}",
        transient=passing,
        retry_after_s=retry_after_s(headers),
    )


def refusal(model: ModelSpec, status: int, body: object, options: Iterable[str]) -> OptionRefusedError | None:
    """The error of a request that is refused for one of its options, named as such; else ``None``."""
    if status not in _WRONG_REQUEST:
        return None
    said = str(body)
    for option in options:
        # "response_format" is also written "response format"; "top_logprobs" is not "logprobs".
        if re.search(rf"(?<!\w){option.replace('_', '[_ ]')}(?!\w)", said):
            return OptionRefusedError(f"{model.label} does not take {option}", option)
    return None


def _message(body: object) -> str:
    """The text for people in an error's body: providers wrap it differently."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail") or ""
    return str(body or "")


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
