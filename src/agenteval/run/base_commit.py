"""The base commit: found and copied before user code runs, to where user code cannot change it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

from agenteval.core.confine import Apart, confined, confinement, user_environment
from agenteval.core.errors import AgentEvalError
from agenteval.core.files import Owner, also_inside
from agenteval.core.records import dataclass, field, replace
from agenteval.core.writing import change_owner_of
from agenteval.run.git import SUBMODULE, Clone, ControlError, Head, Remote, fetch, git, submodules

Kind = Literal["merge-base", "first-parent", "previous", "pull-request"]


@dataclass(frozen=True)
class ControlRule:
    """How the control follows from the commit that is checked out.

    Attributes:
        kind: ``first-parent``: the first parent. ``previous``: the state of the branch before a push or a merge
            group. ``pull-request``: the first parent of the merge commit, or the merge base if the pull request's own
            branch is checked out. ``merge-base``: the merge base with the baseline's commit.
        merge: the merge commit of the pull request, as the event names it.
        branch: the target branch.
        before: the branch's commit before a push or a merge group; ``None`` if the push did not continue from it.
        fork: where the commit that is checked out left the branch, if the CI host knows it.
    """

    kind: Kind = "merge-base"
    merge: str | None = None
    base: str | None = None
    branch: str | None = None
    before: str | None = None
    fork: str | None = None


class ControlHost(Protocol):
    """What a CI host knows about the control."""

    @property
    def rule(self) -> ControlRule:
        """How the control follows from the commit that is checked out."""
        ...

    @property
    def remote(self) -> Remote | None:
        """The repository to fetch the control from, if the checkout does not contain it."""
        ...

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits."""
        ...


@dataclass(frozen=True)
class LocalHost:
    """No CI host: the control follows from the clone alone, and nothing is fetched."""

    rule: ControlRule = field(default_factory=ControlRule)
    remote: Remote | None = None

    def merge_base(self, one: str, other: str) -> str:
        """Raise, because only the clone is known."""
        raise ControlError(f"the history between {one[:12]} and {other[:12]} is not in this clone")


def control_commit(host: ControlHost, clone: Clone, baseline: str | None) -> tuple[str, str]:
    """Return the control of the commit that is checked out, and what the comparison with it leaves out.

    Args:
        baseline: the commit that the baseline evaluated; ``None`` if it is unknown.
    """
    rule, head = host.rule, clone.head
    if rule.kind == "pull-request":
        return _of_pull_request(host, clone)
    if rule.kind == "merge-base":
        if rule.fork is None and baseline is None:
            raise ControlError("the baseline names no commit; commit its files before the run that makes it")
        return rule.fork or _merge_base(host, clone, baseline or ""), ""
    if rule.kind == "previous" and rule.before and clone.is_ancestor(rule.before, head.commit) is not False:
        return rule.before, ""
    return _first_parent(head), ""


def _of_pull_request(host: ControlHost, clone: Clone) -> tuple[str, str]:
    rule, head = host.rule, clone.head
    # Another merge commit can be one of the pull request, whose author chose its first parent.
    if len(head.parents) > 1 and head.commit == rule.merge:
        return head.parents[0], ""
    if rule.fork is not None and head.is_merge_into(rule.fork):
        return rule.fork, ""
    if rule.base is None and rule.fork is None:
        raise ControlError("the event of the pull request does not name its base commit")
    note = (
        f"compared with the merge base: what happened on {rule.branch or 'the base branch'} since is not in the pull "
        "request's run; check out the merge commit, which is the default of actions/checkout"
    )
    return rule.fork or _merge_base(host, clone, rule.base or ""), note


def _first_parent(head: Head) -> str:
    if not head.parents:
        raise ControlError(f"commit {head.commit[:12]} has no parent to compare with")
    return head.parents[0]


def _merge_base(host: ControlHost, clone: Clone, other: str) -> str:
    one = clone.head.commit
    try:
        return clone.merge_base(one, other)
    except ControlError as error:
        try:
            return host.merge_base(other, one)
        except AgentEvalError:
            raise ControlError(
                f"the merge base of {one[:12]} and {other[:12]} is not in this clone ({error}); set `fetch-depth: 0` "
                "of actions/checkout, or fetch the history with `git fetch --unshallow`"
            ) from None


# User ids that systemd reserves and nobody uses; the second one is for a workspace that belongs to the first one.
CONTROL_USERS = (65532, 65531)
# Variables with a directory that programs share, such as the caches of package managers.
_SHARED = re.compile(r"^XDG_\w+_HOME$|CACHE|^PYTHONUSERBASE$|^(?:TMPDIR|TEMP|TMP)$", re.IGNORECASE)
_REPOSITORY = "repository"


