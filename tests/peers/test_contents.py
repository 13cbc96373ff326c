"""Files of commits, read from the emulated GitHub."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests
from tests.peers.github_emulator import OWNER_TOKEN
from tests.peers.github_service import GithubService, History
from tests.peers.openapi import Description

from agenteval.core.errors import AgentEvalError
from agenteval.github.client import MAX_BYTES, USER_AGENT, read_file

pytestmark = pytest.mark.peer

# How git writes the kinds of entries of a folder.
FILE, LINK, SUBMODULE = "100644", "120000", "160000"
FORBIDDEN = {"message": "Resource not accessible by integration"}
NAMES = ["agenteval.yaml", "bots/shop/agenteval.yaml", "a b/agenteval.yaml", "ü/#1?x=%2F&y+.yaml"]


@dataclass(frozen=True)
class Checkout:
    """A repository with files.

    Attributes:
        github: the service that has it.
        history: its commits.
    """

    github: GithubService
    history: History

    def commit(self, files: dict[str, tuple[str, bytes | str]]) -> str:
        """Return the SHA of a new commit with exactly these entries: by path, the mode, and content or SHA."""
        entries = [
            {
                "path": path,
                "mode": mode,
                "type": "commit" if mode == SUBMODULE else "blob",
                "sha": self._blob(content),
            }
            for path, (mode, content) in files.items()
        ]
        tree = self.history.post("git/trees", {"tree": entries})
        made = self.history.post("git/commits", {"message": "Files", "tree": tree["sha"], "parents": []})
        return str(made["sha"])

    def _blob(self, content: bytes | str) -> str:
        if isinstance(content, str):
            return content
        encoded = base64.b64encode(content).decode()
        return str(self.history.post("git/blobs", {"content": encoded, "encoding": "base64"})["sha"])

    def read(self, path: str, commit: str) -> str:
        return read_file(self.github.client(retries=1), self.history.name, path, commit)


@pytest.fixture
def checkout(github: GithubService) -> Checkout:
    return Checkout(github, github.history())


def test_a_file_is_read_as_it_was_at_the_commit(checkout: Checkout) -> None:
    for text in ("pass_env: [SHOP_TOKEN]\n", "iterations: 2 # 日本\n", ""):
        commit = checkout.commit({path: (FILE, text.encode("utf-8-sig")) for path in NAMES})
        assert [checkout.read(path, commit) for path in NAMES] == [text] * len(NAMES)


def test_anything_else_is_an_error(checkout: Checkout) -> None:
    commit = checkout.commit(
        {
            "folder/agenteval.yaml": (FILE, b"iterations: 2\n"),
            "folder/latin-1.yaml": (FILE, "name: über".encode("latin-1")),
            "large.yaml": (FILE, b"# " + b"x" * 2 * MAX_BYTES),
            "link": (LINK, b"folder/agenteval.yaml"),
            "link-to-nothing": (LINK, b"/etc/passwd"),
            "submodule": (SUBMODULE, "c" * 40),
        }
    )
    # GitHub sends the file that a link leads to.
    assert checkout.read("link", commit) == "iterations: 2\n"

    for path, reason in {
        "folder": "folder is not a plain file there",
        "link-to-nothing": "link-to-nothing is not a plain file there",
        "submodule": "submodule is not a plain file there",
        "folder/latin-1.yaml": "folder/latin-1.yaml is not UTF-8 text there",
        "large.yaml": f"large.yaml has more than {MAX_BYTES:,} bytes there",
        "missing.yaml": "It does not exist, or the token may not see it",
        "folder/agenteval.yaml/more": "It does not exist, or the token may not see it",
    }.items():
        with pytest.raises(AgentEvalError) as caught:
            checkout.read(path, commit)
        assert reason in str(caught.value), path


def test_the_emulator_answers_as_github_describes(checkout: Checkout) -> None:
    commit = checkout.commit(
        {"agenteval.yaml": (FILE, b"a"), "bots/shop/agenteval.yaml": (FILE, b"b"), "link": (LINK, b"nowhere")}
    )
    headers = {"User-Agent": USER_AGENT, "Authorization": f"Bearer {OWNER_TOKEN}"}
    for path in ("agenteval.yaml", "bots/shop/agenteval.yaml", "bots", "link", "missing.yaml"):
        url = f"{checkout.github.url}/repos/{checkout.history.name}/contents/{path}"
        answer = requests.get(url, params={"ref": commit}, headers=headers, timeout=10)

        assert answer.status_code == (404 if path == "missing.yaml" else 200)
        described = Description.load().answer_violations("GET", urlsplit(url).path, answer.status_code, answer.text)
        assert described == [], json.dumps(answer.json())


def test_a_wrong_answer_is_an_error_and_a_transient_failure_is_retried(checkout: Checkout) -> None:
    commit = checkout.commit({"agenteval.yaml": (FILE, b"iterations: 2\n")})
    for fault, reason in (
        ({"status": 403, "body": FORBIDDEN}, "permissions:\n  contents: read"),
        ({"truncate": True}, "GitHub did not answer"),
        ({"status": 200, "body": "file"}, "agenteval.yaml is not a plain file there"),
    ):
        checkout.github.proxy.fail("GET", "/contents/", **fault)
        with pytest.raises(AgentEvalError, match=reason):
            checkout.read("agenteval.yaml", commit)

    checkout.github.proxy.forget()
    checkout.github.proxy.fail("GET", "/contents/", status=502)
    assert checkout.read("agenteval.yaml", commit) == "iterations: 2\n"
    assert len(checkout.github.proxy.called("GET", "/contents/")) == 2
