"""The suite formats: finds suite files, recognises their format, and loads them all before reporting problems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.plugins import Group, distribution_of, find_allowed
from agenteval.core.text import did_you_mean, display_path
from agenteval.suite.agent_definitions import HolodeckProject
from agenteval.suite.cases import DistinctNames
from agenteval.suite.formats.agentci import FORMAT as AGENTCI
from agenteval.suite.formats.base import Format, Source, has_key
from agenteval.suite.formats.fluxloop import FORMAT as FLUXLOOP
from agenteval.suite.formats.holodeck import FORMAT as HOLODECK
from agenteval.suite.model import Suite, Target

_WILDCARDS = frozenset("*?[")
# Packages of others, which may contain suites.
_FOREIGN = frozenset({"node_modules"})


def is_pattern(path: Path) -> bool:
    """Return whether a path has a wildcard."""
    return not _WILDCARDS.isdisjoint(str(path))


def matching_paths(pattern: Path) -> Sequence[Path]:
    """Return the files and directories that match a pattern, sorted.

    Wildcards match no hidden name and no ``node_modules``, and ``**`` follows no link. At the end of a pattern,
    ``**`` matches directories only.

    Raises:
        ValueError: the pattern is not valid; ``**`` must be a whole part of it.
    """
    parts = pattern.parts
    first = next(index for index, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part))
    if any("**" in part and part != "**" for part in parts):
        raise ValueError("** must be a whole part of the path, as in agents/**/agent.yaml")
    base = Path(*parts[:first])
    found = (path for path in base.glob("/".join(parts[first:])) if not _is_left_out(path, parts))
    return sorted(path for path in found if parts[-1] != "**" or path.is_dir())


def _is_left_out(path: Path, written: Sequence[str]) -> bool:
    return any((part.startswith(".") or part in _FOREIGN) and part not in written for part in path.parts)


FORMATS: tuple[Format, ...] = (HOLODECK, AGENTCI, FLUXLOOP)

_GROUP: Group = "agenteval.formats"


def holodeck_project(path: Path) -> HolodeckProject:
    """Read the agent of a HoloDeck project."""
    return HOLODECK.project(Source(path, display_path(path)))  # type: ignore[misc]


def formats() -> tuple[Format, ...]:
    """List the formats: the built-in ones, then those of other distributions that ``AGENTEVAL_PLUGINS`` names."""
    return (*FORMATS, *(_checked(name, found) for name, found in find_allowed(_GROUP)))


def _checked(name: str, found: Any) -> Format:
    if isinstance(found, Format) and found.name == name:
        return found
    given = f"a format named {found.name!r}" if isinstance(found, Format) else f"a {type(found).__name__}"
    message = f"{name}: {distribution_of(_GROUP, name)} registers {given}; it must be a Format named {name!r}"
    raise ConfigError(Problem(message, kind=Kind.PLUGIN))


def discover(directory: Path) -> list[Path]:
    """Find the suites at the conventional places of a directory, which may be inside such a place."""
    written = (pattern for item in formats() for pattern in item.searched)
    patterns = (pattern for item in written for pattern in _patterns(item, directory))
    found = (path for pattern in patterns for path in sorted(_globbed(directory, pattern)) if path.is_file())
    return list(dict.fromkeys(found))


def _globbed(directory: Path, pattern: str) -> Iterable[Path]:
    """Return the files of a pattern, which is relative to a directory unless it is absolute."""
    root = Path(pattern).anchor
    return Path(root).glob(pattern.removeprefix(root)) if root else directory.glob(pattern)


def _patterns(pattern: str, directory: Path) -> list[str]:
    """Return a pattern, and its rest relative to a directory that is inside a conventional place."""
    *folders, name = pattern.split("/")
    above = list(directory.resolve().parts)
    depths = (depth for depth in range(1, len(folders) + 1) if above[-depth:] == folders[:depth])
    return [pattern, *("/".join((*folders[depth:], name)) for depth in depths)]


def conventional_places() -> str:
    """List where suites are searched for, for messages."""
    return ", ".join(item.searched[0] for item in formats() if item.patterns)


def load_suites(paths: Sequence[Path], problems: list[Problem]) -> list[Suite]:
    """Load every valid suite.

    Args:
        problems: receives the errors of the others.
    """
    suites: list[Suite] = []
    known = formats()
    for path in suite_files(paths, problems):
        try:
            suites.append(_with_distinct_names(_load(Source(path, display_path(path)), known)))
        except ConfigError as error:
            problems.extend(error.problems)
    return suites


def _with_distinct_names(suite: Suite) -> Suite:
    """Return a suite in which cases of one target have different names; the target is added to names later."""
    names: defaultdict[Target | None, DistinctNames] = defaultdict(DistinctNames)
    cases = [(case, names[case.target].distinct(case.name)) for case in suite.cases]
    if all(case.name == name for case, name in cases):
        return suite
    return replace(suite, cases=tuple(replace(case, name=name) for case, name in cases))


def suite_files(paths: Iterable[Path], problems: list[Problem], skipped: list[Problem] | None = None) -> list[Path]:
    """Return the files of suites. A suite that is given several times or by several names is returned once.

    Args:
        skipped: receives why files at the conventional places of directories are no suites, if there is a suite.
    """
    files: dict[Path, Path] = {}
    named: set[Path] = set()
    foreign: dict[Path, Problem] = {}
    for path in paths:
        try:
            found = _files_at(path)
        except ValueError as error:
            problems.append(Problem(str(error), file=str(path), kind=Kind.SUITE_MISSING))
            continue
        for file in found:
            files.setdefault(file.resolve(), file)
            if file == path:
                named.add(file.resolve())
            elif why := _why_foreign(file):
                foreign[file.resolve()] = why
        if not found:
            problems.append(_without_suite(path))
    others = {real: why for real, why in foreign.items() if real not in named}
    if len(others) == len(files):
        return list(files.values())
    if skipped is not None:
        skipped += others.values()
    return [file for real, file in files.items() if real not in others]


def _why_foreign(path: Path) -> Problem | None:
    """Return why a file at a conventional place is no suite: other tools have files of the same name."""
    source, at = Source(path, display_path(path)), path.absolute()
    for item in formats():
        if item.keys and any(map(at.match, item.searched)) and not has_key(path, item.keys, unreadable=True):
            return source.problem(f"skipped: {item.why_foreign}")
    return None


def _files_at(path: Path) -> Sequence[Path]:
    """Return the suites that a path names."""
    if path.is_dir():
        return discover(path)
    # A file can have a name like a pattern.
    if path.exists():
        return [path]
    if not is_pattern(path):
        return []
    found = []
    for place in matching_paths(path):
        if place.is_dir():
            found += discover(place)
        elif _may_be_suite(place):
            found.append(place)
    return found


def _may_be_suite(path: Path) -> bool:
    """Return whether a file that only a pattern names may be a suite; unlike a README beside projects."""
    if format_of(path) is not None:
        return True
    return any(path.match(pattern) for item in formats() if item not in FORMATS for pattern in item.patterns)


def _without_suite(path: Path) -> Problem:
    if path.is_dir():
        message = f"no suite in this directory (looked for {conventional_places()})"
        return Problem(message, file=display_path(path), kind=Kind.SUITE_MISSING)
    if is_pattern(path):
        return Problem("no suite matches this pattern", file=str(path), kind=Kind.SUITE_MISSING)
    return Problem(f"no such suite file{_meant(path)}", file=str(path), kind=Kind.SUITE_MISSING)


def _meant(path: Path) -> str:
    """Return which file was probably meant: one with a similar name in the same directory."""
    try:
        names = [file.name for file in path.parent.iterdir() if file.stem != "agenteval"]
    except OSError:
        return ""
    return did_you_mean(path.name, names)


def format_of(path: Path) -> str | None:
    """Return the name of the built-in format that a file has; ``None`` if it has none."""
    source = Source(path, display_path(path))
    return next((item.name for item in reversed(FORMATS) if item.matches(source)), None)


def project_directory(path: Path) -> Path:
    """Return the directory of a suite's project: without the conventional folders of its format."""
    places = (pattern for item in formats() for pattern in item.searched if path.match(pattern))
    folders = max((pattern.count("/") for pattern in places), default=0)
    return path.parents[folders]


def _load(source: Source, known: Sequence[Format]) -> Suite:
    # From last to first: HoloDeck's format accepts every YAML file that no other format matches.
    for item in reversed(known):
        if item in FORMATS:
            if item.matches(source):
                return item.load(source)
        elif (suite := _of_plugin(item, source)) is not None:
            return suite
    names = ", ".join(item.name for item in known)
    raise ConfigError(source.problem(f"not a suite file of a known format ({names})"))


def _of_plugin(item: Format, source: Source) -> Suite | None:
    """Load a file with the format of another distribution, whose exceptions are problems of the file."""
    try:
        if not item.matches(source):
            return None
        suite = item.load(source)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - the code of another distribution may raise any exception
        raised = f"{type(error).__name__}: {error}"
        message = f"format {item.name!r} of {distribution_of(_GROUP, item.name)} cannot load the file: {raised}"
        raise ConfigError(source.problem(message)) from None
    if not isinstance(suite, Suite):
        given = type(suite).__name__
        message = f"format {item.name!r} of {distribution_of(_GROUP, item.name)} returned a {given}, not a Suite"
        raise ConfigError(source.problem(message))
    return suite
