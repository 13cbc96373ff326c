"""Finds credentials that ``actions/checkout`` or ``git clone`` left in configurations of git."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from agenteval.core.process.confinement import Owner

# Bytes of a configuration that are searched, and the most configurations.
_SEARCHED = 100_000
_MOST = 1000
_CONFIGS = (
    *("config", "config.worktree", "modules/*/config", "modules/*/*/config", "modules/*/modules/*/config"),
    "worktrees/*/config.worktree",
)
# Repositories are checked out in the workspace or in folders of it.
_REPOSITORIES = (".git", "*/.git", "*/*/.git")
_TOKEN = re.compile(rb"authorization\s*:\s*\S|://[^/\s@:]*:[^/\s@]+@", re.IGNORECASE)
_INCLUDED = re.compile(rb'^\s*path\s*=\s*"?([^"\r\n]+?)"?\s*$', re.MULTILINE | re.IGNORECASE)


def files_with_tokens(workspace: Path, owner: Owner) -> list[Path]:
    """Return the configurations of git that contain a token and that a user can read.

    Args:
        workspace: contains the checkouts; the files that their configurations include are searched too.
        owner: the user.
    """
    return sorted({path for path in islice(_configurations(workspace), _MOST) if _TOKEN.search(_text(path, owner))})


def allows(found: os.stat_result, owner: Owner, user: int, group: int, others: int) -> bool:
    """Return whether a user has a permission, by the bits for the owner of a file, its group, and others."""
    bits = user if found.st_uid == owner.uid else group if found.st_gid == owner.gid else others
    return bool(found.st_mode & bits)


def _configurations(workspace: Path) -> Iterator[Path]:
    for repository in _REPOSITORIES:
        for folder in workspace.glob(repository):
            for name in _CONFIGS:
                for path in folder.glob(name):
                    yield path
                    for included in _INCLUDED.findall(_text(path)):
                        yield path.parent / os.fsdecode(included)


def _text(path: Path, owner: Owner | None = None) -> bytes:
    """Return the beginning of a regular file; nothing if it cannot be read, or not by the user."""
    with contextlib.suppress(OSError, ValueError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            if stat.S_ISREG(found.st_mode) and (
                owner is None or allows(found, owner, stat.S_IRUSR, stat.S_IRGRP, stat.S_IROTH)
            ):
                return file.read(_SEARCHED)
    return b""
