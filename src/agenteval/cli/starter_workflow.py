"""The workflow of ``agenteval init``: at the root of the repository, for a suite in any directory of it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import LARGEST_TEXT, read_regular
from agenteval.core.paths import repository_of
from agenteval.core.process.run_confined import run_confined

_TEMPLATE = Path(__file__).parent / "starters" / "workflow.yml"
_FOLDER = ".github/workflows"
_BRANCH = "main"
_REPORT = "agenteval-report/"
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_DIRECTORY = re.compile(r"(?m)^ +working-directory: (.+)$")
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
    """Return the path of the workflow relative to the root; each directory has another one.

    The workflow of another directory can have the plain name: that of ``a-b`` has the one of ``a/b``.
    """
    if not place.path:
        return f"{_FOLDER}/agenteval.yml"
    label = re.sub(r"[^\w.-]+", "-", place.path).strip("-.")
    plain = f"{_FOLDER}/agenteval-{label}.yml"
    if label and not _is_of_another_directory(place.root / plain, place):
        return plain
    return f"{_FOLDER}/{'-'.join(filter(None, ('agenteval', label, _hash(place.path))))}.yml"


def _is_of_another_directory(file: Path, place: SuitePlace) -> bool:
    """Return whether a file is a workflow that this command has written for another directory."""
    try:
        text = read_regular(file, limit=LARGEST_TEXT).decode("utf-8", "replace")
    except OSError:
        return False
    found = _DIRECTORY.search(text)
    return found is not None and found[1] != _scalar(place.path)


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def workflow(place: SuitePlace) -> bytes:
    """Return the text of the workflow.

    Raises:
        ConfigError: GitHub would read the path of the directory as something else.
    """
    if "${{" in place.path or "\\" in place.path or not place.path.isprintable() or place.path != place.path.strip():
        why = "it contains ${{, a backslash, a control character, or a space at an end"
        message = f"no workflow can name the directory {place.path!r}: {why}; rename it"
        raise ConfigError(Problem(f"{message}; nothing was written", kind=Kind.FILE))
    text = _TEMPLATE.read_text(encoding="utf-8").replace(f"branches: [{_BRANCH}]", f"branches: [{_branch(place)}]")
    if place.path:
        step = "        with:\n          runs:"
        folder = f"        with:\n          working-directory: {_scalar(place.path)}\n          runs:"
        text = text.replace("name: agenteval\n", f"name: {_scalar(f'agenteval {place.path}')}\n", 1)
        text = text.replace(step, folder).replace(
            f"path: {_REPORT}", f"path: {_scalar(_pattern(f'{place.path}/{_REPORT}'))}"
        )
    return text.encode("utf-8", "replace")


def _branch(place: SuitePlace) -> str:
    """Return the default branch of the repository: that of its origin, else the current one if it is ``master``."""
    if not place.is_in_repository:
        return _BRANCH
    remote = _reference(place.root, "refs/remotes/origin/HEAD").removeprefix("origin/")
    branch = remote or ("master" if _reference(place.root, "HEAD") == "master" else _BRANCH)
    # Of the characters with a meaning here, the name of a branch can have these.
    return _scalar(re.sub(r"[+!]", r"\\\g<0>", branch))


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


def _pattern(path: str) -> str:
    """Return the pattern of actions/upload-artifact that matches one path."""
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", path)
    return f"./{escaped}" if escaped.startswith(("!", "#", "~")) else escaped


def _scalar(text: str) -> str:
    """Return a text as YAML."""
    return text if all(map(_PLAIN.fullmatch, text.split(" "))) else json.dumps(text, ensure_ascii=False)
