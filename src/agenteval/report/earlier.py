"""Removes the reports of an earlier run: none may be taken for one of a later run that was killed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.files.writing import remove_regular_file
from agenteval.report.registry import ANALYSES, ANALYSIS_FILES, FILES
from agenteval.results.store import RESULTS_FILE

# Left behind by a process that was killed while it wrote a file; see ``core.files.writing``.
_TEMPORARY = re.compile(rf"\.({'|'.join(map(re.escape, (RESULTS_FILE, *FILES)))})\.[0-9a-f]{{16}}")


def results_identity(directory: Path) -> tuple[int, ...] | None:
    """Return what tells the results file of a directory from a later one; ``None`` without a file."""
    try:
        found = (directory / RESULTS_FILE).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def remove_reports(directory: Path) -> None:
    """Remove the reports of an earlier run from a directory; files that reporters of other packages wrote stay.

    Raises:
        InfrastructureError: one is a link or another thing that cannot be replaced, or cannot be removed.
    """
    for name in (RESULTS_FILE, *FILES, *_temporary(directory), *_analyses(directory)):
        remove_regular_file(directory, name)


def remove_rendered(directory: Path) -> None:
    """Remove the reports that are rendered from results; what cannot be removed is left to the writing of reports."""
    for name in (*FILES, *_temporary(directory)):
        with contextlib.suppress(InfrastructureError):
            remove_regular_file(directory, name)


def remove_analyses(directory: Path) -> None:
    """Remove the analyses of suites, which results do not contain, in the same way."""
    for name in _analyses(directory):
        with contextlib.suppress(InfrastructureError):
            remove_regular_file(directory, name)


def _temporary(directory: Path) -> Iterator[str]:
    for name in _names(directory):
        if _TEMPORARY.fullmatch(name):
            yield name


def _analyses(directory: Path) -> list[str]:
    """Return the files of analyses; each analysis is in a folder by itself if there are several."""
    top = directory / ANALYSES
    found: list[str] = []
    for folder in (top, *(top / name for name in _names(top))):
        # A user's folder can have the same name.
        if not folder.is_symlink() and set(ANALYSIS_FILES[:2]) <= (names := set(_names(folder))):
            found += [
                (folder / name).relative_to(directory).as_posix() for name in names.intersection(ANALYSIS_FILES)
            ]
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        # It does not exist, or is no folder.
        return []
