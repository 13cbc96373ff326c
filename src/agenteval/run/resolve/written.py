"""Where reports may be written, and how they look."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import boundary, outside_reading, read_regular
from agenteval.core.text import display_path, real_path, working_directory
from agenteval.report.report import ANALYSES, Presentation, Site
from agenteval.results.store import RESULTS_FILE
from agenteval.run.config import Config
from agenteval.run.journal import JOURNAL_FILE
from agenteval.suite.cases import exists

if TYPE_CHECKING:
    from agenteval.suite.model import MetricConfig


# A text in quotes may be the name of a file to include.
_NAME = re.compile(r"""["']([^"'\n\\]{1,200})["']""")
_MOST_FILES = 50


def presentation(config: Config, environment: Mapping[str, str]) -> Presentation:
    """Return the user's templates, the repository for links, and the reporters of other packages.

    Args:
        environment: the runner's variables with the GitHub instance and repository.

    Raises:
        ConfigError: a template is not a file.
    """
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
_OURS = (RESULTS_FILE, JOURNAL_FILE, ANALYSES, "badge.json", "trend.json")


def unusable_directory(out: Path, inputs: Iterable[Path]) -> Iterator[Problem]:
    """Yield why reports may not be written to a directory: it has files of others, or inputs of the command.

    Args:
        inputs: files and folders that the command reads; those that do not exist are left out.
    """
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
    if not all(found.values()) and found.keys().isdisjoint(_OURS):
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


def judgement_files(metrics: Iterable[MetricConfig]) -> Iterator[Path]:
    """Yield the files to which judges append what they said."""
    for metric in metrics:
        limits = metric.judge_limits
        if limits is not None and limits.cache:
            yield Path(metric.where.directory, limits.cache)


def extended_inputs(judgements: Iterable[Path], inputs: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each input to which judgements would be appended."""
    for path in judgements:
        for found in inside(path, inputs):
            message = "judgements would be appended to this file; name another one in limits.cache"
            yield Problem(message, file=display_path(found), kind=Kind.VALUE)


def problem_of_another_run(directory: Path) -> Problem:
    """Return the problem that the results of another run and the reports of this one would be side by side."""
    message = "this directory contains the results of another run; name another directory with --out"
    return Problem(message, file=str(directory), kind=Kind.OPTION)


def check_directory(out: Path, inputs: Iterable[Path]) -> None:
    """Check that reports may be written to a directory.

    Raises:
        ConfigError: they may not; see ``unusable_directory``.
    """
    problems = list(unusable_directory(out, inputs))
    if problems:
        raise ConfigError(problems)
