"""Files of the base commit of a pull request: from GitHub, else from the checkout."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.contents import MAX_BYTES, read_file
from agenteval.core.errors import AgentEvalError
from agenteval.core.paths import working_directory
from agenteval.core.process.run_confined import run_confined


@dataclass
class BaseFiles:
    """The files of the commit that a pull request is compared with; each is requested at most once.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        repository: ``owner/name``; ``None`` if unknown.
        commit: returns the SHA of the base commit; ``None`` if the event does not name it.
        workspace: directory of the checkout.
    """

    client: Callable[[], Client]
    repository: str | None
    commit: Callable[[], str | None]
    workspace: Path
    _read: dict[Path, str | AgentEvalError] = field(default_factory=dict)

    def read(self, path: Path) -> str:
        """Return the text of a file, as of ``BaseCommit.read``."""
        known = self._read.get(path)
        if known is None:
            try:
                known = self._text(path.resolve())
            except AgentEvalError as error:
                known = error
            self._read[path] = known
        if isinstance(known, AgentEvalError):
            raise known
        return known

    def _text(self, path: Path) -> str:
        commit = self.commit()
        if self.repository is None or commit is None:
            raise AgentEvalError("the event does not name the base commit")
        root, here = _repository(path.parent), _repository(working_directory().resolve())
        if root is None:
            raise AgentEvalError(f"{path} is not in a checkout of the repository")
        outer = _repository(root.parent)
        if here not in {None, root} or (outer is not None and outer.is_relative_to(self.workspace)):
            # A submodule, or the checkout of another repository: its files are not those of the event's repository.
            raise AgentEvalError(f"{path} is in another repository than the pull request")
        name = path.relative_to(root).as_posix()
        try:
            return read_file(self.client(), self.repository, name, commit)
        except AgentEvalError as error:
            found = _in_checkout(root, commit, name)
            if found is None:
                raise AgentEvalError(str(error)) from None
            return found


def _repository(directory: Path) -> Path | None:
    """Return the root of the repository that contains a directory."""
    return next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), None)


def _in_checkout(root: Path, commit: str, name: str) -> str | None:
    """Return the file if the checkout has the commit; git runs with the rights of user code."""
    program = shutil.which("git")
    if program is None:
        return None
    # Replacement references could put another file in its place.
    command = [program, "--no-replace-objects", "cat-file", "blob", f"{commit}:{name}"]
    try:
        done = run_confined(command, root, timeout_s=10, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= MAX_BYTES else None
