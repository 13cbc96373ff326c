"""Converts HTTP errors of providers to errors of models."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from agenteval.core.image import localhost_hint
from agenteval.core.llm.errors import LlmError, OptionRefusedError
from agenteval.core.llm.spec import ModelSpec
from agenteval.core.masking import shortened

_SERVER_ERRORS = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_WRONG_REQUEST = frozenset({400, 422})
_SHOWN = 300


def unreachable_error(model: ModelSpec, address: object, reason: object) -> LlmError:
    """Return the error for a server without an answer; it is transient, unless the failure is such an error already.

    Args:
        model: the model.
        address: the address of its server.
        reason: the failure.
    """
    if isinstance(reason, LlmError):
        return reason
    return LlmError(f"{model.label} cannot be reached: {reason}{localhost_hint(str(address))}", transient=True)


def status_error(model: ModelSpec, status: int, body: object, headers: Mapping[str, str]) -> LlmError:
    """Return the error for an HTTP status; 408, 409, 429 and 5xx are transient, except for an exhausted quota.

    Args:
        model: the model.
        status: the HTTP status.
        body: the response's body, decoded if it was JSON.
        headers: the response's headers.
    """
    is_transient = status in _TRANSIENT_STATUSES or status >= _SERVER_ERRORS
    if "insufficient_quota" in str(body):
        is_transient = False
    text = shortened(_message(body), _SHOWN)
    if status in _REDIRECTS:
        to = shortened(_origin(headers.get("location") or ""), _SHOWN) or "no address"
        text = f"it redirects to {to}, which is not followed; set the model's endpoint to that server"
    return LlmError(
        f"{model.label} answered {status}{': ' if text else ''}{text}",
        transient=is_transient,
        retry_after_s=retry_after_s(headers),
    )


def _origin(location: str) -> str:
    """Return an address without what can be a secret: user, password and query."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def refusal(model: ModelSpec, status: int, body: object, options: Iterable[str]) -> OptionRefusedError | None:
    """Return the error for an option that the provider refused; ``None`` if the body names no option."""
    if status not in _WRONG_REQUEST:
        return None
    said = str(body)
    for option in options:
        # "response format" also matches "response_format"; "top_logprobs" does not match "logprobs".
        if re.search(rf"(?<!\w){option.replace('_', '[_ ]')}(?!\w)", said):
            return OptionRefusedError(f"{model.label} does not accept {option}", option)
    return None


def _message(body: object) -> str:
    """Return the message in an error's body; providers nest it differently."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail") or ""
    return str(body or "")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds: ``retry-after-ms``, or ``Retry-After`` as number or date (RFC 9110)."""
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
