"""The files of the control: named before user code runs, checked out when a confirmation needs them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from agenteval.core.files import LARGEST_RECORDING, open_regular
from agenteval.core.records import dataclass, field
from agenteval.run.confirm.clone import Clone, submodules
from agenteval.run.git import ControlCommit, ControlError, fetch, git

_MOST_NAMED = 5
_REPOSITORY = ".git"
_ALL_OBJECTS = ("rev-list", "--objects", "--no-walk")
# Files are written as they are in the commit: without filters, and without other line ends or encodings.
_UNCHANGED = "* -text -filter -ident -working-tree-encoding\n"
# Values of an attribute that is not set to a name.
_NO_FILTER = frozenset({"unspecified", "unset", "set"})

# Mode and blob id of a file, by its path.
Files = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class ControlTree:
    """The control, as the repository had it before user code ran.

    Attributes:
        root: the directory of the user's repository.
        worktree: a repository of agenteval with the same objects, for the files of the control.
        files: mode and blob id of each file, by its path; submodules that are not checked out are left out.
        gaps: why the content of a file or a submodule is missing, by its path.
    """

    root: Path
    worktree: Path
    control: ControlCommit
    files: Files
    gaps: Mapping[str, str] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self.control.commit

    @classmethod
    def prepare(cls, clone: Clone, control: ControlCommit, worktree: Path) -> ControlTree:
        """Fetch the control if necessary, and name its files.

        User code can change the repository, so this is called before any of it runs.

        Args:
            worktree: an empty directory that only agenteval and the user of the control can write.

        Raises:
            ControlError: the control cannot be fetched.
        """
        _take_objects(clone, control.commit, worktree)
        gaps = dict(_read_tree(clone, worktree, control.commit))
        files = {
            path: (mode, blob)
            for mode, blob, path in _entries(git(worktree, "ls-files", "--stage", "-z"))
            if mode != "160000"
        }
        gaps |= _converted(clone, worktree, files)
        return cls(clone.root, worktree, control, files, gaps)

    def gap_at(self, path: Path) -> str | None:
        """Return why the content of a path in the worktree is missing; ``None`` if it is there."""
        if not self.gaps or not path.is_relative_to(self.worktree):
            return None
        name = path.relative_to(self.worktree)
        return next(
            (self.gaps[place] for item in (name, *name.parents) if (place := item.as_posix()) in self.gaps), None
        )

    def check_out(self) -> None:
        """Write the files into the worktree, and compare them with the commit.

        Raises:
            ControlError: the files cannot be written, or differ from the commit.
        """
        _write(self.worktree, "info/attributes", _UNCHANGED)
        git(self.worktree, "checkout-index", "--all", "--force", "--quiet")
        verify(self.worktree, self)


def _take_objects(clone: Clone, commit: str, worktree: Path) -> None:
    """Make a repository with the objects of a commit: those of the clone, or else those of its remote."""
    git(worktree, "init", "--quiet", "--template=", f"--object-format={'sha256' if len(commit) == 64 else 'sha1'}")
    if not _copied(clone, commit, worktree):
        remote = clone.host.remote
        if remote is None:
            raise ControlError(
                f"commit {commit[:12]} is not in this clone; run `git fetch --depth=1 origin {commit}` first"
            )
        try:
            fetch(worktree, remote, commit)
        except ControlError as error:
            raise ControlError(
                f"commit {commit[:12]} is not in this checkout and cannot be fetched ({error}); give the job "
                "`contents: read`, or set `fetch-depth: 0` of actions/checkout"
            ) from None
    _write(worktree, "HEAD", f"{commit}\n")
    # Without this, git would look for the parents of the commit.
    _write(worktree, "shallow", f"{commit}\n")


def _copied(clone: Clone, commit: str, worktree: Path) -> bool:
    """Copy a commit and its files, without its history, from the clone; return whether the clone has all of it."""
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(f'"{_quoted(path)}"' for path in clone.objects())}
    repository = worktree / _REPOSITORY
    try:
        wanted = git(worktree, *_ALL_OBJECTS, "--no-object-names", commit, variables=variables)
        pack = str(repository / "pack")
        packed = git(worktree, "pack-objects", "--quiet", pack, stdin=f"{wanted}\n", variables=variables)
        name = f"pack-{packed}"
        # The id of an object in the clone is what its file claims. The new index has the ids of the contents, and
        # the commit is complete only if they are the same.
        git(worktree, "index-pack", str(repository / f"{name}.pack"))
        for suffix in (".pack", ".idx"):
            (repository / f"{name}{suffix}").rename(repository / "objects" / "pack" / f"{name}{suffix}")
        git(worktree, *_ALL_OBJECTS, "--quiet", commit)
    except ControlError:
        return False
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def _read_tree(clone: Clone, worktree: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Fill the index with the files of a commit and of its submodules that are checked out.

    Yields:
        The path of each submodule whose commit is missing, and why.
    """
    git(worktree, "read-tree", commit)
    waiting = [("", commit)]
    while waiting:
        folder, of = waiting.pop()
        for name, pinned in submodules(worktree, of):
            path = folder + name
            if not (clone.root / path / ".git").exists():
                continue
            if not _copied(clone, pinned, worktree):
                yield (
                    path,
                    f"commit {pinned[:12]} of the submodule {_shown(path)} is not in this clone; fetch it before "
                    "this step",
                )
                continue
            git(worktree, "update-index", "--force-remove", "--", path)
            git(worktree, "read-tree", f"--prefix={path}/", pinned)
            waiting.append((f"{path}/", pinned))


