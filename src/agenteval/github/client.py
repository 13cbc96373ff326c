"""Connection to GitHub: token, server, errors; files of a commit, and what people did with a pull request."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.escape import display_url, is_http_url
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass, field
from agenteval.core.version import __version__
from agenteval.github.event import EventRights, with_confirmed_request

if TYPE_CHECKING:
    from github import Github


T = TypeVar("T")

DEFAULT_API_URL = "https://api.github.com"
USER_AGENT = f"agenteval/{__version__}"


class GithubError(AgentEvalError):
    """A request to GitHub failed (exit status 3): its text names request, response and fix, and never the token."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True)
class GitHubClient:
    """Configuration of the connection. Nothing is sent before :meth:`open`; ``timeout_s`` is for one answer."""

    token: str = field(repr=False)
    api_url: str = DEFAULT_API_URL
    timeout_s: int = 20
    retries: int = 3

    @classmethod
    def from_environment(cls, token: str, environment: Mapping[str, str]) -> GitHubClient:
        """Return a client for the server of ``GITHUB_API_URL``; a wrong address and an empty token are mistakes."""
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
        """Yield a PyGithub client, and make each failure of GitHub inside the block a `GithubError`.

        Args:
            purpose: text after "cannot", for instance ``comment on pull request #7``.
            permissions: required lines under ``permissions:``, for the message.
        """
        from agenteval.github import connection

        api = connection.connect(
            token=self.token,
            api_url=self.api_url,
            user_agent=USER_AGENT,
            timeout_s=self.timeout_s,
            retries=self.retries,
        )
        try:
            yield api
        except ValidationError:
            raise GithubError(f"cannot {purpose}: GitHub's response is invalid") from None
        except (*connection.FAILURES, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not connection.is_redirect_elsewhere(error):
                raise
            said = f"cannot {purpose}: {connection.explain(error, permissions)}"
            status = getattr(error, "status", None)
            # ``from None``: exceptions of the HTTP libraries hold the request, and with it the token.
            raise GithubError(said.replace(self.token, "***"), status) from None
        finally:
            api.close()


def ask(api: Github, kind: type[T], path: str, **query: str) -> T:
    """Return GitHub's answer to a question; one that does not match its documentation is a ``ValidationError``."""
    _, answer = api.requester.requestJsonAndCheck("GET", path, parameters=query)
    return TypeAdapter(kind).validate_python(answer)


CONTENT_PERMISSIONS = ("contents: read",)
# GitHub sends no content of larger files.
MAX_BYTES = 1_000_000


def read_file(client: GitHubClient, repository: str, path: str, commit: str) -> str:
    """Return the text of a file at a commit.

    Raises:
        AgentEvalError: it is not a plain file, too large or not UTF-8.
    """
    with client.open(f"read {path} of {repository} at {commit}", CONTENT_PERMISSIONS) as api:
        answer: Any = ask(api, object, f"/repos/{repository}/contents/{quote(path)}", ref=commit)
    if not isinstance(answer, dict) or answer.get("type") != "file":
        raise AgentEvalError(f"{path} is not a plain file there")
    content, encoding = answer.get("content"), answer.get("encoding")
    if encoding != "base64" or not isinstance(content, str) or len(content) > 2 * MAX_BYTES:
        raise AgentEvalError(f"{path} has more than {MAX_BYTES:,} bytes there")
    try:
        return b64decode(content).decode("utf-8-sig")
    except ValueError:
        raise AgentEvalError(f"{path} is not UTF-8 text there") from None


_MAY_WRITE = frozenset({"admin", "write"})
_NOT_FOUND = 404
# GitHub gives this name to apps only. A text that an app writes may repeat what a stranger told it.
_APP = "[bot]"


class _Permission(BaseModel):
    permission: str


def may_write(client: GitHubClient, repository: str, login: str) -> bool:
    """Return whether a person may write to a repository; false for apps and for deleted accounts (an empty login)."""
    if not login or login.endswith(_APP):
        return False
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        with client.open(f"read the permission of {login}", ("metadata: read",)) as api:
            return ask(api, _Permission, path).permission in _MAY_WRITE
    except GithubError as error:
        # Strangers are no collaborators.
        if error.status == _NOT_FOUND:
            return False
        raise


PULL_REQUEST_PERMISSIONS = ("pull-requests: read",)
_PER_PAGE = 100
_PAGES = 30


class _Named(BaseModel):
    name: str | None = None


class _User(BaseModel):
    login: str = Field(max_length=100)


class LabelEvent(BaseModel):
    """One event of a pull request; other kinds of events have no label."""

    event: str | None = None
    created_at: datetime
    actor: _User | None = None
    label: _Named | None = None

    @property
    def by(self) -> str:
        """Login of the person; empty for a deleted account."""
        return self.actor.login if self.actor else ""

    @property
    def label_name(self) -> str:
        """Name of the label as it is written; empty for other events."""
        return (self.label.name if self.label else None) or ""

    @property
    def is_set(self) -> bool:
        """Whether the event set the label."""
        return self.event == "labeled"


def newest_label_events(api: Github, repository: str, number: int) -> dict[str, LabelEvent]:
    """Return for each label of a pull request the last time that it was set or removed, by the label's key."""
    path = f"/repos/{repository}/issues/{number}/events"
    found: dict[str, LabelEvent] = {}
    for page in range(1, _PAGES + 1):
        events = ask(api, list[LabelEvent], path, per_page=str(_PER_PAGE), page=str(page))
        for event in events:
            if event.label_name and event.event in {"labeled", "unlabeled"}:
                found[label_key(event.label_name)] = event
        if len(events) < _PER_PAGE:
            return found
    # The newest items are the last ones, and one of them can withdraw what is known.
    raise GithubError(f"{path} lists more than {_PAGES * _PER_PAGE:,} items, which are too many to read all of them")


def label_key(name: str) -> str:
    """Return what tells a label from others: on GitHub, capitals do not."""
    return name.casefold()


COMMENT_PERMISSIONS = ("pull-requests: read",)
_LONGEST = 1_000


def confirmed(planned: EventRights, client: GitHubClient, workspace: Path) -> EventRights:
    """Return the plan of a run that a comment asks for; a comment that is refused is a ``ConfigError``.

    The run has the secrets of the repository, and the commit can come from a fork. So the author of the comment may
    write to the repository, and the commit that the comment names is the head, and is checked out.
    """
    repository, number, by = planned.repository or "", planned.pull_request or 0, planned.requested_by or ""
    if not may_write(client, repository, by):
        raise _refused(f"{by} may not write to {repository}; only people with write access can ask for a run")
    with client.open(f"read pull request #{number} of {repository}", COMMENT_PERMISSIONS) as api:
        pull = api.get_repo(repository).get_pull(number)
        head, state, base_ref, base_commit = pull.head.sha, pull.state, pull.base.ref, pull.base.sha
    if state != "open" or head != planned.commit:
        raise _refused(
            f"{planned.commit} is not the head of the open pull request #{number}; review the new commits, and name "
            "the last one"
        )
    if _checked_out(workspace) != planned.commit:
        raise _refused(f"the workspace does not contain {planned.commit}; check it out with `ref`, without a branch")
    return with_confirmed_request(planned, base_ref, base_commit)


def _checked_out(workspace: Path) -> str:
    try:
        return read_regular(workspace / ".git" / "HEAD", limit=_LONGEST).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _refused(why: str) -> ConfigError:
    return ConfigError(Problem(f"refused: {why}", kind=Kind.GITHUB))
