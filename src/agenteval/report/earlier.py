"""Removes the reports of an earlier run: none may be taken for one of a later run that was killed."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from agenteval.core.errors import InfrastructureError
from agenteval.core.files.writing import remove_regular_file
from agenteval.report.registry import FILES
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


def report_files(directory: Path) -> list[Path]:
    """Return the places of the reports of a run in a directory."""
    return [directory / name for name in (RESULTS_FILE, *FILES)]


def remove_reports(directory: Path) -> None:
    """Remove the reports of an earlier run from a directory.

    Files of reporters of other packages stay, and analyses: FluxLoop's recordings have the same names.

    Raises:
        InfrastructureError: one is a link or another thing that cannot be replaced, or cannot be removed.
    """
    for name in (RESULTS_FILE, *FILES, *_temporary(directory)):
        remove_regular_file(directory, name)


def remove_rendered(directory: Path) -> None:
    """Remove the reports that are rendered from results; what cannot be removed is left to the writing of reports."""
    for name in (*FILES, *_temporary(directory)):
        with contextlib.suppress(InfrastructureError):
            remove_regular_file(directory, name)


def _temporary(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir() if _TEMPORARY.fullmatch(path.name))
    except OSError:
        # It does not exist, or is no folder.
        return []
