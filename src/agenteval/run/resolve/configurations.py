"""Reads the configurations of suites, ``agenteval.yaml`` beside them or above, and what they say about reports."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import boundary, outside_reading, read_regular
from agenteval.core.llm.gateway import LlmSettings, ResponseCache, default_directory
from agenteval.core.records import dataclass, replace
from agenteval.core.shared_files import seal
from agenteval.core.text import display_path, place_of, real_path, working_directory
from agenteval.report.parts import Presentation, Site
from agenteval.report.report import ANALYSES
from agenteval.results.case import SuiteResult
from agenteval.results.store import RESULTS_FILE
from agenteval.run.config import CONFIG_FILE, CONFIG_FILES, Config
from agenteval.run.store import CONFIRMATION_FILE, JOURNAL_FILE
from agenteval.suite.cases import exists
from agenteval.suite.model import AgentSpec, MetricConfig

if TYPE_CHECKING:
    from agenteval.suite.model import MetricConfig


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
    files = (folder / name for folder in directories for name in CONFIG_FILES)
    return next((file for file in files if file.is_file()), None)


# Names that people give to a configuration, and that nothing reads.
_LIKE_CONFIG = re.compile(r"\.?agent[-_]?eval(\.config)?\.(ya?ml|toml|json|cfg|ini)", re.IGNORECASE)


def _unread(directories: Iterable[Path], read: Collection[Path | None]) -> Iterator[Problem]:
    for folder in dict.fromkeys(directories):
        with contextlib.suppress(OSError):
            for file in sorted(file for file in folder.iterdir() if _LIKE_CONFIG.fullmatch(file.name)):
                if file not in read:
                    message = f"not read; the configuration of agenteval is {CONFIG_FILE}"
                    yield Problem(message, file=display_path(file), kind=Kind.FILE)


def read_config(path: Path | None) -> Config:
    """Return the configuration in a file; without a file, the defaults."""
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
        unread: files that look like a configuration; if nothing else is read, the likely cause of any mistake.
    """

    of_suites: Mapping[Path, Path | None]
    of_run: Path | None
    unread: tuple[Problem, ...] = ()

    @property
    def files(self) -> Sequence[Path]:
        """Return each file once, first the one of the run."""
        return [path for path in dict.fromkeys((self.of_run, *self.of_suites.values())) if path is not None]


def find_configurations(sources: Sources, suites: Iterable[Path]) -> Places:
    """Find the configuration of each suite: the nearest at or above its directory, within its repository.

    The settings of the run as a whole come from the nearest at or above the working directory, else from the
    nearest at or above the deepest directory that all suites share.
    """
    files = list(suites)
    if sources.config is not None:
        return Places(dict.fromkeys(files, sources.config), sources.config)
    directories = cache(directories_above)
    above = {file: directories(file.resolve().parent) for file in files}
    shared = [folder for folder in next(iter(above.values()), ()) if all(folder in other for other in above.values())]
    around = directories_above(sources.here)
    of_run = nearest_config(around) or nearest_config(shared)
    of_suites = {file: nearest_config(folders) for file, folders in above.items()}
    searched = (folder for folders in (around, *above.values()) for folder in folders)
    return Places(of_suites, of_run, tuple(_unread(searched, {of_run, *of_suites.values()})))


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
    """Read every configuration."""
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


# A text in quotes may be the name of a file to include.
_NAME = re.compile(r"""["']([^"'\n\\]{1,200})["']""")
_MOST_FILES = 50


def presentation(config: Config, environment: Mapping[str, str]) -> Presentation:
    """Return the user's templates, the repository for links, and the reporters of other packages."""
    comment, summary = (path and shortened(path) for path in (config.comment_template, config.summary_template))
    if problems := list(_missing({"comment": comment, "summary": summary})):
        raise ConfigError(problems)
    texts = template_texts([path for path in (comment, summary) if path]) if boundary().roots else None
    return Presentation(comment, summary, Site.of(environment), config.reports, texts)


