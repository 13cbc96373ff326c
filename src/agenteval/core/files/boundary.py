"""The directories that agenteval may read from and write to, and the user to whom they belong."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class FileOwner:
    """A user and group to whom files belong."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Boundary:
    """The limits of all file access.

    Attributes:
        roots: directories that contain every file that others name or that is written; empty for everywhere.
        owner: the user of the workspace; folders that agenteval makes are given to this user, and folders of other
            users are refused. ``None`` for the current user, without that check.
    """

    roots: tuple[Path, ...] = ()
    owner: FileOwner | None = None

    def contains(self, path: Path) -> bool:
        """Return whether a path without links is inside."""
        return not self.roots or any(path.is_relative_to(root) for root in self.roots)


# Of the whole process, because files are also read in threads, which do not inherit context variables.
_in_force = Boundary()


def boundary() -> Boundary:
    """Return the limits in force."""
    return _in_force


@contextmanager
def bounded(roots: Sequence[Path], owner: FileOwner | None) -> Iterator[None]:
    """Limit file access of the process inside the block; see ``Boundary``."""
    with _changed(Boundary(tuple(root.resolve() for root in roots), owner)):
        yield


@contextmanager
def also_inside(root: Path) -> Iterator[None]:
    """Allow files of another directory inside the block, if there are limits.

    A directory whose path is inside already adds nothing: there, a link must not lead out.
    """
    now, named = _in_force, _absolute(root)
    with _changed(
        now if now.contains(named) else replace(now, roots=tuple(dict.fromkeys((*now.roots, named, root.resolve()))))
    ):
        yield


def outside_problem(path: Path) -> str:
    """Return why a path may not be written to; empty if it is inside.

    Args:
        path: the path as it was named. Links on it are not followed, because writing refuses them.
    """
    if _in_force.contains(_absolute(path)):
        return ""
    allowed = " and ".join(map(str, _in_force.roots[:2]))
    return f"{path} is outside of the directories that may be written ({allowed}); name a path in the workspace"


def outside_reading(path: Path) -> str:
    """Return why a file may not be read; empty if it is inside.

    Args:
        path: the path without links.
    """
    if _in_force.contains(path):
        return ""
    allowed = " and ".join(map(str, _in_force.roots))
    return f"it is outside of the directories that may be read ({allowed})"


def _absolute(path: Path) -> Path:
    # Not resolved, because links must be seen.
    return Path(os.path.abspath(path))  # noqa: PTH100


@contextmanager
def _changed(new: Boundary) -> Iterator[None]:
    global _in_force  # noqa: PLW0603 - one limit for all threads
    before, _in_force = _in_force, new
    try:
        yield
    finally:
        _in_force = before


def base_of(path: Path) -> Path:
    """Return the nearest directory above an absolute path whose own place is trusted.

    Below it, every folder is checked for links. With a boundary, this is the root that contains the path, which must
    be inside. Without one, it is the repository or working directory that contains the path, else the path itself:
    its user named it.
    """
    roots = _in_force.roots
    if roots:
        inside = [root for root in roots if path.is_relative_to(root)]
        return max(inside, key=lambda root: len(root.parts))
    here = Path.cwd()
    project = next((folder for folder in (here, *here.parents) if os.path.lexists(folder / ".git")), here)
    return project if path.is_relative_to(project) else path
