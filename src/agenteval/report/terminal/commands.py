"""The commands to go on with after a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.masking import mask

_PAGE = "report.html"
_DIRECTORY = Path("agenteval-report")
# These choose the cases themselves, or end an earlier run.
_CHOOSING = {"--failed", "--resume"}


@dataclass(frozen=True, slots=True)
class NextCommands:
    """How to go on; empty texts are left out.

    Attributes:
        again: the command that runs the cases again that did not pass.
        look: the command that shows the report.
        page: the path of the report.
    """

    again: str = ""
    look: str = ""
    page: str = ""


def next_commands(directory: Path, words: Sequence[str] = ()) -> NextCommands:
    """Return the commands after the reports of a directory were written, without secrets.

    Args:
        directory: the report directory.
        words: the arguments of the command that ran; empty if it ran nothing.
    """
    page = directory / _PAGE
    here = "" if directory == _DIRECTORY else f" {shlex.quote(mask(str(directory)))}"
    return NextCommands(_again(words), f"agenteval open{here}", mask(str(page)))


def _again(words: Sequence[str]) -> str:
    """Return the same command for the cases that did not pass."""
    if not words:
        return ""
    kept = [word for word in words if word not in _CHOOSING and not word.startswith("--failed-in=")]
    if "--failed-in" in kept:
        place = kept.index("--failed-in")
        del kept[place : place + 2]
    return shlex.join(["agenteval", *map(mask, kept), "--failed"])
