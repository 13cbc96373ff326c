"""Changes the owner of a directory with everything in it, without following links."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from agenteval.core.files.boundary import FileOwner

# Levels of folders that change their owner; the walk opens all folders on its way, and only user code nests deeper.
_DEEPEST = 100


def change_owner_of(directory: Path, owner: FileOwner, of: int | None = None) -> None:
    """Give a directory and everything in it to a user; see ``change_owner``.

    Raises:
        OSError: it is a link or no directory, or its owner cannot be changed.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        change_owner(opened, owner, of)
    finally:
        os.close(opened)


def change_owner(directory: int, owner: FileOwner, of: int | None = None) -> None:
    """Give an open directory and everything in it to a user; links themselves, not what they name.

    A file of root with several names stays root's, because another name can be anywhere.

    Args:
        directory: the descriptor of the directory.
        owner: the new user; a group of -1 keeps the groups.
        of: change only what belongs to this user; ``None`` for everything.
    """
    if of is None or os.fstat(directory).st_uid == of:
        os.fchown(directory, owner.uid, owner.gid)
    for path, folders, names, opened in os.fwalk(dir_fd=directory):
        for name in (*folders, *names):
            with contextlib.suppress(OSError):
                found = os.stat(name, dir_fd=opened, follow_symlinks=False)
                if of in {None, found.st_uid} and (owner.uid == 0 or not _is_named_elsewhere(found)):
                    os.chown(name, owner.uid, owner.gid, dir_fd=opened, follow_symlinks=False)
        if path.count(os.sep) >= _DEEPEST:
            folders.clear()


def _is_named_elsewhere(found: os.stat_result) -> bool:
    return found.st_uid == 0 and found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)
