"""How GitHub is reached: the token, the server, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agenteval.core.errors import AgentEvalError, ConfigError, Problem
from agenteval.core.version import __version__

if TYPE_CHECKING:
    from github import Github

DEFAULT_API_URL = "https://api.github.com"
USER_AGENT = f"agenteval/{__version__}"


class GithubError(AgentEvalError):
    """GitHub did not do what it was asked (exit status 3). The text never contains the token.

    Args:
        message: what was tried, what GitHub said, and what to do about it.
        status: HTTP status of the answer, if there was one.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Client:
    """How to reach GitHub. Nothing is sent before :meth:`open`.

    Args:
        token: any kind of token; not part of the ``repr``.
        api_url: root of the REST API; that of a GitHub Enterprise Server ends in ``/api/v3``.
        timeout_s: seconds to wait for one answer.
        retries: how often one request is repeated after a passing failure.
    """

    token: str = field(repr=False)
    api_url: str = DEFAULT_API_URL
    timeout_s: int = 20
    retries: int = 3

    @classmethod
    def from_environment(cls, token: str, environment: Mapping[str, str]) -> Client:
        """A client for the server that ``GITHUB_API_URL`` names.

        Raises:
            ConfigError: the token is empty, or the variable is not an http(s) URL.
        """
        token = token.strip()
        if not token:
            raise ConfigError(Problem("a token is needed to talk to GitHub", path="github-token"))
        api_url = environment.get("GITHUB_API_URL") or DEFAULT_API_URL
        if not _is_http(api_url):
            raise ConfigError(Problem(f"{api_url!r} is not an http or https URL", path="GITHUB_API_URL"))
        return cls(token, api_url.rstrip("/"))

    @contextmanager
    def open(self, purpose: str, permissions: Sequence[str]) -> Iterator[Github]:
        """Gives a PyGithub client, and translates what goes wrong with it inside the block.

        Args:
            purpose: continues the sentence "cannot …", for instance ``comment on pull request #7``.
            permissions: the lines a job needs under ``permissions:`` for it, to name when they are missing.

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


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
