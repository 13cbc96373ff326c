"""PyGithub set up for a CI job: bounded retries, and failures in words. Slow to import."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

from github import (
    Auth,
    BadAttributeException,
    Github,
    GithubException,
    GithubRetry,
    RateLimitExceededExceedsMaxWait,
    RateLimitExceededException,
)
from requests import RequestException
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import HTTPError, MaxRetryError

from agenteval.core.text.escape import one_line

MAX_WAIT_S = 60
MAX_TOTAL_S = 120
#: Everything that a call of PyGithub raises when GitHub or the network is the cause.
FAILURES = (GithubException, BadAttributeException, RequestException, HTTPError)

# GitHub rejected these before doing anything, so every request may be repeated; the retry itself tells a
# rate limit from a missing permission.
_REJECTED = frozenset({403, 429})
_TRANSIENT = (429, 500, 502, 503, 504)
# Repeating these has no further effect. POST is missing: when an answer is lost after the server acted,
# repeating would post twice.
_REPEATABLE = frozenset({"GET", "HEAD", "PATCH", "PUT", "DELETE"})
_REMAINING = "x-ratelimit-remaining"
_RESET = "x-ratelimit-reset"
_PER_PAGE = 100
_MAX_ANSWER = 300


class BoundedRetry(GithubRetry):
    """Repeats what may be repeated, and never waits longer than :data:`MAX_WAIT_S` for one answer.

    PyGithub's own default sleeps until a rate limit resets, up to an hour, and repeats POST requests. Here
    429, rate-limit 403 and server errors are repeated with back-off; a 403 for a missing permission is not.
    Nothing is repeated later than :data:`MAX_TOTAL_S` after the first failure. A longer wait than allowed raises
    ``RateLimitExceededExceedsMaxWait``; where repeating did not help, the last answer is passed on.
    """

    #: Reading of the monotonic clock.
    first_failure_at: float | None = None

    @classmethod
    def times(cls, total: int) -> BoundedRetry:
        """At most ``total`` repetitions."""
        return cls(
            max_rate_limit_wait=MAX_WAIT_S,
            total=total,
            backoff_factor=1,
            status_forcelist=list(_TRANSIENT),
            allowed_methods=_REPEATABLE,
            # Then PyGithub sees the last answer itself, with all that it says.
            raise_on_status=False,
        )

    def new(self, **kw: Any) -> Self:
        """A copy that remembers when the first failure was."""
        copy = super().new(**kw)
        copy.first_failure_at = self.first_failure_at
        return copy

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether a request that was answered with this status may be sent again."""
        return status_code in _REJECTED or super().is_retry(method, status_code, has_retry_after)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Counts one repetition; raises when none is left, or when the server asks for too long a wait."""
        now = time.monotonic()
        first = now if self.first_failure_at is None else self.first_failure_at
        left_s = max(0.0, first + MAX_TOTAL_S - now)
        asked_s = None if response is None else self._asked_wait(response)
        if response is not None and asked_s is not None and asked_s > min(MAX_WAIT_S, left_s):
            raise _too_long(response, asked_s)
        bounded = self if left_s else self.new(total=0)
        try:
            repeated = GithubRetry.increment(bounded, method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]
        except MaxRetryError:
            if response is not None and response.status == HTTPStatus.FORBIDDEN:
                # Its body is read already; a missing permission does not come this far.
                raise RateLimitExceededException(response.status, None, dict(response.headers)) from None
            raise
        own = cast("Self", repeated)
        own.first_failure_at = first
        wait_s = own.get_backoff_time() if asked_s is None else asked_s
        if response is not None and response.status in _REJECTED:
            if wait_s > left_s:
                raise _too_long(response, wait_s)
            own.get_backoff_time = lambda: wait_s  # type: ignore[method-assign]
        return own

    def _asked_wait(self, response: BaseHTTPResponse) -> float | None:
        """Seconds that the answer asks to wait, by either of GitHub's ways."""
        wait_s = self.get_retry_after(response)
        if wait_s is None and response.status in _REJECTED and response.headers.get(_REMAINING) == "0":
            reset = response.headers.get(_RESET, "")
            # One more, as it is not clear when in that second the limit ends.
            wait_s = max(0.0, int(reset) - time.time() + 1) if reset.isdecimal() else None
        return wait_s


