"""Writing files: no link is followed, and everything but regular files is refused."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.core.errors import InfrastructureError
from agenteval.core.files import Owner, also_inside, bounded
from agenteval.core.shared_files import LOCK_FILE, locked, write_cache_file
from agenteval.core.writing import (
    append_file,
    create_file,
    give_to_owner,
    make_directory,
    open_file,
    write_file,
    write_new_file,
)

SECRET = "not ours"


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


# What an attacker can put in the place of a file, and whether the file then replaces it.
PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda path, victim: path.symlink_to(victim),
    "a dangling link": lambda path, victim: path.symlink_to(victim.with_name("missing")),
    "a link to a directory": lambda path, victim: path.symlink_to(victim.parent),
    "a hard link": lambda path, victim: path.hardlink_to(victim),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a socket": lambda path, _: bind(path),
    "a directory": lambda path, _: path.mkdir(),
}
# Everything that writes to a file by its name.
WRITERS: dict[str, Callable[[Path, str], object]] = {
    "report": lambda folder, name: write_file(folder, name, "ours"),
    "journal": lambda folder, name: os.close(create_file(folder, name)),
    "resumed journal": lambda folder, name: os.close(open_file(folder, name, os.O_APPEND)),
    "lock": lambda folder, name: os.close(open_file(folder, name, os.O_CREAT)),
    "starter": lambda folder, name: write_new_file(folder, name, b"ours"),
    "output of the runner": lambda folder, name: append_file(folder / name, b"ours"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / "reports").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "victim").write_text(SECRET, encoding="utf-8")
    monkeypatch.chdir(project)
    return project / "reports"


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("writer", WRITERS)
def test_no_link_is_written_through(folder: Path, writer: str, planted: str) -> None:
    victim = folder.parents[1] / "elsewhere" / "victim"
    PLANTED[planted](folder / "name", victim)
    with contextlib.suppress(InfrastructureError, OSError):
        WRITERS[writer](folder, "name")
        # Only a second name of another file may be replaced by a new file.
        assert planted == "a hard link"
        assert not (folder / "name").samefile(victim)
        assert stat.S_ISREG((folder / "name").lstat().st_mode)
    assert victim.read_text(encoding="utf-8") == SECRET
    assert [path.name for path in victim.parent.iterdir()] == ["victim"]


@pytest.mark.parametrize("linked", ["reports", "reports/deeper"])
def test_no_linked_folder_is_entered(folder: Path, linked: str) -> None:
    place, elsewhere = folder.parent / linked, folder.parents[1] / "elsewhere"
    if place.is_dir():
        place.rmdir()
    place.symlink_to(elsewhere)
    for write in (
        lambda: write_file(folder, "deeper/name", "ours"),
        lambda: make_directory(folder / "deeper" / "more"),
        lambda: create_file(folder / "deeper", "name"),
    ):
        with pytest.raises(InfrastructureError, match=rf"{place.name}: it is a link, not a directory; remove it"):
            write()
    assert [path.name for path in elsewhere.iterdir()] == ["victim"]


def test_outside_of_the_project_the_user_may_name_a_link(folder: Path) -> None:
    link = folder.parents[1] / "link"
    link.symlink_to(folder.parents[1] / "elsewhere")
    write_file(link, "name", "ours")
    assert (link / "name").read_text(encoding="utf-8") == "ours"


OUTSIDE: dict[str, Callable[[Path], object]] = {
    "directory": make_directory,
    "file": lambda folder: write_file(folder, "name", "ours"),
    "folder of a file": lambda folder: write_new_file(folder, "new/name", b"ours"),
    "journal": lambda folder: create_file(folder, "name"),
    "appended file": lambda folder: open_file(folder, "name", os.O_APPEND | os.O_CREAT),
    "lock": lambda folder: open_file(folder, "name", os.O_CREAT),
    "cache": lambda folder: write_cache_file(folder / "new" / "name", b"ours"),
}


@pytest.mark.parametrize("write", OUTSIDE)
@pytest.mark.parametrize("way", ["{elsewhere}", "../elsewhere", "reports/../../elsewhere", "{elsewhere}/new"])
def test_nothing_is_written_outside_of_the_boundary(folder: Path, way: str, write: str) -> None:
    elsewhere = folder.parents[1] / "elsewhere"
    path = Path(way.format(elsewhere=elsewhere))
    with bounded([folder.parent], Owner(4321, 4321)):
        with pytest.raises((InfrastructureError, OSError), match="is outside of the directories that may be written"):
            OUTSIDE[write](path)
        give_to_owner(path)
    assert [(path.name, path.stat().st_uid) for path in (elsewhere, *elsewhere.iterdir())] == [
        ("elsewhere", os.geteuid()),
        ("victim", os.geteuid()),
    ]


def test_a_link_inside_does_not_move_the_boundary(folder: Path) -> None:
    elsewhere = folder.parents[1] / "elsewhere"
    (folder / "cache").symlink_to(elsewhere)
    with bounded([folder.parent], None), also_inside(folder / "cache"):
        for path in (folder / "cache", elsewhere):
            with pytest.raises(InfrastructureError):
                make_directory(path / "new")
    assert [path.name for path in elsewhere.iterdir()] == ["victim"]


def test_an_allowed_directory_is_created_when_it_is_needed(folder: Path) -> None:
    cache = folder.parents[1] / "home" / "cache"
    with bounded([folder.parent], None), also_inside(cache):
        write_cache_file(cache / "ab" / "name", b"ours")
    assert (cache / "ab" / "name").read_bytes() == b"ours"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the rights of root")
def test_folders_belong_to_the_owner_of_the_workspace(folder: Path) -> None:
    foreign = folder.parent / "foreign"
    foreign.mkdir()
    os.chown(foreign, 4322, 4322)
    with bounded([folder.parent], Owner(4321, 4321)):
        make_directory(folder / "one" / "two")
        with pytest.raises(InfrastructureError, match="foreign: it belongs to another user"):
            make_directory(foreign / "one")
    assert [(folder / name).stat().st_uid for name in ("one", "one/two")] == [4321, 4321]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the rights of root")
def test_so_do_the_folders_above_an_allowed_directory(folder: Path) -> None:
    cache = folder.parents[1] / "home" / ".cache" / "agenteval"
    with bounded([folder.parent], Owner(4321, 4321)), also_inside(cache):
        write_cache_file(cache / "ab" / "name", b"ours")
    made = [cache / "ab" / "name", cache / "ab", cache, cache.parent, cache.parents[1]]
    assert [path.stat().st_uid for path in made] == [4321] * len(made)
    assert cache.parents[2].stat().st_uid == 0


def test_only_one_program_writes_to_a_directory(folder: Path) -> None:
    # The file of a process that has ended does not lock.
    (folder / LOCK_FILE).write_text("process 1, since long ago", encoding="utf-8")
    message = rf"writes to .*reports \(process {os.getpid()}, since .*\); wait"
    with locked(folder), pytest.raises(InfrastructureError, match=message), locked(folder):
        pass
    assert not (folder / LOCK_FILE).exists()
    with locked(folder):
        pass
