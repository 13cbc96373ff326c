"""Reads the configurations of suites: ``agenteval.yaml`` beside them or above."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.gateway import LlmSettings, ResponseCache, default_directory
from agenteval.core.records import dataclass, replace
from agenteval.core.shared_files import seal
from agenteval.core.text import display_path, place_of
from agenteval.results.case import SuiteResult
from agenteval.run.config import CONFIG_FILE, Config
from agenteval.suite.model import AgentSpec, MetricConfig


def directories_above(directory: Path) -> Sequence[Path]:
    """Return a directory and its parents up to the root of its repository; links are followed first."""
    start = directory.resolve()
    found = []
    for folder in (start, *start.parents):
        found.append(folder)
        if (folder / ".git").exists():
            break
    return found


def nearest_config(directories: Sequence[Path]) -> Path | None:
    """Return the configuration in the first of the directories that has one."""
    return next((folder / CONFIG_FILE for folder in directories if (folder / CONFIG_FILE).is_file()), None)


def read_config(path: Path | None) -> Config:
    """Return the configuration in a file; without a file, the defaults.

    Raises:
        ConfigError: the file is not valid; the error contains every problem.
    """
    if path is None:
        return Config(llm=LlmSettings(cache=ResponseCache(default_directory(), seal())))
    # Imported here: a run without a configuration file does not need the parser.
    from agenteval.run.config_file import read_config_file

    return read_config_file(path)


@dataclass(frozen=True)
class Sources:
    """The files that define suites and agents; they can be mapped to another checkout of the repository.

    Attributes:
        suites: files or directories; empty to search for them.
        config: ``agenteval.yaml``; ``None`` to search for it.
    """

    here: Path
    suites: tuple[Path, ...] = ()
    config: Path | None = None
    agent: AgentSpec | str | None = None
    metrics: tuple[MetricConfig, ...] = ()

    def moved(self, there: Callable[[Path], Path]) -> Sources:
        """Return the same files in another checkout."""
        return replace(
            self,
            here=there(self.here),
            suites=tuple(map(there, self.suites)),
            config=there(self.config) if self.config else None,
        )


@dataclass(frozen=True)
class Places:
    """The configuration files of a run.

    Attributes:
        of_suites: each suite's, by the suite's path on this machine; ``None`` if the suite has none.
        of_run: the one that decides the settings of the run as a whole; ``None`` if those of the suites must agree.
    """

    of_suites: Mapping[Path, Path | None]
    of_run: Path | None

    @property
    def files(self) -> Sequence[Path]:
        """Return each file once, first the one of the run."""
        return [path for path in dict.fromkeys((self.of_run, *self.of_suites.values())) if path is not None]


def find_configurations(sources: Sources, suites: Iterable[Path]) -> Places:
    """Find the configuration of each suite: the nearest at or above its directory, within its repository.

    The settings of the run as a whole come from the nearest at or above the working directory, else from the
    nearest at or above the deepest directory that all suites share.

    Args:
        sources: the working directory, and the file that replaces all others, if the caller names one.
    """
    files = list(suites)
    if sources.config is not None:
        return Places(dict.fromkeys(files, sources.config), sources.config)
    directories = cache(directories_above)
    above = {file: directories(file.resolve().parent) for file in files}
    shared = [folder for folder in next(iter(above.values()), ()) if all(folder in other for other in above.values())]
    of_run = nearest_config(directories_above(sources.here)) or nearest_config(shared)
    return Places({file: nearest_config(folders) for file, folders in above.items()}, of_run)


@dataclass(frozen=True)
class Configurations:
    """The configurations of a run.

    Attributes:
        of_run: decides the settings of the run as a whole.
        by_file: all that are valid, by file; the defaults have the key ``None``.
    """

    of_run: Config
    by_file: Mapping[Path | None, Config]

    @property
    def all(self) -> Sequence[Config]:
        """Return each configuration once."""
        return [*self.by_file.values()]

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets of all files."""
        return frozenset[str]().union(*(config.secrets for config in self.by_file.values()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all files, and one for each setting of the run that has no effect."""
        found = [warning for config in self.by_file.values() for warning in config.warnings]
        return (*dict.fromkeys(found), *self._unused())

    def _unused(self) -> Iterable[str]:
        for config in self.by_file.values():
            for key, setting in config.of_run.items():
                if self.of_run.of_run.get(key) != setting:
                    by = f"{self.of_run.name} decides it" if self.of_run.name else "it is decided"
                    text = f"has no effect: {by} for the whole run; name one file for all suites with --config"
                    yield str(Problem(text, file=config.name, line=config.lines[key], path=key, kind=Kind.VALUE))


def read_configurations(places: Places, problems: list[Problem]) -> Configurations:
    """Read every configuration.

    Args:
        problems: receives the problems of all files, and each setting of the run that files contradict.
    """
    by_file: dict[Path | None, Config] = {}
    for path in places.files:
        try:
            by_file[path] = read_config(path)
        except ConfigError as error:
            problems += error.problems
    if None in places.of_suites.values() or places.of_run is None:
        by_file.setdefault(None, read_config(None))
    if places.of_run is not None:
        return Configurations(by_file.get(places.of_run, Config()), by_file)
    return Configurations(_agreed(places, by_file, problems), by_file)


def _agreed(places: Places, by_file: Mapping[Path | None, Config], problems: list[Problem]) -> Config:
    """Return a configuration with the settings of the run that those of all suites share."""
    first_with: dict[Path | None, Path] = {}
    for suite, path in places.of_suites.items():
        if path in by_file:
            first_with.setdefault(path, suite)
    first, *others = first_with or (None,)
    for other in others:
        suite = first_with[first if other is not None else other]
        problems += _contradictions(by_file[first], by_file[other], display_path(suite))
    return by_file[first]


def _contradictions(one: Config, other: Config, suite: str) -> Iterable[Problem]:
    for key in dict.fromkeys((*one.of_run, *other.of_run)):
        if (key in one.of_run, one.of_run.get(key)) == (key in other.of_run, other.of_run.get(key)):
            continue
        written, silent = (one, other) if key in one.of_run else (other, one)
        also = silent.lines.get(key) if key in silent.of_run else None
        second = f"{silent.name}:{also} has another value" if also else f"{silent.name} does not"
        if not silent.name:
            second = f"{suite} has no {CONFIG_FILE}"
        message = (
            f"this setting is for the whole run, and the configurations of its suites differ: {second}; "
            f"write it in {CONFIG_FILE} of the working directory, or name one file for all suites with --config"
        )
        yield Problem(message, file=written.name, line=written.lines[key], path=key, kind=Kind.VALUE)


def files_of(suites: Iterable[SuiteResult]) -> list[Path]:
    """Return the files of the suites of a run that are on this machine."""
    return [file for suite in suites if (file := place_of(suite.path)) is not None]