def _converted(clone: Clone, worktree: Path, files: Files) -> Iterator[tuple[str, str]]:
    """Yield the files that a filter has converted in the user's working tree: it is not run for the control."""
    if not any(path.rpartition("/")[2] == ".gitattributes" for path in files):
        return
    # Each file is listed as path, attribute and value.
    found = git(worktree, "check-attr", "--cached", "--stdin", "-z", "filter", stdin="\0".join(files)).split("\0")
    filters = {path: name for path, name in zip(found[::3], found[2::3], strict=False) if name not in _NO_FILTER}
    if not filters:
        return
    listed = git(clone.root, "ls-files", "--stage", "-z")
    current = {path: (mode, blob) for mode, blob, path in _entries(listed)}
    for path, name in filters.items():
        # Without the filter's program, for instance with `lfs: false`, both sides have the same unconverted file.
        here, there = clone.root / path, current.get(path, files[path])
        if not _is_blob(here, *there) and not _is_blob(here, *files[path]):
            yield (
                path,
                f"{_shown(path)} is converted by the filter {name} of .gitattributes, and filters are not run for "
                "the control; check the repository out without it",
            )


def _entries(listed: str) -> Iterator[tuple[str, str, str]]:
    """Yield mode, blob id and path of each entry of an index."""
    for entry in listed.split("\0"):
        about, _, path = entry.partition("\t")
        if path:
            mode, blob, _ = about.split(" ")
            yield mode, blob, path


def _write(worktree: Path, name: str, text: str) -> None:
    path = worktree / _REPOSITORY / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def verify(worktree: Path, tree: ControlTree) -> None:
    """Compare all files with the control; the objects of git belong to user code.

    Raises:
        ControlError: a file was changed, added or removed.
    """
    found = {
        path.relative_to(worktree).as_posix()
        for parent, folders, names in _walk(worktree)
        for path in (Path(parent, name) for name in (*names, *folders))
        if path.is_symlink() or not path.is_dir()
    }
    changed = sorted(found ^ set(tree.files)) or sorted(
        path for path, (mode, blob) in tree.files.items() if not _is_blob(worktree / path, mode, blob)
    )
    if changed:
        raise ControlError(
            f"{_shown(changed[0])} differs from commit {tree.commit[:12]}: the agent under test has changed the "
            "objects of the repository"
        )


def _walk(worktree: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    for parent, folders, names in os.walk(worktree):
        if Path(parent) == worktree:
            folders.remove(_REPOSITORY)
        yield parent, folders, names


def _shown(name: str) -> str:
    """Return the name of a file in git for messages, with a mark instead of bytes that are not UTF-8."""
    return os.fsencode(name).decode(errors="replace")


@dataclass(frozen=True)
class FileStates:
    """The states of the control's files before its agent runs; ``setup`` may have changed some.

    Attributes:
        states: the state of each file, ``None`` for a missing one. User code cannot set the time of the last change.
    """

    tree: ControlTree
    states: Mapping[str, tuple[int, ...] | None]

    @classmethod
    def read(cls, tree: ControlTree) -> FileStates:
        """Return the current states."""
        return cls(tree, {path: _state(tree.worktree / path) for path in tree.files})

    def warnings(self) -> tuple[str, ...]:
        """Return a warning if files have changed since, and are not as in the control."""
        worktree, files = self.tree.worktree, self.tree.files
        changed = sorted(
            path
            for path, before in self.states.items()
            if _state(worktree / path) != before and not _is_blob(worktree / path, *files[path])
        )
        if not changed:
            return ()
        more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        names = ", ".join(map(_shown, changed[:_MOST_NAMED]))
        return (
            f"files of the control changed while its agent ran: {names}{more}; if the agent did not change them "
            f"itself, do not trust the confirmation with commit {self.tree.commit[:12]}",
        )


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_blob(path: Path, mode: str, blob: str) -> bool:
    """Return whether a file has the mode and content of a blob, which git names by a hash."""
    # The ids of SHA-256 repositories are longer.
    digest = hashlib.new("sha1" if len(blob) == 40 else "sha256", usedforsecurity=False)
    try:
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode):
            target = os.fsencode(path.readlink())
            digest.update(b"blob %d\0%b" % (len(target), target))
            found = "120000"
        else:
            with open_regular(path, limit=LARGEST_RECORDING) as file:
                digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
                hashlib.file_digest(file, lambda: digest)
            found = "100755" if about.st_mode & stat.S_IXUSR else "100644"
    except OSError:
        return False
    return digest.hexdigest() == blob and found == mode.replace("100664", "100644")
