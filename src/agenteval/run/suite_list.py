"""The ``list`` command: the suites of a repository."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass
from agenteval.core.secrets import redactor
from agenteval.core.text import display_path, real_path, repository_of, working_directory
from agenteval.run.resolve.configurations import Sources
from agenteval.run.resolve.suites import load_suites
from agenteval.suite.formats.registry import conventional_places, format_of, project_directory, suite_files

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class ListedSuite:
    """A suite.

    Attributes:
        id: the path with hyphens for slashes, different for each suite; for names of jobs and artifacts.
        path: the path relative to the working directory, with forward slashes, as ``agenteval run`` takes it.
        name: the name of the suite; the path without one, and if the suite has a mistake.
        format: the name of the format; ``None`` if the file has none.
        cases: the number of cases as they are written; ``None`` if the suite has a mistake.
        directory: the directory of the suite's project, without the conventional folders of the format.
    """

    id: str
    path: str
    name: str
    format: str | None
    cases: int | None
    directory: str


@dataclass(frozen=True)
class SuiteList:
    """The suites that were found, and the mistakes in them."""

    suites: Sequence[ListedSuite]
    problems: Sequence[Problem]


def list_suites(paths: Sequence[Path]) -> SuiteList:
    """Find suites.

    Args:
        paths: files, directories or patterns; if empty, all directories from the working directory down are searched.

    Returns:
        The suites in the order of their paths. A suite with mistakes is listed too.

    Raises:
        ConfigError: no suite was found in the repository, or a path has none.
    """
    here = working_directory()
    problems: list[Problem] = []
    files = suite_files(paths or [here / "**", here], problems if paths else [])
    if problems:
        raise ConfigError(problems)
    if not files:
        raise ConfigError(
            Problem(
                f"there is no suite in this directory or below (looked for {conventional_places()})",
                kind=Kind.SUITE_MISSING,
            )
        )
    root = repository_of(here) or here
    refused = {file: why for file in files if (why := _why_refused(file, root))}
    problems += [Problem(why, file=str(file), kind=Kind.SUITE_MISSING) for file, why in refused.items()]
    files = sorted(real_path(file) for file in files if file not in refused)
    if not files:
        raise ConfigError(problems)
    loaded = load_suites(Sources(here, tuple(files)), problems)
    by_path = {suite.path: suite for suite in loaded.suites}
    redact = redactor(frozenset[str]().union(*(suite.secrets for suite in loaded.suites)))
    shown = {file: os.path.relpath(file, here).replace(os.sep, "/") for file in files}
    ids = _ids(list(shown.values()))
    found = []
    for file, path in shown.items():
        suite = by_path.get(display_path(file))
        listed = ListedSuite(
            id=ids[path],
            path=path,
            name=redact(suite.name) if suite and suite.name else path,
            format=suite.format if suite else format_of(file),
            cases=len(suite.cases) if suite else None,
            directory=os.path.relpath(project_directory(file), here).replace(os.sep, "/"),
        )
        found.append(listed)
    return SuiteList(found, problems)


def _why_refused(file: Path, root: Path) -> str:
    """Return why a workflow could not run a suite; empty if it can."""
    if Path(os.path.abspath(file)).is_relative_to(root) and not real_path(file).is_relative_to(root):  # noqa: PTH100
        return "a link leads out of the repository, where the action reads nothing"
    try:
        os.path.relpath(real_path(file)).encode()
    except UnicodeEncodeError:
        return "its path is not UTF-8, so no workflow can name it; rename it"
    return ""


def _ids(paths: Sequence[str]) -> dict[str, str]:
    """Return an id for each path; paths whose ids would be the same get a hash."""
    plain = {path: _UNSAFE.sub("-", path.rpartition(".")[0] or path).strip("-.") for path in paths}
    count = Counter(name.lower() for name in plain.values())
    return {
        path: name if name and count[name.lower()] == 1 else f"{name}-{_hash(path)}".strip("-")
        for path, name in plain.items()
    }


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
