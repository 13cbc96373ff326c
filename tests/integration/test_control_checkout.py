"""The control of real clones: shallow, detached, partial, with submodules and with files that git converts."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.git_server import GitServer, commit, git, mirror_pull_request, serving_git
from tests.integration.host import Host
from tests.support import case, write_suite

from agenteval.run.base_commit import ControlHost, ControlRule, base_commit
from agenteval.run.config import Settings
from agenteval.run.confirm.control import Control, opened_control
from agenteval.run.context import RunContext
from agenteval.run.git import ControlError, Remote
from agenteval.run.resolve_run import resolve_files

TOKEN = "ghs_0123456789abcdef"
AUTHORIZATION = f"Basic {b64encode(f'x-access-token:{TOKEN}'.encode()).decode()}"
FIX = "run `git fetch --depth=1 origin [0-9a-f]{40}` first"


@dataclass(frozen=True)
class Origin:
    """A repository: main has moved on since a pull request left it.

    Attributes:
        folder: where one works.
        bare: what is cloned.
        left: the commit at which the pull request left main.
        tip: main, into which the pull request is merged.
        head: head of the pull request.
        merge: the merge commit, as ``refs/pull/7/merge``.
    """

    folder: Path
    bare: Path
    left: str
    tip: str
    head: str
    merge: str

    def clone(self, *options: str, ref: str = "refs/pull/7/merge") -> Path:
        """A clone of one ref with a detached head, as actions/checkout makes it."""
        there = self.folder.parent / "clone"
        there.mkdir()
        git(there, "init", "--quiet")
        git(there, "remote", "add", "origin", f"file://{self.bare}")
        git(there, "fetch", "--quiet", *options, "origin", ref)
        git(there, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return there

    def pull_request(self, remote: Remote | None = None, base: str | None = None) -> Host:
        """What the event of the pull request tells."""
        return Host(ControlRule("pull-request", self.merge, self.tip, "main"), remote, base)


def write(folder: Path, answer: str) -> None:
    write_suite(folder, [case("a")], agent={"command": ["python3", "agent.py"]})
    (folder / "agent.py").write_text(f"print({answer!r})\n", encoding="utf-8")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return make_origin(tmp_path)


def make_origin(tmp_path: Path, *options: str) -> Origin:
    folder, bare = tmp_path / "work", tmp_path / "served" / "org" / "bot"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main", *options)
    write(folder, "left")
    (folder / "gone.txt").write_text("not in the pull request", encoding="utf-8")
    left = commit(folder)
    git(folder, "checkout", "--quiet", "-b", "feature")
    (folder / "gone.txt").unlink()
    head = commit(folder)
    git(folder, "checkout", "--quiet", "main")
    write(folder, "tip")
    tip = commit(folder)
    merge = mirror_pull_request(folder, bare)
    return Origin(folder, bare, left, tip, head, merge)


@contextmanager
def control_in(
    clone: Path, host: ControlHost, monkeypatch: pytest.MonkeyPatch, baseline: str | None = None
) -> Iterator[Control]:
    monkeypatch.chdir(clone)
    spec = resolve_files(Settings(), RunContext(control=host))
    with base_commit(clone, host, baseline) as found, opened_control(found, spec) as control:
        yield control


def answer_in(control: Control) -> str:
    (found,) = control.cases.values()
    return (Path(found.agent.directory) / "agent.py").read_text(encoding="utf-8").split("'")[1]


def remote_of(server: GitServer, token: str = TOKEN) -> Remote:
    credentials = b64encode(f"x-access-token:{token}".encode()).decode()
    return Remote(f"{server.url}/org/bot", f"Authorization: Basic {credentials}")


# Which commit


@pytest.mark.parametrize("depth", ["--depth=1", "--depth=2"])
def test_a_merge_commit_is_compared_with_the_tip_that_it_was_merged_into(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    clone = origin.clone(depth)
    with serving_git(origin.bare.parents[1], AUTHORIZATION) as server:
        host = origin.pull_request(remote_of(server))
        with control_in(clone, host, monkeypatch) as control:
            assert (control.commit, answer_in(control), control.note) == (origin.tip, "tip", "")
            (found,) = control.cases.values()
            here = Path(found.agent.directory)
            # Setup can ask git for the commit, as in any checkout of depth 1.
            assert git(here, "log", "--format=%H") == origin.tip
            assert git(here, "status", "--porcelain") == ""
            assert git(here, "config", "--list", "--local").find(TOKEN) == -1
        # The one commit is fetched only if it is missing, and never into the user's clone.
        assert bool(server.asked) == (depth == "--depth=1")
    missing = subprocess.run(
        ["git", "cat-file", "-e", origin.tip], cwd=clone, capture_output=True, check=False
    ).returncode
    assert bool(missing) == (depth == "--depth=1")


@pytest.mark.parametrize("depth", [["--depth=1"], []])
def test_the_head_of_a_pull_request_is_compared_with_the_merge_base(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, depth: list[str]
) -> None:
    clone = origin.clone(*depth, ref="refs/heads/feature")
    with serving_git(origin.bare.parents[1], AUTHORIZATION) as server:
        host = origin.pull_request(remote_of(server), base=origin.left)
        with control_in(clone, host, monkeypatch) as control:
            assert (control.commit, answer_in(control)) == (origin.left, "left")
            assert "what happened on main since" in control.note


def test_after_a_forced_push_the_parent_is_the_control(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    git(origin.folder, "checkout", "--quiet", "main")
    # The branch had a commit that the new history does not contain.
    pushed = Host(ControlRule("previous", before=origin.head))
    with control_in(origin.folder, pushed, monkeypatch) as control:
        assert control.commit == origin.left


# What cannot be fetched


@pytest.mark.parametrize("wrong", ["token", "commit", "server"])
def test_a_failed_fetch_is_one_line(origin: Origin, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    clone = origin.clone("--depth=1")
    with serving_git(origin.bare.parents[1], AUTHORIZATION) as server:
        remote = remote_of(server, "ghs_another0123456789" if wrong == "token" else TOKEN)
        if wrong == "commit":
            # The base branch was replaced, and its old commits were removed.
            shutil.rmtree(origin.bare / "objects")
            git(origin.bare, "init", "--quiet", "--bare")
        if wrong == "server":
            remote = Remote("http://127.0.0.1:1/org/bot", remote.header)
        with (
            pytest.raises(ControlError, match="cannot be fetched") as caught,
            control_in(clone, origin.pull_request(remote), monkeypatch),
        ):
            pass
    said = str(caught.value)
    assert "\n" not in said
    assert "`contents: read`" in said
    assert "ghs_" not in said
    assert remote.header.rpartition(" ")[2] not in said


def test_an_earlier_step_cannot_send_the_token_elsewhere(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, ran = origin.clone("--depth=1"), tmp_path / "ran"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nenv >{ran}\nexec /usr/bin/git "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("GIT_TRACE_CURL", str(tmp_path / "trace"))
    with serving_git(origin.bare.parents[1], AUTHORIZATION) as server, serving_git(tmp_path) as thief:
        git(clone, "config", f"url.{thief.url}/.insteadOf", f"{server.url}/")
        git(clone, "config", "http.proxy", thief.url)
        git(clone, "config", "credential.helper", f"!{program}")
        with control_in(clone, origin.pull_request(remote_of(server)), monkeypatch) as control:
            assert control.commit == origin.tip
        assert thief.asked == []
    # Other commands use the job's PATH; they get no credentials.
    assert "Authorization" not in ran.read_text(encoding="utf-8")
    assert not (tmp_path / "trace").exists()


def replaced(folder: Path, name: str, kind: str, content: bytes) -> None:
    """Write another content to the file of an object."""
    file = folder / ".git" / "objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(f"{kind} {len(content)}\0".encode() + content))


def test_an_earlier_step_cannot_change_the_files_of_the_control(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = origin.folder
    blob = git(folder, "rev-parse", f"{origin.tip}:agent.py")
    replaced(folder, blob, "blob", b"print('evil')\n")
    with pytest.raises(ControlError, match=FIX), control_in(folder, origin.pull_request(), monkeypatch):
        pass
    with serving_git(origin.bare.parents[1], AUTHORIZATION) as server:
        host = origin.pull_request(remote_of(server))
        with control_in(folder, host, monkeypatch) as control:
            assert (control.commit, answer_in(control)) == (origin.tip, "tip")


# What a checkout contains


def test_files_are_those_of_the_commit_byte_for_byte(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = origin.folder
    git(folder, "checkout", "--quiet", "main")
    (folder / ".gitattributes").write_text("*.txt text eol=crlf\n*.id ident\n", encoding="utf-8")
    (folder / "a.txt").write_bytes(b"one\ntwo\n")
    (folder / "b.id").write_bytes(b"$Id$\n")
    (folder / " odd \n name\xff".encode("utf-8", "surrogateescape").decode("utf-8", "replace")).touch()
    (folder / "link").symlink_to("a.txt")
    (folder / "tool.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "tool.sh").chmod(0o755)
    base = commit(folder)
    commit(folder)
    with control_in(folder, Host(ControlRule("first-parent")), monkeypatch) as control:
        (found,) = control.cases.values()
        there = Path(found.agent.directory)
        assert control.commit == base
        assert (there / "a.txt").read_bytes() == b"one\ntwo\n"
        assert (there / "b.id").read_bytes() == b"$Id$\n"
        assert (there / "link").readlink() == Path("a.txt")
        assert (there / "tool.sh").stat().st_mode & 0o111


@pytest.mark.parametrize("is_converted", [False, True])
def test_files_behind_a_filter(origin: Origin, monkeypatch: pytest.MonkeyPatch, is_converted: bool) -> None:
    """Without the filter both sides have the same pointers; with it, the control would not have the content."""
    folder = origin.folder
    git(folder, "checkout", "--quiet", "main")
    (folder / ".gitattributes").write_text("*.bin filter=lfs\n", encoding="utf-8")
    (folder / "model.bin").write_text("version https://git-lfs.github.com/spec/v1\n", encoding="utf-8")
    base = commit(folder)
    commit(folder)
    if is_converted:
        (folder / "model.bin").write_text("the content", encoding="utf-8")
        expected = pytest.raises(ControlError, match=r"model\.bin is converted by the filter lfs")
        with expected, control_in(folder, Host(ControlRule("first-parent")), monkeypatch):
            pass
        return
    with control_in(folder, Host(ControlRule("first-parent")), monkeypatch) as control:
        assert control.commit == base


@pytest.mark.parametrize("state", ["checked out", "absent", "without the commit"])
def test_submodules(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    (library / "data.txt").write_text("of the library", encoding="utf-8")
    commit(library)
    folder = origin.folder
    git(folder, "checkout", "--quiet", "main")
    git(folder, "submodule", "--quiet", "add", f"file://{library}", "vendor/library")
    base = commit(folder)
    if state == "without the commit":
        # The pull request moves the submodule, and the checkout is shallow.
        commit(library)
        shutil.rmtree(folder / "vendor" / "library")
        shutil.rmtree(folder / ".git" / "modules")
        git(folder, "clone", "--quiet", "--depth=1", f"file://{library}", "vendor/library")
    commit(folder)
    if state == "absent":
        git(folder, "submodule", "--quiet", "deinit", "--force", "vendor/library")
    host = Host(ControlRule("first-parent"))
    if state == "without the commit":
        said = "of the submodule vendor/library is not in this clone"
        with pytest.raises(ControlError, match=said), control_in(folder, host, monkeypatch):
            pass
        return
    with control_in(folder, host, monkeypatch) as control:
        (found,) = control.cases.values()
        data = Path(found.agent.directory) / "vendor" / "library" / "data.txt"
        assert control.commit == base
        assert data.exists() == (state == "checked out")
