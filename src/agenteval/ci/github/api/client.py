"""Connection to GitHub: token, server, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.urls import display_url, is_http_url
from agenteval.core.version import __version__

if TYPE_CHECKING:
    from github import Github

DEFAULT_API_URL = "https://api.github.com"
USER_AGENT = f"agenteval/{__version__}"


class GithubError(AgentEvalError):
    """A request to GitHub failed (exit status 3). The text never contains the token.

    Args:
        message: the request, GitHub's response, and the fix.
        status: HTTP status of the response, if any.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Client:
    """Configuration of the connection. Nothing is sent before :meth:`open`.

    Args:
        token: any kind of token; not in the ``repr``.
        api_url: root of the REST API; that of a GitHub Enterprise Server ends in ``/api/v3``.
        timeout_s: seconds to wait for one answer.
        retries: retries of a request after a transient failure.
    """

    token: str = field(repr=False)
    api_url: str = DEFAULT_API_URL
    timeout_s: int = 20
    retries: int = 3

    @classmethod
    def from_environment(cls, token: str, environment: Mapping[str, str]) -> Client:
        """Return a client for the server of ``GITHUB_API_URL``.

        Raises:
            ConfigError: the token is empty, or the variable is not an http(s) URL.
        """
        token = token.strip()
        if not token:
            raise ConfigError(Problem("a token is needed to talk to GitHub", path="github-token", kind=Kind.GITHUB))
        api_url = environment.get("GITHUB_API_URL") or DEFAULT_API_URL
        if not is_http_url(api_url):
            raise ConfigError(
                Problem(
                    f"{display_url(api_url)!r} is not an http or https URL", path="GITHUB_API_URL", kind=Kind.GITHUB
                )
            )
        return cls(token, api_url.rstrip("/"))

    @contextmanager
    def open(self, purpose: str, permissions: Sequence[str]) -> Iterator[Github]:
        """Yield a PyGithub client, and translate its exceptions inside the block.

        Args:
            purpose: text after "cannot", for instance ``comment on pull request #7``.
            permissions: required lines under ``permissions:``, for the message.

        Raises:
            GithubError: GitHub refused, failed or could not be reached.
        """
        from agenteval.ci.github.api import connection

        api = connection.connect(
            token=self.token,
            api_url=self.api_url,
            user_agent=USER_AGENT,
            timeout_s=self.timeout_s,
            retries=self.retries,
        )
        try:
            yield api
        except (*connection.FAILURES, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not connection.is_redirect_elsewhere(error):
                raise
            said = f"cannot {purpose}: {connection.explain(error, permissions)}"
            status = getattr(error, "status", None)
            # ``from None``: exceptions of the HTTP libraries hold the request, and with it the token.
            raise GithubError(said.replace(self.token, "***"), status) from None
        finally:
            api.close()
