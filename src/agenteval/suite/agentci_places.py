"""The folders of AgentCI's files."""

from __future__ import annotations

import os
from pathlib import Path

#: Names another folder than ``.agentci``, as for AgentCI's own client.
BASE_PATH = "AGENTCI_CLIENT_BASE_PATH"
_DEFAULT = ".agentci"
_EVALS = "evals"


def folder() -> str:
    """Return AgentCI's folder, relative to the repository unless it is absolute."""
    return os.path.normpath(os.environ.get(BASE_PATH) or _DEFAULT)


def patterns() -> tuple[str, ...]:
    """Return where suites are searched for."""
    return (f"{folder()}/{_EVALS}/*.toml",)


def frameworks(root: Path) -> Path:
    """Return the folder of the descriptions of frameworks.

    Args:
        root: the repository.
    """
    return root / folder() / "frameworks"


def base_directory(path: Path) -> Path:
    """Return the folder for imports: the one that contains AgentCI's folder, else the suite's folder."""
    directory = path.resolve().parent
    for name in (folder(), _DEFAULT):
        parts = (*Path(name).parts, _EVALS)
        if directory.parts[-len(parts) :] == parts and not Path(name).is_absolute():
            return directory.parents[len(parts) - 1]
    return directory
