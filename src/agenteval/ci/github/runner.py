"""Workflow commands and command files of the runner."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from agenteval.core.errors import InfrastructureError
from agenteval.core.files.writing import append_file
from agenteval.core.text.escape import workflow_data, workflow_property

# The runner shows nothing above 1,048,576 bytes.
SUMMARY_LIMIT = 1_000_000

_OUTPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOO_LARGE = (
    "> [!NOTE]\n> The evaluation report is too large for the job summary ({size:,} bytes).\n"
    "> It is in the report directory, as `summary.md`.\n"
)


def append_output(path: str | Path, name: str, value: str) -> None:
    """Append one output to the file of ``GITHUB_OUTPUT``.

    Args:
        path: the file.
        name: letters, digits, ``-`` and ``_``.
        value: any text; characters that UTF-8 cannot encode become ``?``.

    Raises:
        ValueError: the name would break the file's format.
        InfrastructureError: the file cannot be written.
    """
    if not _OUTPUT_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an output")
    delimiter = _delimiter(name + value)
    _append(Path(path), f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def append_summary(path: str | Path, markdown: str, limit: int = SUMMARY_LIMIT) -> bool:
    """Append Markdown to the file of ``GITHUB_STEP_SUMMARY``; return whether it fits.

    Args:
        path: the file; its current content counts.
        markdown: text to add. If it does not fit, a short note is added instead, if that fits.
        limit: limit of the file size in bytes.

    Raises:
        InfrastructureError: the file cannot be read or written.
    """
    file = Path(path)
    used = _size(file)
    # A heading or table must start on a new line.
    start = "\n" if used else ""
    text = f"{start}{markdown}\n"
    size = len(_encoded(text))
    if used + size <= limit:
        _append(file, text)
        return True
    note = start + _TOO_LARGE.format(size=size)
    if used + len(_encoded(note)) <= limit:
        _append(file, note)
    return False


def summary_room(path: str | Path, limit: int = SUMMARY_LIMIT) -> int:
    """Return the bytes that `append_summary` can still add; negative above the limit.

    Raises:
        InfrastructureError: the file cannot be read.
    """
    used = _size(Path(path))
    return limit - used - (len("\n\n") if used else len("\n"))


def annotation(
    level: Literal["error", "warning", "notice"],
    message: str,
    *,
    file: str | None = None,
    line: int | None = None,
    title: str | None = None,
) -> str:
    """Return the command that shows a message, optionally at a place in a file."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    properties = ",".join(f"{key}={workflow_property(text)}" for key, text in places.items() if text)
    return f"::{level}{' ' if properties else ''}{properties}::{workflow_data(message)}"


def mask(value: str) -> str:
    """Return the commands that mask a secret; empty for white space.

    A secret of several lines is masked as a whole and line by line, because the runner searches the log by line.
    """
    parts = dict.fromkeys([value, *value.splitlines()])
    return "\n".join(f"::add-mask::{workflow_data(part)}" for part in parts if part.strip())


@contextmanager
def stop_commands(stream: TextIO | None = None) -> Iterator[None]:
    """Disable workflow commands inside the block, for printing untrusted text.

    Args:
        stream: output of the text; default: standard output.
    """
    out = sys.stdout if stream is None else stream
    token = secrets.token_hex(16)
    _say(out, f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        # A command must start a line, and the text may not end with a line end.
        _say(out, f"\n::{token}::\n")


def _say(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()


def _delimiter(text: str) -> str:
    while (candidate := f"ghadelimiter_{secrets.token_hex(16)}") in text:
        pass
    return candidate


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.exists() else 0
    except OSError as error:
        raise InfrastructureError(f"cannot read {file}: {error.strerror or error}") from error


def _append(file: Path, text: str) -> None:
    # Write bytes, because text mode would change line ends inside a value.
    try:
        append_file(file, _encoded(text))
    except OSError as error:
        raise InfrastructureError(f"cannot write to {file}: {error.strerror or error}") from error