def _too_long(response: BaseHTTPResponse, wait_s: float) -> RateLimitExceededExceedsMaxWait:
    return RateLimitExceededExceedsMaxWait(response.status, _said(response), dict(response.headers), wait=wait_s)


def _said(response: BaseHTTPResponse) -> Any:
    """The body's JSON, if it is any; reading it also frees the connection."""
    try:
        return json.loads(response.read())
    except (ValueError, HTTPError):
        return None


def connect(*, token: str, api_url: str, user_agent: str, timeout_s: int, retries: int) -> Github:
    """A PyGithub client. Its objects are fetched when an attribute is needed, so a path costs one request."""
    return Github(
        auth=Auth.Token(token),
        base_url=api_url,
        user_agent=user_agent,
        timeout=timeout_s,
        per_page=_PER_PAGE,
        retry=BoundedRetry.times(retries),
        # The default pauses would add a second to every comment; the retries honour the limits.
        seconds_between_requests=0,
        seconds_between_writes=0,
        lazy=True,
    )


def explain(error: Exception, permissions: Sequence[str]) -> str:
    """What one of :data:`FAILURES` means, and what the user can do about it.

    Args:
        error: the exception, or one for which :func:`is_redirect_elsewhere` holds.
        permissions: the lines that belong under ``permissions:`` in the workflow.
    """
    if isinstance(error, GithubException):
        return _explain_answer(error, permissions)
    if isinstance(error, BadAttributeException):
        return f"GitHub's answer cannot be understood: {one_line(str(error), _MAX_ANSWER)}"
    if isinstance(error, RuntimeError):
        return f"GITHUB_API_URL is not the server's address: {one_line(str(error), _MAX_ANSWER)}"
    return f"GitHub did not answer: {one_line(str(_cause(error)), _MAX_ANSWER)}"


def is_redirect_elsewhere(error: RuntimeError) -> bool:
    """Whether PyGithub refused to follow a redirect to another server, for instance from http to https."""
    return type(error) is RuntimeError and "redirected" in str(error)


def _explain_answer(error: GithubException, permissions: Sequence[str]) -> str:
    said = f"GitHub answered {error.status}{_message(error)}"
    if isinstance(error, RateLimitExceededExceedsMaxWait):
        bounds = f"{MAX_WAIT_S} s at most, and {MAX_TOTAL_S} s in all"
        return f"{said}. It asks to wait {error.wait or 0:.0f} s; agenteval waits {bounds}"
    if _is_rate_limit(error):
        return f"{said}. The rate limit of the token is used up"
    if error.status == 401:
        return f"{said}. The token is not valid here, or has expired"
    if error.status == 403:
        block = "\n".join(["permissions:", *(f"  {line}" for line in permissions)])
        return f"{said}. The token lacks a permission; give the job these:\n\n{block}"
    if error.status == 404:
        return f"{said}. It does not exist, or the token may not see it"
    return said


def _is_rate_limit(error: GithubException) -> bool:
    used_up = (error.headers or {}).get(_REMAINING) == "0"
    return isinstance(error, RateLimitExceededException) or error.status == 429 or (error.status == 403 and used_up)


def _cause(error: Exception) -> object:
    """The reason inside the wrappings of the HTTP libraries, which say little more."""
    wrapped = error.args[0] if error.args else None
    return getattr(wrapped, "reason", None) or error


def _message(error: GithubException) -> str:
    """GitHub's own words in brackets; empty when it said nothing."""
    data: Any = error.data
    said = [data.get("message"), *_details(data.get("errors"))] if isinstance(data, dict) else [error.message]
    line = one_line("; ".join(str(part) for part in said if part), _MAX_ANSWER)
    return f" ({line})" if line else ""


def _details(errors: Any) -> list[Any]:
    """The texts in the ``errors`` of a 422, whose entries are texts or objects."""
    entries = errors if isinstance(errors, list) else []
    return [entry.get("message") or entry.get("code") if isinstance(entry, dict) else entry for entry in entries]
