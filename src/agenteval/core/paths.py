"""Forms of paths in messages and reports."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from agenteval.core.errors import GONE, InfrastructureError

# Limits of Linux, in bytes.
_LONGEST_PATH = 4095
_LONGEST_NAME = 255


def is_too_long(path: str) -> bool:
    """Return whether no file can have a path."""
    encoded = path.encode("utf-8", "surrogatepass")
    return len(encoded) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in encoded.split(b"/"))


def display_path(path: Path) -> str:
    """Return the path of a file for messages and case ids, with forward slashes.

    Relative to the repository of the working directory, so that the path is the same on every machine, and so that
    files of submodules differ; a file outside it relative to its repository, else to the working directory; else
    absolute.
    """
    absolute = real_path(path)
    here = working_directory()
    root = repository_of(here)
    if root is None or not absolute.is_relative_to(root):
        root = repository_of(absolute.parent) or here
    shown = absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()
    # Names of files need not be UTF-8, and results are.
    return shown.encode("utf-8", "backslashreplace").decode()


def real_path(path: Path) -> Path:
    """Return a path without links; a part that cannot be resolved, such as a loop of links, stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        # It contains a null character, so no file has it.
        return path


def repository_of(directory: Path) -> Path | None:
    """Return the root of the repository that contains a directory; ``None`` if none does."""
    return next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), None)


def working_directory() -> Path:
    """Return the working directory.

    Raises:
        InfrastructureError: something removed it.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InfrastructureError(GONE) from None


def working_directory_beside(directory: Path, file: str) -> Path | None:
    """Return the working directory among the files of a checkout.

    Files of the base commit are in another checkout than the working directory, whose files belong to the change.

    Args:
        directory: directory of a file of the checkout.
        file: the file's name in messages, relative to the root of the checkout.

    Returns:
        ``None`` if the file has no such name, because it is not in a repository.
    """
    name = PurePath(file)
    folders = name.parent.parts
    if name.is_absolute() or directory.parts[len(directory.parts) - len(folders) :] != folders:
        return None
    root = directory.parents[len(folders) - 1] if folders else directory
    here = working_directory().resolve()
    repository = repository_of(here) or here
    return root / here.relative_to(repository)


def place_of(path: str) -> Path | None:
    """Return the file of a suite's path in results if it is on this machine; reverses ``display_path``."""
    here = working_directory()
    root = repository_of(here) or here
    try:
        file = real_path(root / path)
        inside = file.is_relative_to(real_path(root)) or Path(path).is_absolute()
        return file if inside and file.is_file() else None
    except (OSError, ValueError):
        # No file can have this path.
        return None
