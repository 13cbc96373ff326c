"""PyGithub for a CI job: bounded retries, and messages for failures; and a session without credentials."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
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
from requests import PreparedRequest, RequestException, Response, Session
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import HTTPError, MaxRetryError

from agenteval.core.secrets import shortened

_REDIRECTS = 5


class Anonymous(Session):
    """Session without credentials, not even from a ``.netrc`` file or after redirects; other schemes are refused."""

    def __init__(self, schemes: Collection[str]) -> None:
        super().__init__()
        self.max_redirects = _REDIRECTS
        # With any callable here, the library does not read a netrc file.
        self.auth = _nobody
        for prefix in [prefix for prefix in self.adapters if prefix.removesuffix("://") not in schemes]:
            del self.adapters[prefix]

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Response) -> None:  # noqa: ARG002 - the library's
        """Send no credentials after a redirect."""
        _nobody(prepared_request)


def _nobody(request: Any) -> Any:
    request.headers.pop("Authorization", None)
    return request


MAX_WAIT_S = 60
#: Exceptions of PyGithub that GitHub or the network causes.
FAILURES = (GithubException, BadAttributeException, RequestException, HTTPError)

# GitHub rejected these without any effect, so every request can be repeated. The retry distinguishes a rate
# limit from a missing permission.
_REJECTED = frozenset({403, 429})
_TRANSIENT = (429, 500, 502, 503, 504)
# Idempotent methods. POST is not: if a response is lost, repeating would post twice.
_REPEATABLE = frozenset({"GET", "HEAD", "PATCH", "PUT", "DELETE"})
_REMAINING = "x-ratelimit-remaining"
_RESET = "x-ratelimit-reset"
_PER_PAGE = 100
_MAX_ANSWER = 300
#: What is missing without a permission of the job; docs/github.md has the same words.
WITHOUT: Mapping[str, str] = {
    "contents: read": "private repositories are not checked out, and the base commit cannot be fetched",
    "actions: read": "there is no baseline: every run is a first run",
    "pull-requests: write": "there is no comment; the job summary is written as always",
    "checks: write": "there is no check run; the job shows the first annotations",
}
# What GitHub says if no permission helps, and the fix.
_READ_ONLY = {
    "is locked": "The conversation is locked, and the token may not write to it: unlock it, or set `comment: never`",
    "archived": "The repository is archived, so nobody can write to it: unarchive it, or disable its workflows",
}


class BoundedRetry(GithubRetry):
    """Retries safe requests, and never waits longer than :data:`MAX_WAIT_S` for one response.

    PyGithub's own default waits as long as a response asks for, and repeats POST requests. Here 429, rate-limit 403
    and server errors are repeated with back-off; a 403 for a missing permission is not. A longer wait than allowed
    raises ``RateLimitExceededExceedsMaxWait``. If retries do not help, the last response is returned.
    """

    @classmethod
    def times(cls, total: int) -> BoundedRetry:
        """Create a policy with at most ``total`` retries."""
        return cls(
            max_rate_limit_wait=MAX_WAIT_S,
            total=total,
            backoff_factor=1,
            status_forcelist=list(_TRANSIENT),
            allowed_methods=_REPEATABLE,
            # PyGithub then gets the last response unchanged.
            raise_on_status=False,
        )

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Return whether a request with this response status may be retried."""
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
        """Count one retry; raise if the limit is reached or the server asks for too long a wait."""
        asked_s = None if response is None else self._asked_wait(response)
        if response is not None and asked_s is not None and asked_s > MAX_WAIT_S:
            said = _said(response)
            raise RateLimitExceededExceedsMaxWait(response.status, said, dict(response.headers), wait=asked_s)
        try:
            repeated = super().increment(method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]
        except MaxRetryError:
            if response is not None and response.status == HTTPStatus.FORBIDDEN:
                # The body is already read, and missing permissions are handled before.
                raise RateLimitExceededException(response.status, None, dict(response.headers)) from None
            raise
        if asked_s is not None:
            repeated.get_backoff_time = lambda: asked_s  # type: ignore[method-assign]
        return cast("Self", repeated)

    def _asked_wait(self, response: BaseHTTPResponse) -> float | None:
        wait_s = self.get_retry_after(response)
        if wait_s is None and response.status in _REJECTED and response.headers.get(_REMAINING) == "0":
            reset = response.headers.get(_RESET, "")
            # Add one, because the limit ends at an unknown time within that second.
            wait_s = max(0.0, int(reset) - time.time() + 1) if reset.isdecimal() else None
        return wait_s


