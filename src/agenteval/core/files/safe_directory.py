"""A directory for temporary files in which only root changes what is root's."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from agenteval.core.errors import InfrastructureError

# Not from the environment: the job could name a directory that user code can rename.
_TEMPORARY = tuple(map(Path, ("/var/tmp", "/tmp", "/run")))  # noqa: S108 - checked before use


def safe_directory() -> Path:
    """Return a directory in which no other user can rename the folders of root.

    Raises:
        InfrastructureError: no such directory exists.
    """
    for path in _TEMPORARY:
        with contextlib.suppress(OSError):
            found = path.lstat()
            others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            is_safe = stat.S_ISDIR(found.st_mode) and found.st_uid == 0
            if is_safe and (not others_write or found.st_mode & stat.S_ISVTX):
                return path
    raise InfrastructureError(
        f"no directory for private files; one of {', '.join(map(str, _TEMPORARY))} must be root's"
    )