@dataclass(frozen=True)
class Checkout:
    """The repository, and the files of the base commit in another directory.

    Attributes:
        gaps: why the content of a file or a submodule is missing, by its path.
        apart: the user of the programs in the directory; ``None`` for the user of all user code.
    """

    root: Path
    worktree: Path
    gaps: Mapping[str, str] = field(default_factory=dict)
    apart: Apart | None = None

    def there(self, path: Path) -> Path:
        """Return the corresponding path in the worktree; a path outside the repository is returned unchanged."""
        # Not resolved if possible: user code can put links in the place of folders.
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        absolute = absolute if absolute.is_relative_to(self.root) else path.resolve()
        if absolute.is_relative_to(self.worktree) or not absolute.is_relative_to(self.root):
            return absolute
        return self.worktree / absolute.relative_to(self.root)

    def here(self, path: Path) -> Path:
        """Return the corresponding path in the repository of a path in the worktree; another path unchanged."""
        return self.root / path.relative_to(self.worktree) if path.is_relative_to(self.worktree) else path

    def check(self, used: Iterable[Path]) -> None:
        """Check that the content of files is there."""
        for path in used if self.gaps else ():
            if path.is_relative_to(self.worktree):
                name = path.relative_to(self.worktree)
                for place in (name, *name.parents):
                    if place.as_posix() in self.gaps:
                        raise ControlError(self.gaps[place.as_posix()])


@dataclass(frozen=True)
class BaseCommit:
    """A commit whose files were copied before user code ran.

    Attributes:
        clone: the user's repository.
        folder: contains a repository with the files of the commit, its checkouts and the home of their user.
        note: what a comparison with the commit leaves out; empty if nothing.
        gaps: as in ``Checkout``.
        apart: the user of the programs in the folder; ``None`` for the user of all user code.
    """

    clone: Clone
    commit: str
    folder: Path
    note: str = ""
    gaps: Mapping[str, str] = field(default_factory=dict)
    apart: Apart | None = None

    def check_out(self, name: str) -> Checkout:
        """Write the files into a new directory of the folder."""
        worktree = self.folder / name
        try:
            shutil.copytree(self.folder / _REPOSITORY / ".git", worktree / ".git", symlinks=True)
            if self.apart is not None:
                change_owner_of(worktree, Owner(self.apart.owner.uid, self.apart.owner.gid))
        except OSError as error:
            raise ControlError(f"the files of commit {self.commit[:12]} cannot be copied: {error}") from None
        apart = self.apart and replace(self.apart, directory=worktree)
        with confined(apart=apart):
            git(worktree, "checkout-index", "--all", "--force", "--quiet")
        return Checkout(self.clone.root, worktree, self.gaps, apart)


@contextmanager
def base_commit(here: Path, host: ControlHost, baseline: str | None) -> Iterator[BaseCommit]:
    """Yield the base commit of what is checked out; its files exist until the end of the block.

    User code can change the repository, so the block begins before any of it runs.

    Args:
        here: a directory in the repository.
        baseline: the commit that the baseline evaluated; ``None`` if it is unknown.
    """
    clone = Clone.find(here)
    commit, note = control_commit(host, clone, baseline)
    with copied_commit(clone, host.remote, commit, note) as base:
        yield base


@contextmanager
def copied_commit(clone: Clone, remote: Remote | None, commit: str, note: str = "") -> Iterator[BaseCommit]:
    """Copy a commit of a clone for the duration of the block; what the clone lacks is fetched."""
    folder = Path(tempfile.mkdtemp(prefix="agenteval-control-")).resolve()
    repository = folder / _REPOSITORY
    try:
        repository.mkdir()
        apart = _separate_user(folder)
        with confined(apart=apart):
            _take_objects(clone, remote, commit, repository)
            gaps = dict(_missing_submodules(clone, repository, commit))
            gaps |= _converted(clone, repository)
        # Files are written as they are in the commit: without filters, and without other line ends or encodings.
        _write(repository, "info/attributes", "* -text -filter -ident -working-tree-encoding\n")
        with also_inside(folder):
            yield BaseCommit(clone, commit, folder, note, gaps, apart)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _separate_user(folder: Path) -> Apart | None:
    owner = confinement().owner
    if owner is None:
        return None
    folder.chmod(0o755)
    home = folder / "home"
    shared = (name for name, value in user_environment().items() if _SHARED.search(name) and value.startswith("/"))
    variables = {"HOME": str(home), **{name: str(home / name) for name in shared}}
    for made in variables.values():
        Path(made).mkdir(mode=0o700)
    uid = next(number for number in CONTROL_USERS if number != owner.uid)
    for directory in (home, folder / _REPOSITORY):
        change_owner_of(directory, Owner(uid, uid))
    return Apart(folder, Owner(uid, uid), variables)


