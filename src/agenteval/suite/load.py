"""Finds suites, tells their format, and loads them all before complaining about any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import ConfigError, Problem
from agenteval.provenance import shown_path
from agenteval.suite.model import Suite

Loader = Callable[[Path, str], Suite]


@dataclass(frozen=True)
class Format:
    """A suite format: where its files lie by convention, which files are its own, and what reads them."""

    name: str
    pattern: str
    matches: Callable[[Path], bool]
    load: Loader


def _holodeck(path: Path, shown_as: str) -> Suite:
    from agenteval.suite.holodeck import load_holodeck

    return load_holodeck(path, shown_as)


FORMATS: tuple[Format, ...] = (
    Format("holodeck", "agent.y*ml", lambda path: path.suffix in {".yaml", ".yml"}, _holodeck),
)


def discover(directory: Path) -> list[Path]:
    """The suites that lie at the conventional places of a directory."""
    found = (path for item in FORMATS for path in sorted(directory.glob(item.pattern)) if path.is_file())
    return list(dict.fromkeys(found))


def load_suites(paths: Sequence[Path]) -> list[Suite]:
    """Load every suite.

    Args:
        paths: suite files, or directories to search.

    Raises:
        ConfigError: with the problems of all files together.
    """
    problems: list[Problem] = []
    suites: list[Suite] = []
    for path in _files(paths, problems):
        try:
            suites.append(_load(path, shown_path(path)))
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return suites


def _files(paths: Iterable[Path], problems: list[Problem]) -> list[Path]:
    # By where they lie: however often and under however many names a suite is given, it runs once.
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found = discover(path)
            if not found:
                looked_for = ", ".join(item.pattern.replace("y*ml", "yaml") for item in FORMATS)
                problems.append(
                    Problem(f"no suite in this directory (looked for {looked_for})", file=shown_path(path))
                )
            for file in found:
                files.setdefault(file.resolve(), file)
        elif path.exists():
            files.setdefault(path.resolve(), path)
        else:
            problems.append(Problem("no such suite file", file=str(path)))
    return list(files.values())


def _load(path: Path, shown_as: str) -> Suite:
    for item in FORMATS:
        if item.matches(path):
            return item.load(path, shown_as)
    names = ", ".join(item.name for item in FORMATS)
    raise ConfigError(Problem(f"not a suite file of a known format ({names})", file=shown_as))
