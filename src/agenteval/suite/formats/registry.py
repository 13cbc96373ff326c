"""Finds suites, tells their format, and loads them all before complaining about any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.paths import display_path
from agenteval.suite.formats.fluxloop import is_fluxloop
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
    from agenteval.suite.formats.holodeck.suite import load_holodeck

    return load_holodeck(path, shown_as)


def _agentci(path: Path, shown_as: str) -> Suite:
    from agenteval.suite.formats.agentci.suite import load_agentci

    return load_agentci(path, shown_as)


def _fluxloop(path: Path, shown_as: str) -> Suite:
    from agenteval.suite.formats.fluxloop.suite import load_fluxloop

    return load_fluxloop(path, shown_as)


def _is_yaml(path: Path) -> bool:
    return path.suffix in {".yaml", ".yml"}


def _is_fluxloop(path: Path) -> bool:
    return _is_yaml(path) and is_fluxloop(path)


def _is_holodeck(path: Path) -> bool:
    return _is_yaml(path) and not is_fluxloop(path)


FORMATS: tuple[Format, ...] = (
    Format("holodeck", "agent.y*ml", _is_holodeck, _holodeck),
    Format("agentci", ".agentci/evals/*.toml", lambda path: path.suffix == ".toml", _agentci),
    Format("fluxloop", "configs/evaluation.y*ml", _is_fluxloop, _fluxloop),
)


def discover(directory: Path) -> list[Path]:
    """The suites that lie at the conventional places of a directory, which may be one on the way to them."""
    patterns = (pattern for item in FORMATS for pattern in _patterns(item.pattern, directory))
    found = (path for pattern in patterns for path in sorted(directory.glob(pattern)) if path.is_file())
    return list(dict.fromkeys(found))


def _patterns(pattern: str, directory: Path) -> list[str]:
    """A pattern, and where a directory is one of its folders what is left of it there."""
    *folders, name = pattern.split("/")
    above = list(directory.resolve().parts)
    depths = (depth for depth in range(1, len(folders) + 1) if above[-depth:] == folders[:depth])
    return [pattern, *("/".join((*folders[depth:], name)) for depth in depths)]


def conventional_places() -> str:
    """Where suites are looked for, for messages."""
    return ", ".join(item.pattern.replace("y*ml", "yaml") for item in FORMATS)


def load_suites(paths: Sequence[Path], problems: list[Problem]) -> list[Suite]:
    """Load every suite that can be.

    Args:
        paths: suite files, or directories to search.
        problems: receives what is wrong with the others.
    """
    suites: list[Suite] = []
    for path in _files(paths, problems):
        try:
            suites.append(_load(path, display_path(path)))
        except ConfigError as error:
            problems.extend(error.problems)
    return suites


def _files(paths: Iterable[Path], problems: list[Problem]) -> list[Path]:
    # By where they lie: however often and under however many names a suite is given, it runs once.
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            found = discover(path)
            if not found:
                message = f"no suite in this directory (looked for {conventional_places()})"
                problems.append(Problem(message, file=display_path(path)))
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
