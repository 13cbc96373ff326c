"""Opening files that others name: nothing waits, and only regular files are read."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

import agenteval
from agenteval.core.files import Owner, also_inside, bounded, open_regular, read_regular

SOURCE = Path(agenteval.__file__).parent
# Files that read or write something else than files that others name, each with the reason.
ALLOWED = {
    "core/files.py": "the only ways",
    "core/shared_files.py": "the only ways",
    "core/writing.py": "the only ways",
    "run/base_commit.py": "a repository in a new directory, before user code runs",
    "run/downloads.py": "the downloads of this run, in a new directory",
    "core/process_groups.py": "processes in /proc",
    "agents/worker/worker.py": "runs with the rights of user code",
    "cli/main.py": "the null device",
    "github/isolation.py": "configurations of git, without following links",
    "cli/init.py": "starters of the package",
    "cli/demo.py": "the example of the package, copied to a new directory",
    "cli/output.py": "opens a browser",
    "agents/frameworks/scan.py": "data of the package",
    "suite/formats/fluxloop/metrics.py": "data of the package",
    "suite/formats/agentci/metrics.py": "data of the package",
    "report/html.py": "templates of the package",
    "report/templates.py": "templates of the package, and their compiled form",
    "metrics/overlap.py": "data of the package",
    "testing.py": "examples of a test",
    "github/artifacts.py": "opens connections and members of archives in memory",
    "github/client.py": "opens connections",
    "github/workflow_runs.py": "opens connections",
    "github/pygithub.py": "opens connections",
    "github/history.py": "opens connections",
    "github/second_stage.py": "files of the base commit, in a new directory",
    "github/comment.py": "opens connections",
    "github/saved_results.py": "opens connections",
    "run/answers.py": "its write_bytes is that of core/writing.py",
    "github/pull_request.py": "opens connections; its write_bytes is that of core/writing.py",
    "github/baseline_search.py": "opens connections",
    "github/action.py": "opens connections",
    "github/fork_publish.py": "opens connections",
    "agents/model_agent.py": "opens connections",
    "agents/http_agent.py": "opens connections",
    "agents/tool.py": "opens connections",
    "core/llm/gateway.py": "opens a budget",
    "core/llm/budget.py": "opens a budget",
    "suite/formats/base.py": "calls the reader of texts",
}
# `read_text` alone is our reader of texts.
OPENING = re.compile(
    r"(?<!def )\b(?:open|read_bytes|write_text|write_bytes|mkstemp|NamedTemporaryFile)\(|\.read_text\("
)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/dev/zero", "it is a device"),
        ("/dev/ptmx", "it is a device"),
        ("/dev/stdin", "not a regular file"),
        ("/proc/self/fd/1", "not a regular file"),
        ("/proc/self/environ", "it belongs to the kernel"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "it belongs to the kernel"),
        ("pipe", "it is a named pipe"),
        ("socket", "it is a socket"),
        ("folder", "Is a directory"),
        ("to_pipe", "it is a named pipe"),
        ("to_environ", "it belongs to the kernel"),
        ("to_descriptor", "it belongs to the kernel"),
        ("in_proc/environ", "it belongs to the kernel"),
        ("sparse", "it has more than 1,000,000 bytes"),
        ("loop", "Too many levels"),
        ("missing", "No such file"),
    ],
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    if name.startswith("/sys") and not Path(name).exists():
        pytest.skip("this system lacks it")
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    with (
        socket.socket(socket.AF_UNIX) as listening,
        Path("sparse").open("wb") as sparse,
        Path("real").open("wb") as real,
    ):
        listening.bind("socket")
        sparse.truncate(10 * 2**40)
        links = {"pipe": "to_pipe", "/proc/self/environ": "to_environ", "/proc/self": "in_proc", "loop": "loop"}
        # A descriptor of a regular file: only the way to it shows that it is one.
        for target, link in (links | {f"/proc/self/fd/{real.fileno()}": "to_descriptor"}).items():
            Path(link).symlink_to(target)

        with pytest.raises(OSError, match=why):
            open_regular(Path(name), limit=1_000_000)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", limit=3_000_000) == b"x" * 3_000_000
    with pytest.raises(OSError, match="more than 2,999,999 bytes"):
        read_regular(tmp_path / "link", limit=2_999_999)


def test_links_do_not_lead_out_of_the_boundary(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text(folder.name, encoding="utf-8")
    (inside / "link").symlink_to(outside / "file")
    (inside / "folder").symlink_to(outside)
    with bounded([inside], None):
        assert read_regular(inside / "file", limit=10) == b"inside"
        for name in ("link", "folder/file", "../outside/file"):
            with pytest.raises(OSError, match="outside of the directories that may be read"):
                read_regular(inside / name, limit=10)
    assert read_regular(inside / "link", limit=10) == b"outside"


def test_nothing_else_opens_files() -> None:
    opening = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if OPENING.search(path.read_text(encoding="utf-8"))
    }
    assert opening - ALLOWED.keys() == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads more than the owner of the workspace")
def test_a_suite_names_only_files_that_its_owner_may_read(tmp_path: Path) -> None:
    """Files of root in the workspace, and below a folder that is closed to its owner, do not get into reports."""
    owner = Owner(12_345, 12_345)
    workspace, closed, own = tmp_path / "workspace", tmp_path / "workspace/closed", tmp_path / "workspace/own"
    for folder in (workspace, closed, own):
        folder.mkdir()
        (folder / "file").write_text("text", encoding="utf-8")
    (workspace / "secret").write_text("text", encoding="utf-8")
    (workspace / "link").symlink_to("secret")
    for path in (workspace / "secret", own / "file"):
        path.chmod(0o600)
    closed.chmod(0o700)
    with bounded([workspace], owner), also_inside(own):
        assert read_regular(workspace / "file", limit=10) == b"text"
        assert read_regular(own / "file", limit=10) == b"text"
        for refused in ("secret", "link", "closed/file"):
            with pytest.raises(PermissionError, match="may not read it"):
                read_regular(workspace / refused, limit=10)
