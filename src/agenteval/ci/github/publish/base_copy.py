"""Copies the rules of a commit: the configurations of a run's suites, and the templates that they name.

The second stage has no checkout. It judges results that a pull request may have forged, so it asks GitHub for the
rules of the base commit, which the author of the pull request does not control.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from agenteval.ci.github.api.client import Client, GithubError
from agenteval.ci.github.api.contents import read_file
from agenteval.core.documents.yaml.read import parse_yaml
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files.boundary import also_inside
from agenteval.core.files.safe_directory import safe_directory
from agenteval.core.paths import is_too_long
from agenteval.run.config.model import CONFIG_FILE

# The other keys are not needed for a decision, and may name variables that only the first stage has.
_KEYS = ("gate", "templates")
_MOST_FILES = 100
_NOT_FOUND = 404
# A text in quotes in a template may be the name of a file to include.
_INCLUDED = re.compile(r"""["']([\w./-]{1,200}\.\w{1,10})["']""")


@dataclass(frozen=True)
class BaseCommitFiles:
    """The files of a commit, from GitHub.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        commit: SHA of the commit.
    """

    client: Client
    repository: str
    commit: str


@contextmanager
def base_copy(files: BaseCommitFiles, suites: Iterable[str], here: str, named: Iterable[str]) -> Iterator[Path]:
    """Change to a directory with the rules of a commit, inside the block; yield the directory.

    Args:
        files: the files of the commit.
        suites: paths of the suites in the repository, which may be forged.
        here: the working directory in the repository.
        named: paths of a configuration and of templates that the workflow names, relative to the working directory.

    Raises:
        ConfigError: a configuration is not YAML, or too many files are needed.
        GithubError: GitHub refused, failed or could not be reached.
    """
    with (
        tempfile.TemporaryDirectory(prefix="agenteval-base-", dir=safe_directory()) as folder,
        also_inside(Path(folder)),
    ):
        root = Path(folder).resolve()
        # Marks the root of the repository.
        (root / ".git").mkdir()
        copy = _Copy(files, root)
        working = _inside(here or ".")
        (root / working).mkdir(parents=True, exist_ok=True)
        known = [path for path in map(_or_nothing, suites) if path is not None]
        for directory in dict.fromkeys(parent for path in (working / "_", *known) for parent in path.parents):
            copy.configuration(directory / CONFIG_FILE)
        for path in known:
            # Only the place of a suite counts.
            copy.place(path)
        for name in named:
            copy.named(_inside(str(working / name)))
        with contextlib.chdir(root / working):
            yield root


@dataclass
class _Copy:
    files: BaseCommitFiles
    root: Path
    _asked: set[PurePosixPath] = field(default_factory=set)

    def configuration(self, path: PurePosixPath) -> None:
        """Copy the rules in a configuration, with the templates that it names, if it exists."""
        text = self._text(path)
        if text is None:
            return
        # Variables are replaced when the copy is read.
        data = parse_yaml(text, str(path), self.root / path.parent, environment={}, unset=[]).data
        rules = {key: data[key] for key in _KEYS if key in data} if isinstance(data, dict) else {}
        self._write(path, yaml.safe_dump(rules, allow_unicode=True))
        templates = rules.get("templates")
        for name in templates.values() if isinstance(templates, dict) else ():
            inside = _or_nothing(str(path.parent / str(name)))
            if inside is not None:
                self.template(inside)

    def named(self, path: PurePosixPath) -> None:
        """Copy a file that the workflow names."""
        if path.suffix in {".yaml", ".yml"}:
            self.configuration(path)
        else:
            self.template(path)

    def template(self, path: PurePosixPath) -> None:
        """Copy a template and the files that it includes, as far as they exist."""
        text = self._text(path)
        if text is None:
            return
        self._write(path, text)
        for name in dict.fromkeys(_INCLUDED.findall(text)):
            inside = _or_nothing(str(path.parent / name))
            if inside is not None:
                self.template(inside)

    def place(self, path: PurePosixPath) -> None:
        """Make an empty file, unless something else has its path."""
        with contextlib.suppress(OSError):
            self._write(path, "") if not (self.root / path).exists() else None

    def _text(self, path: PurePosixPath) -> str | None:
        """Return the text of a file; ``None`` if it does not exist, or was copied already."""
        if path in self._asked:
            return None
        self._asked.add(path)
        if len(self._asked) > _MOST_FILES:
            raise ConfigError(
                Problem(f"the rules of the run consist of more than {_MOST_FILES} files", kind=Kind.GITHUB)
            )
        files = self.files
        try:
            return read_file(files.client, files.repository, str(path), files.commit)
        except GithubError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def _write(self, path: PurePosixPath, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _or_nothing(name: str) -> PurePosixPath | None:
    """Return a path in the repository; ``None`` if no file of it can have the name."""
    try:
        return _inside(name)
    except AgentEvalError:
        return None


def _inside(name: str) -> PurePosixPath:
    """Return a path in the repository, without ``..``.

    Raises:
        ConfigError: it leads out of the repository.
    """
    path = PurePosixPath(posixpath.normpath(name))
    is_plain = not path.is_absolute() and not {"..", ".git"} & set(path.parts) and name.isprintable()
    if not is_plain or is_too_long(name):
        raise ConfigError(Problem(f"{name[:200]!r} is not a path in the repository", kind=Kind.GITHUB))
    return path
