"""A git server over HTTP, and repositories to test with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.support import listening

GIT_NAMES = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    """Real git, without anything of the machine's configuration, and without its maintenance after commits."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **GIT_NAMES}
    options = ("protocol.file.allow=always", "safe.directory=*", "gc.auto=0", "maintenance.auto=false")
    done = subprocess.run(
        ["git", *(part for option in options for part in ("-c", option)), *arguments],
        cwd=folder,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path) -> str:
    """Commit everything; return the commit's id."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def mirror_pull_request(folder: Path, bare: Path) -> str:
    """Merge branch ``feature`` into ``main`` as GitHub does, and mirror the repository; return the merge commit."""
    git(folder, "checkout", "--quiet", "--detach", "main")
    git(folder, "merge", "--quiet", "--no-edit", "feature")
    merge = git(folder, "rev-parse", "HEAD")
    git(folder, "update-ref", "refs/pull/7/merge", merge)
    git(folder, "clone", "--quiet", "--mirror", f"file://{folder}", str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(bare, "config", "uploadpack.allowFilter", "true")
    return merge


@dataclass
class GitServer:
    """Repositories below a folder, as ``owner/name``; ``asked`` has the authorization of every request."""

    url: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving_git(folder: Path, authorization: str | None = None) -> Iterator[GitServer]:
    """Serve the bare repositories below a folder; with an authorization, to nobody else."""
    server = GitServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            given = self.headers.get("Authorization", "")
            server.asked.append(given)
            if authorization is not None and given != authorization:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            done = subprocess.run(
                ["git", "http-backend"], env=os.environ | variables, input=body, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split(" ")[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Print nothing."""

    with listening(Handler) as url:
        server.url = url
        yield server
