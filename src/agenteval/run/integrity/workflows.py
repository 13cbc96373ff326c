"""Finds changes of the workflows that start agenteval: nothing in a run can enforce what these say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval.core.files.reading import read_regular
from agenteval.results.integrity import Difference
from agenteval.run.confirm.control import Paths

_FOLDER = Path(".github", "workflows")
_SUFFIXES = frozenset({".yml", ".yaml"})
_NAME = b"agenteval"
_LARGEST = 2**20


def workflow_differences(paths: Paths) -> Iterator[Difference]:
    """Yield the workflows that name agenteval and differ from those of the base commit.

    Args:
        paths: the repository, and the base commit's files.
    """
    here, there = _workflows(paths.root / _FOLDER), _workflows(paths.worktree / _FOLDER)
    for name in sorted(here.keys() | there.keys()):
        old, new = there.get(name), here.get(name)
        if old != new and any(_NAME in text for text in (old, new) if text is not None):
            before, after = ("there" if text is not None else None for text in (old, new))
            yield Difference(
                kind="workflow", setting=f"{_FOLDER.as_posix()}/{name}", before=before, after=after, effect="listed"
            )


def _workflows(folder: Path) -> dict[str, bytes]:
    """Return the workflows in a folder by name; one that cannot be read counts as changed."""
    found: dict[str, bytes] = {}
    try:
        files = [path for path in folder.iterdir() if path.suffix in _SUFFIXES]
    except OSError:
        return {}
    for path in files:
        try:
            found[path.name] = read_regular(path, limit=_LARGEST)
        except (OSError, ValueError):
            found[path.name] = str(path).encode() + _NAME
    return found