def _take_objects(clone: Clone, remote: Remote | None, commit: str, repository: Path) -> None:
    """Make a repository with the objects of a commit: those of the clone, or else those of its remote."""
    git(repository, "init", "--quiet", "--template=", f"--object-format={'sha256' if len(commit) == 64 else 'sha1'}")
    if not _copy_objects(clone, commit, repository):
        if remote is None:
            raise ControlError(
                f"commit {commit[:12]} is not in this clone; run `git fetch --depth=1 origin {commit}` first"
            )
        try:
            fetch(repository, remote, commit)
        except ControlError as error:
            raise ControlError(
                f"commit {commit[:12]} is not in this checkout and cannot be fetched ({error}); give the job "
                "`contents: read`, or set `fetch-depth: 0` of actions/checkout"
            ) from None
    _write(repository, "HEAD", f"{commit}\n")
    # Without this, git would look for the parents of the commit.
    _write(repository, "shallow", f"{commit}\n")


def _copy_objects(clone: Clone, commit: str, repository: Path) -> bool:
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(f'"{_quoted(path)}"' for path in clone.objects())}
    every = ("rev-list", "--objects", "--no-walk")
    place = repository / ".git"
    try:
        wanted = git(repository, *every, "--no-object-names", commit, variables=variables)
        packed = git(
            repository, "pack-objects", "--quiet", str(place / "pack"), stdin=f"{wanted}\n", variables=variables
        )
        name = f"pack-{packed}"
        # The id of an object in the clone is what its file claims. The new index has the ids of the contents, and
        # the commit is complete only if they are the same.
        git(repository, "index-pack", str(place / f"{name}.pack"))
        for suffix in (".pack", ".idx"):
            (place / f"{name}{suffix}").rename(place / "objects" / "pack" / f"{name}{suffix}")
        git(repository, *every, "--quiet", commit)
    except ControlError:
        return False
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def _write(repository: Path, name: str, text: str) -> None:
    path = repository / ".git" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def _missing_submodules(clone: Clone, repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Fill the index with the files of a commit and its submodules; yield the path of each missing one, and why."""
    git(repository, "read-tree", commit)
    waiting = [("", commit)]
    while waiting:
        folder, of = waiting.pop()
        for name, pinned in submodules(repository, of):
            path = folder + name
            if not (clone.root / path / ".git").exists():
                continue
            if not _copy_objects(clone, pinned, repository):
                yield (
                    path,
                    f"commit {pinned[:12]} of the submodule {_shown(path)} is not in this clone; fetch it before "
                    "this step",
                )
                continue
            git(repository, "update-index", "--force-remove", "--", path)
            git(repository, "read-tree", f"--prefix={path}/", pinned)
            waiting.append((f"{path}/", pinned))


def _converted(clone: Clone, repository: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that a filter has converted in the user's working tree: it is not run for the control."""
    blobs = _blobs(repository)
    if not any(path.rpartition("/")[2] == ".gitattributes" for path in blobs):
        return
    # Each file is listed as path, attribute and value.
    found = git(repository, "check-attr", "--cached", "--stdin", "-z", "filter", stdin="\0".join(blobs)).split("\0")
    unset = {"unspecified", "unset", "set"}
    filters = {path: name for path, name in zip(found[::3], found[2::3], strict=False) if name not in unset}
    files = [path for path in filters if (clone.root / path).is_file() and "\n" not in path]
    listed = "".join(f"{path}\n" for path in files)
    hashes = git(clone.root, "hash-object", "--no-filters", "--stdin-paths", stdin=listed).split() if files else []
    current, states = _blobs(clone.root) if filters else {}, dict(zip(files, hashes, strict=True))
    for path, name in filters.items():
        # Without the filter's program, for instance with `lfs: false`, both sides have the same unconverted file.
        if states.get(path) not in (blobs[path], current.get(path, blobs[path])):
            yield (
                path,
                f"{_shown(path)} is converted by the filter {name} of .gitattributes, and filters are not run for "
                "the control; check the repository out without it",
            )


def _blobs(repository: Path) -> dict[str, str]:
    entries = (entry.partition("\t") for entry in git(repository, "ls-files", "--stage", "-z").split("\0"))
    return {path: about.split(" ")[1] for about, _, path in entries if path and not about.startswith(SUBMODULE)}


def _shown(name: str) -> str:
    """Return the name of a file in git for messages, with a mark instead of bytes that are not UTF-8."""
    return os.fsencode(name).decode(errors="replace")