def _said(response: BaseHTTPResponse) -> Any:
    """Return the JSON body, if valid; reading it also frees the connection."""
    try:
        return json.loads(response.read())
    except (ValueError, HTTPError):
        return None


def connect(*, token: str, api_url: str, user_agent: str, timeout_s: int, retries: int) -> Github:
    """Return a PyGithub client whose objects are loaded lazily, so a path costs one request."""
    return Github(
        auth=Auth.Token(token),
        base_url=api_url,
        user_agent=user_agent,
        timeout=timeout_s,
        per_page=_PER_PAGE,
        retry=BoundedRetry.times(retries),
        # The default pauses would add a second to every comment. The retries handle the limits.
        seconds_between_requests=0,
        seconds_between_writes=0,
        lazy=True,
    )


def explain(error: Exception, permissions: Sequence[str]) -> str:
    """Return the message for one of :data:`FAILURES`, or for a redirect to another server, with a fix."""
    if isinstance(error, GithubException):
        return _explain_answer(error, permissions)
    if isinstance(error, BadAttributeException):
        return f"GitHub's response is invalid: {shortened(str(error), _MAX_ANSWER)}"
    if isinstance(error, RuntimeError):
        return f"GITHUB_API_URL is not the server's address: {shortened(str(error), _MAX_ANSWER)}"
    return f"GitHub did not answer: {shortened(str(_cause(error)), _MAX_ANSWER)}"


def is_redirect_elsewhere(error: RuntimeError) -> bool:
    """Return whether PyGithub refused a redirect to another server, for instance from http to https."""
    return type(error) is RuntimeError and "redirected" in str(error)


def _explain_answer(error: GithubException, permissions: Sequence[str]) -> str:
    said = f"GitHub answered {error.status}{_message(error)}"
    if isinstance(error, RateLimitExceededExceedsMaxWait):
        return f"{said}. It asks to wait {error.wait or 0:.0f} s; agenteval waits {MAX_WAIT_S} s at most"
    if _is_rate_limit(error):
        return f"{said}. The rate limit of the token is exhausted"
    if error.status == 401:
        return f"{said}. The token is invalid or has expired"
    for words, fix in _READ_ONLY.items():
        if error.status == 403 and words in said.casefold():
            return f"{said}. {fix}"
    if error.status == 403:
        block = "\n".join(["permissions:", *(f"  {line}" for line in permissions)])
        lost = "".join(f"\n\nWithout `{line}`, {WITHOUT[line]}." for line in permissions if line in WITHOUT)
        return f"{said}. The token lacks a permission; give the job these:\n\n{block}{lost}"
    if error.status == 404:
        return f"{said}. It does not exist, or the token may not see it"
    return said


def _is_rate_limit(error: GithubException) -> bool:
    used_up = (error.headers or {}).get(_REMAINING) == "0"
    return isinstance(error, RateLimitExceededException) or error.status == 429 or (error.status == 403 and used_up)


def _cause(error: Exception) -> object:
    wrapped = error.args[0] if error.args else None
    return getattr(wrapped, "reason", None) or error


def _message(error: GithubException) -> str:
    """Return GitHub's message in brackets; empty without one."""
    data: Any = error.data
    said = [data.get("message"), *_details(data.get("errors"))] if isinstance(data, dict) else [error.message]
    line = shortened("; ".join(str(part) for part in said if part), _MAX_ANSWER)
    return f" ({line})" if line else ""


def _details(errors: Any) -> list[Any]:
    """Return the texts in the ``errors`` of a 422 response, whose entries are texts or objects."""
    entries = errors if isinstance(errors, list) else []
    return [entry.get("message") or entry.get("code") if isinstance(entry, dict) else entry for entry in entries]
