"""The workflow of ``agenteval init``: at the root of the repository, for a suite in any directory of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.paths import repository_of
from agenteval.core.process.run_confined import run_confined

_TEMPLATE = Path(__file__).parent / "starters" / "workflow.yml"
_FOLDER = ".github/workflows"
_BRANCH = "main"
_REPORT = "agenteval-report/"
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_GIT_TIMEOUT_S = 10


@dataclass(frozen=True)
class SuitePlace:
    """A directory with a suite, and the root of its repository.

    Attributes:
        directory: the directory, absolute and without links; it need not exist.
        root: the root of the repository; the directory itself if it is in none.
        is_in_repository: whether there is a repository.
    """

    directory: Path
    root: Path
    is_in_repository: bool

    @classmethod
    def of(cls, directory: Path) -> SuitePlace:
        """Return the place of a directory."""
        here = directory.resolve()
        try:
            root = repository_of(here)
        except OSError:
            # No directory can have this path.
            root = None
        return cls(here, root or here, root is not None)

    @property
    def path(self) -> str:
        """The directory relative to the root; empty for the root."""
        return "" if self.directory == self.root else self.directory.relative_to(self.root).as_posix()


def workflow_name(place: SuitePlace) -> str:
    """Return the path of the workflow relative to the root; each directory has another one."""
    label = re.sub(r"[^\w.-]+", "-", place.path).strip("-.")
    return f"{_FOLDER}/agenteval-{label}.yml" if label else f"{_FOLDER}/agenteval.yml"


def workflow(place: SuitePlace) -> bytes:
    """Return the text of the workflow."""
    text = _TEMPLATE.read_text(encoding="utf-8").replace(f"branches: [{_BRANCH}]", f"branches: [{_branch(place)}]")
    if place.path:
        step = "        with:\n          runs:"
        folder = f"        with:\n          working-directory: {_scalar(place.path)}\n          runs:"
        text = text.replace("name: agenteval\n", f"name: {_scalar(f'agenteval {place.path}')}\n", 1)
        text = text.replace(step, folder).replace(f"path: {_REPORT}", f"path: {_scalar(f'{place.path}/{_REPORT}')}")
    return text.encode("utf-8", "replace")


def _branch(place: SuitePlace) -> str:
    """Return the default branch of the repository: that of its origin, else the current one if it is ``master``."""
    if not place.is_in_repository:
        return _BRANCH
    remote = _reference(place.root, "refs/remotes/origin/HEAD").removeprefix("origin/")
    return _scalar(remote or ("master" if _reference(place.root, "HEAD") == "master" else _BRANCH))


def _reference(root: Path, name: str) -> str:
    """Return the short name of what a symbolic reference names; empty if git does not tell."""
    program = shutil.which("git")
    if program is None:
        return ""
    try:
        done = run_confined([program, "symbolic-ref", "--quiet", "--short", name], root, timeout_s=_GIT_TIMEOUT_S)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _scalar(text: str) -> str:
    """Return a text as YAML."""
    return text if all(map(_PLAIN.fullmatch, text.split(" "))) else json.dumps(text, ensure_ascii=False)