def template_texts(templates: Iterable[Path]) -> Mapping[str, str]:
    """Return the content of templates and of the files that they name, because user code could change them later."""
    from agenteval.report.templates import LARGEST_TEMPLATE

    texts: dict[str, str] = {}
    waiting = [(path, path.parent) for path in templates]
    while waiting and len(texts) < _MOST_FILES:
        path, folder = waiting.pop()
        if str(path) in texts:
            continue
        with contextlib.suppress(OSError, ValueError):
            texts[str(path)] = read_regular(path, limit=LARGEST_TEMPLATE).decode("utf-8")
            waiting += [(folder / name, folder) for name in dict.fromkeys(_NAME.findall(texts[str(path)]))]
    return texts


def shortened(path: Path) -> Path:
    """Return the path relative to the working directory if it is inside, for messages."""
    here = working_directory()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _missing(templates: Mapping[str, Path | None]) -> Iterable[Problem]:
    for name, path in templates.items():
        if path is None:
            continue
        named = f"it was named as the template of the {name}"
        if not path.is_file():
            yield Problem(f"no such file; {named}", file=str(path), kind=Kind.FILE)
        elif outside := outside_reading(path.resolve()):
            yield Problem(f"{outside}; {named}", file=str(path), kind=Kind.FILE)


# What a run leaves in a directory; those of other programs have other names.
_OURS = (RESULTS_FILE, JOURNAL_FILE, ANALYSES, "findings.json", "badge.json", "trend.json")


def unusable_directory(out: Path, inputs: Iterable[Path]) -> Iterator[Problem]:
    """Yield why reports may not be written to a directory: it has files of others, or inputs of the command."""
    try:
        found = {path.name: path.is_dir() for path in out.iterdir() if not path.name.startswith(".")}
    except OSError:
        return
    yield from (
        Problem(
            "the command reads this, and reports in the same directory could take its place; write them to another "
            "directory with --out",
            file=display_path(path),
            kind=Kind.OPTION,
        )
        for path in inside(out, inputs)
    )
    if not all(found.values()) and not any(name in _OURS or CONFIRMATION_FILE.fullmatch(name) for name in found):
        message = "this directory has files that are not of agenteval; name a new or empty one with --out"
        yield Problem(message, file=display_path(out), kind=Kind.OPTION)


def inside(place: Path, inputs: Iterable[Path]) -> Iterator[Path]:
    """Yield the inputs at or below a place, each once."""
    real = real_path(place)
    for path in dict.fromkeys(inputs):
        if real_path(path).is_relative_to(real) and exists(path):
            yield path


def templates_of(look: Presentation) -> Iterator[Path]:
    """Yield the templates of reports."""
    return (path for path in (look.comment_template, look.summary_template) if path is not None)


def traces_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield recorded traces, of a folder the file that is read."""
    for path in paths:
        # Imported here: few runs read traces.
        from agenteval.agents.recorded_cases import find_traces

        # Another part reports those that are missing or cannot be read.
        with contextlib.suppress(ConfigError, OSError):
            yield find_traces(path)


def extended_inputs(metrics: Iterable[MetricConfig], inputs: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each input to which a judge would append what it said."""
    for metric in metrics:
        if (limits := metric.judge_limits) is not None and limits.cache:
            for found in inside(Path(metric.where.directory, limits.cache), inputs):
                message = "judgements would be appended to this file; name another one in limits.cache"
                yield Problem(message, file=display_path(found), kind=Kind.VALUE)


def problem_of_another_run(directory: Path) -> Problem:
    """Return the problem that the results of another run and the reports of this one would be side by side."""
    message = "this directory contains the results of another run; name another directory with --out"
    return Problem(message, file=str(directory), kind=Kind.OPTION)


def check_directory(out: Path, inputs: Iterable[Path]) -> None:
    """Check that reports may be written to a directory."""
    problems = list(unusable_directory(out, inputs))
    if problems:
        raise ConfigError(problems)
