"""Finds changes of the workflows that start agenteval: nothing in a run can enforce what these say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from agenteval.core.files.reading import read_regular
from agenteval.results.integrity import Difference
from agenteval.run.confirm.control import Paths

_FOLDER = Path(".github", "workflows")
_SUFFIXES = frozenset({".yml", ".yaml"})
_ACTIONS = ("action.yml", "action.yaml")
_NAME = b"agenteval"
_LARGEST = 2**20
# A workflow or an action of the same repository.
_USES = re.compile(rb"""\buses["']?\s*:\s*["']?\./([^\s"'@,}#]+)""")

# Content by path; a file that cannot be read has its path as content, so that it counts as changed and as relevant.
_Files = Mapping[str, bytes]


def workflow_differences(paths: Paths) -> Iterator[Difference]:
    """Yield the files that differ from the base commit and are part of a workflow that starts agenteval.

    These are the workflow, and the workflows and actions of the repository that it uses.

    Args:
        paths: the repository, and the base commit's files.
    """
    here, there = _read(paths.root), _read(paths.worktree)
    for name in sorted(_evaluating(here) | _evaluating(there)):
        old, new = there.get(name), here.get(name)
        if old != new:
            before, after = ("there" if text is not None else None for text in (old, new))
            yield Difference(kind="workflow", setting=name, before=before, after=after, effect="listed")


def _evaluating(files: _Files) -> set[str]:
    """Return the files of the workflows that name agenteval, or use something that does."""
    found: set[str] = set()
    for name in (name for name in files if PurePosixPath(name).parent == PurePosixPath(_FOLDER.as_posix())):
        used = _used(name, files)
        if any(_NAME in files[part] for part in used):
            found |= used
    return found


def _used(name: str, files: _Files) -> set[str]:
    """Return a file with everything that it uses."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        part = waiting.pop()
        if part in files and part not in found:
            found.add(part)
            waiting += _names_in(files[part])
    return found


def _names_in(text: bytes) -> Iterator[str]:
    """Yield the files of the repository that a workflow or an action may use."""
    for used in _USES.findall(text):
        path = PurePosixPath(used.decode("utf-8", "replace"))
        yield from (str(path), *(str(path / name) for name in _ACTIONS))


def _read(root: Path) -> _Files:
    """Return the workflows of a repository, and the workflows and actions that they use."""
    found: dict[str, bytes] = {}
    try:
        waiting = [path.relative_to(root).as_posix() for path in (root / _FOLDER).iterdir()]
    except OSError:
        return {}
    while waiting:
        name = waiting.pop()
        if name in found or PurePosixPath(name).suffix not in _SUFFIXES or ".." in PurePosixPath(name).parts:
            continue
        content = _content(root / name)
        if content is not None:
            found[name] = content
            waiting += _names_in(content)
    return found


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, limit=_LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return str(path).encode() + _NAME
