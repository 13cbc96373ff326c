"""The key of an attempt: a hash of everything in the working tree that can change the verdict."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from agenteval.core.files import LARGEST_RECORDING, MOST_ENTRIES, open_regular
from agenteval.run.git import ControlError, git
from agenteval.run.journal import JOURNAL_FILE

_SUBMODULE = "160000"
# Few files cannot change a verdict: prompts and knowledge of agents are often in files like ``*.md`` or in ``docs``.
_IGNORED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
_LONGEST_PATH = 4096


def attempt_key(root: Path, conditions: object) -> str:
    """Return the key of the files that are checked out; it runs no code of the user.

    The files are those that git knows and the new ones that it does not ignore, as they are in the working tree, also
    in repositories inside of it. Report directories of agenteval do not count.

    Args:
        conditions: what else decides the verdict, as JSON.

    Raises:
        ControlError: git fails, or a file cannot be read.
    """
    left_out = [_without(pattern) for pattern in _IGNORED]
    return _digest(_states(root, left_out, _state), conditions)


def _digest(states: Iterable[tuple[bytes, str]], conditions: object) -> str:
    digest = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode())
    for name, state in sorted(states):
        digest.update(b"\0%b\0%b" % (name, state.encode()))
    return digest.hexdigest()


def _without(pattern: str) -> str:
    """Return the pathspec that leaves out a pattern; without a slash it matches files in every folder."""
    return f":(top,exclude,glob){pattern if '/' in pattern else f'**/{pattern}'}"


def _states(
    root: Path, left_out: Sequence[str], state_of: Callable[[Path], str], folder: str = ""
) -> Iterator[tuple[bytes, str]]:
    """Yield the name of each file in a repository with a text that changes with its content."""
    if len(folder) > _LONGEST_PATH:
        raise ControlError(f"{root} is nested too deeply")
    paths = ("--", ":(top)", *left_out) if left_out else ()
    tracked = dict(_tracked(git(root, "ls-files", "--stage", "-z", *paths)))
    new = _without_reports(git(root, "ls-files", "--others", "--exclude-standard", "-z", *paths))
    names = sorted({*tracked, *new})
    if len(names) > MOST_ENTRIES:
        raise ControlError(f"{root} has more than {MOST_ENTRIES:,} files")
    for name in names:
        shown = os.fsencode(folder + name)
        pinned = tracked.get(name)
        # A repository that is no submodule is listed as a folder, with a slash.
        if name.endswith("/") or (pinned and (root / name / ".git").exists()):
            yield from _states(root / name, (), state_of, f"{folder}{name.rstrip('/')}/")
        elif state := pinned or state_of(root / name):
            yield shown, state


def _tracked(listed: str) -> Iterator[tuple[str, str | None]]:
    """Yield the path of each entry of an index; for a submodule with its commit."""
    for entry in listed.split("\0"):
        about, _, path = entry.partition("\t")
        if path:
            mode, blob, _ = about.split(" ")
            yield path, blob if mode == _SUBMODULE else None


def _without_reports(listed: str) -> list[str]:
    names = [name for name in listed.split("\0") if name]
    reports = {os.path.dirname(name) for name in names if os.path.basename(name) == JOURNAL_FILE}  # noqa: PTH119, PTH120
    return [name for name in names if os.path.dirname(name) not in reports]  # noqa: PTH120


def _state(path: Path) -> str:
    """Return kind, mode and hash of a file; empty if it was removed.

    Raises:
        ControlError: it cannot be read.
    """
    try:
        if path.is_symlink():
            return f"link {hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
        with open_regular(path, limit=LARGEST_RECORDING) as file:
            mode = "program" if os.fstat(file.fileno()).st_mode & 0o100 else "file"
            return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        name = os.fsencode(path).decode(errors="replace")
        raise ControlError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
