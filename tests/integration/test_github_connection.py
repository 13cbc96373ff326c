"""Retries, waits and messages, against a real HTTP server that answers from a script."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integration.certificates import localhost
from tests.support import recorded_pauses_of
from urllib3.util import retry

from agenteval.core.errors import ConfigError
from agenteval.github import action, connection
from agenteval.github.artifacts import UnusableArtifactError, download
from agenteval.github.client import GitHubClient, GithubError

TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
PERMISSIONS = ("contents: read", "checks: write")

PRIMARY = "API rate limit exceeded for installation ID 1."
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
FORBIDDEN = "Resource not accessible by integration"


@dataclass
class Scripted:
    """Answers with the next entry of the script, and with 200 after the last."""

    url: str = ""
    script: list[tuple[int, dict[str, str], str | bytes]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    wrap: Callable[[ssl.SSLContext], None] = lambda _: None
    release: Event = field(default_factory=Event)

    def will(self, status: int, message: str = "", times: int = 1, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.script += [(status, named, json.dumps({"message": message}))] * times


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            scripted.requests.append(self.command)
            scripted.paths.append(self.path)
            status, headers, body = scripted.script.pop(0) if scripted.script else (200, {}, "{}")
            if status == 0:
                scripted.release.wait(30)
                self.close_connection = True
                return
            data = body if isinstance(body, bytes) else body.encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    scripted.url = f"http://127.0.0.1:{http.server_port}"

    def wrap(context: ssl.SSLContext) -> None:
        http.socket = context.wrap_socket(http.socket, server_side=True)

    scripted.wrap = wrap
    yield scripted
    scripted.release.set()
    http.shutdown()
    http.server_close()


def ask(url: str, method: str, **options: int) -> Any:
    with GitHubClient(TOKEN, url, **options).open("do it", PERMISSIONS) as api:
        return api.requester.requestJsonAndCheck(method, "/thing", input={} if method == "POST" else None)


def failure(url: str, method: str = "GET", **options: int) -> str:
    with pytest.raises(GithubError) as caught:
        ask(url, method, **options)
    text = f"{caught.value}{caught.value!r}"
    assert TOKEN not in text
    assert caught.value.exit_status == 3
    return str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_asked_again(server: Scripted, status: int) -> None:
    server.will(status, "later")

    ask(server.url, "GET")

    assert server.requests == ["GET", "GET"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("status", "message"), [(403, SECONDARY), (429, SECONDARY), (403, PRIMARY)])
def test_a_rate_limit_is_waited_for(server: Scripted, method: str, status: int, message: str) -> None:
    server.will(status, message, retry_after="1")

    ask(server.url, method)

    assert server.requests == [method, method]


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_post_that_may_have_worked_is_not_repeated(server: Scripted, status: int) -> None:
    server.will(status, "Server Error")

    assert f"cannot do it: GitHub answered {status} (Server Error)" in failure(server.url, "POST")
    assert server.requests == ["POST"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_missing_permission_is_not_asked_again(server: Scripted, method: str) -> None:
    server.will(403, FORBIDDEN)

    text = failure(server.url, method)

    assert text == (
        f"cannot do it: GitHub answered 403 ({FORBIDDEN}). The token lacks a permission; give the job these:\n"
        "\npermissions:\n  contents: read\n  checks: write\n"
        "\nWithout `contents: read`, private repositories are not checked out, and the base commit cannot be "
        "fetched.\n"
        "\nWithout `checks: write`, there is no check run; the job shows the first annotations."
    )
    assert server.requests == [method]


def test_other_refusals_name_other_fixes(server: Scripted) -> None:
    fixes = {
        "Unable to create comment because issue is locked.": "unlock it, or set `comment: never`",
        "Repository was archived so is read-only.": "unarchive it, or disable its workflows",
        FORBIDDEN: "The token lacks a permission; give the job these:",
    }
    said = {}
    for message in fixes:
        server.will(403, message)
        said[message] = failure(server.url, "POST")
    assert [message for message, fix in fixes.items() if fix not in said[message]] == []
    assert [message for message, text in said.items() if "permissions:" in text] == [FORBIDDEN]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_limit_that_lasts_too_long_is_not_waited_for(server: Scripted, method: str) -> None:
    reset = str(int(time.time()) + 3000)
    server.will(403, PRIMARY, x_ratelimit_remaining="0", x_ratelimit_reset=reset)

    text = failure(server.url, method)

    assert "agenteval waits 60 s at most" in text
    assert "permissions:" not in text
    assert server.requests == [method]


@pytest.mark.parametrize("status", [429, 500, 502])
def test_repetitions_end(server: Scripted, status: int) -> None:
    server.will(status, "no", times=5)

    assert f"GitHub answered {status} (no)" in failure(server.url, retries=1)
    assert server.requests == ["GET", "GET"]


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (401, "Bad credentials", "401 (Bad credentials). The token is invalid or has expired"),
        (404, "Not Found", "404 (Not Found). It does not exist, or the token may not see it"),
        (422, "Validation Failed", "422 (Validation Failed)"),
        (410, "", "410"),
        (400, f"Do not send {TOKEN}", "400 (Do not send ***)"),
        (400, "two\nlines\x1b[31m", "400 (two lines)"),
    ],
)
def test_other_answers_are_explained(server: Scripted, status: int, message: str, said: str) -> None:
    server.will(status, message)

    assert failure(server.url) == f"cannot do it: GitHub answered {said}"
    assert server.requests == ["GET"]


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b"", b"[]", b"null", b"\xff\xfe"])
@pytest.mark.parametrize("status", [400, 403])
def test_answers_that_are_not_githubs(server: Scripted, status: int, body: bytes) -> None:
    server.script.append((status, {}, body))

    assert failure(server.url).startswith(f"cannot do it: GitHub answered {status}")


def test_a_server_that_hangs(server: Scripted) -> None:
    server.script.append((0, {}, ""))

    assert "timed out" in failure(server.url, timeout_s=1, retries=0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return recorded_pauses_of(monkeypatch, connection, retry)


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_limit_that_ends_soon_is_waited_for(server: Scripted, waits: list[float], method: str, status: int) -> None:
    reset = str(int(time.time()) + 30)
    server.will(status, PRIMARY, x_ratelimit_remaining="0", x_ratelimit_reset=reset)

    ask(server.url, method)

    assert server.requests == [method, method]
    assert waits == [pytest.approx(31, abs=2)]


def test_a_secondary_limit_that_stays_is_no_missing_permission(server: Scripted, waits: list[float]) -> None:
    server.will(403, SECONDARY, times=20)

    text = failure(server.url, retries=1)

    assert "The rate limit of the token is exhausted" in text
    assert "permissions:" not in text
    assert waits == [60]


def test_a_redirect_to_another_server_is_explained(server: Scripted) -> None:
    server.will(301, "moved", location="https://github.example.com/api/v3/thing")

    assert "cannot do it: GITHUB_API_URL is not the server's address: " in failure(server.url)


def test_other_mistakes_are_not_taken_for_githubs() -> None:
    with pytest.raises(RuntimeError, match="redirected by us"), GitHubClient(TOKEN).open("do it", PERMISSIONS):
        raise NotImplementedError("redirected by us")


def test_an_artifact_store_with_a_certificate_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Scripted
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(_behind_tls(server, tmp_path)))
    server.script.append((302, {"Location": f"{server.url}/blob"}, ""))
    server.script.append((200, {}, b"zip"))

    assert download(GitHubClient(TOKEN, server.url), "acme/widgets", 7) == b"zip"


def test_a_store_is_never_less_protected_than_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Scripted
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(_behind_tls(server, tmp_path)))
    server.script.append((302, {"Location": server.url.replace("https:", "http:") + "/blob"}, ""))

    with pytest.raises(UnusableArtifactError, match="its address is invalid"):
        download(GitHubClient(TOKEN, server.url), "acme/widgets", 7)


def _behind_tls(server: Scripted, folder: Path) -> Path:
    """Lets the server speak https with a new certificate of its own, and says in which file that is."""
    context, authority = localhost(folder)
    server.wrap(context)
    server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    return authority


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(GitHubClient(TOKEN))


@pytest.mark.parametrize("url", ["api.github.com", "ftp://api.github.com", "https://", "http://[", "https:///x"])
def test_a_server_that_is_no_url(url: str) -> None:
    with pytest.raises(ConfigError, match="GITHUB_API_URL"):
        GitHubClient.from_environment(TOKEN, {"GITHUB_API_URL": url})


@pytest.mark.parametrize(
    ("state", "own", "sent", "said"),
    [
        ("suspected", None, [], ""),
        ("proven", None, ["GET", "POST"], "issue opened: https://github.com/o/r/issues/9"),
        ("proven", {}, ["GET", "GET", "PATCH"], "issue updated: https://github.com/o/r/issues/9"),
        (
            "proven",
            {"author_association": "NONE", "user": {"type": "Bot"}},
            ["GET", "GET", "PATCH"],
            "issue updated: https://github.com/o/r/issues/9",
        ),
        ("proven", {"author_association": "NONE"}, ["GET", "GET", "POST"], "issue opened"),
        ("proven", {"pull_request": {"url": "x"}}, ["GET", "POST"], "issue opened"),
        ("proven", {"body": "another\n<!-- agenteval:decline aaaaaaaaaaaa -->"}, ["GET", "POST"], "issue opened"),
    ],
)
def test_a_proven_decline_is_an_issue(
    *, server: Scripted, capsys: pytest.CaptureFixture[str], state: str, own: Any, sent: list[str], said: str
) -> None:
    mark = "<!-- agenteval:decline aaaaaaaaaaaa -->"
    issue = {"number": 9, "url": f"{server.url}/repos/o/r/issues/9", "html_url": "https://github.com/o/r/issues/9"}
    issue |= {"body": f"{mark}\r\nold", "author_association": "MEMBER", "user": {"type": "User"}}
    listed = [issue | {"number": 8, "body": None}, *([] if own is None else [issue | own])]
    # What the list leaves out is asked for.
    server.script += [(200, {}, json.dumps(answer)) for answer in (listed, *[issue | (own or {})] * 2)]
    event = SimpleNamespace(repository="o/r", ref="refs/heads/main")
    context: Any = SimpleNamespace(event=event, environment={}, client=lambda: GitHubClient(TOKEN, server.url))
    decline = SimpleNamespace(state=state, decline="price fell", headline="price fell", start_sha="a" * 40)
    outcome: Any = SimpleNamespace(results=SimpleNamespace(comparison=decline))

    action._report_decline(context, outcome)

    assert server.requests == sent
    assert said in capsys.readouterr().out
