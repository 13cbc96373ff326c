"""Files that a run writes and must not read, and how its reports look."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import boundary, outside_reading, read_regular
from agenteval.core.text import display_path, real_path, working_directory
from agenteval.report.limits import Presentation, Site
from agenteval.report.report import ANALYSES, FILES
from agenteval.results.store import RESULTS_FILE
from agenteval.run.config import Config
from agenteval.run.journal import CONFIRMATION_FILE, JOURNAL_FILE
from agenteval.run.run_key import files_of_agent, files_of_metric, files_of_recording
from agenteval.suite.cases import exists, is_file

if TYPE_CHECKING:
    from agenteval.suite.model import AgentSpec, MetricConfig


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


#: The kind of a file for messages, and its path, which may be of a folder or missing.
Input = tuple[str, Path]

# Those of an analysis have the names that FluxLoop gives to its own files.
_ANALYSIS = tuple(f"{ANALYSES}/{name}" for name in ("summary.json", "per_trace.jsonl", "report.md", "report.html"))


def files_of_run(results: Path) -> Iterator[Path]:
    """Yield the files that a run, or a merge of runs, replaces or removes.

    Args:
        results: its results file; if this is that of a report directory, the journals beside it are removed.
    """
    out = results.parent
    yield from (results, out / ANALYSES, *rendered_files(out))
    if results.name != RESULTS_FILE:
        return
    yield out / JOURNAL_FILE
    try:
        yield from (path for path in out.iterdir() if CONFIRMATION_FILE.fullmatch(path.name))
    except OSError:
        # It does not exist yet.
        return


def rendered_files(out: Path) -> Iterator[Path]:
    """Yield the files that are rendered from results."""
    return (out / name for name in (*_ANALYSIS, *FILES))


def templates_of(look: Presentation) -> Iterator[Input]:
    """Yield the templates of reports, and the files that they include, as inputs; see ``replaced_inputs``."""
    named = [path for path in (look.comment_template, look.summary_template) if path is not None]
    # Without templates, their engine is not loaded.
    texts = look.template_texts or (template_texts(named) if named else {})
    return (("template", Path(path)) for path in texts)


def definitions_of(opened: Iterable[Path]) -> Iterator[Input]:
    """Yield the files of suites and configurations as inputs; see ``replaced_inputs``."""
    return (("file of a suite or configuration", path) for path in sorted(opened))


def recordings_of(paths: Iterable[Path]) -> Iterator[Input]:
    """Yield recorded answers as inputs, of a folder the file that is read; see ``replaced_inputs``."""
    for path in paths:
        yield "recording", next(filter(is_file, files_of_recording(path)), path)


def traces_of(paths: Iterable[Path]) -> Iterator[Input]:
    """Yield recorded traces as inputs, of a folder the file that is read; see ``replaced_inputs``."""
    for path in paths:
        # Imported here: few runs read traces.
        from agenteval.agents.recorded_cases import find_traces

        # Another part reports those that are missing or cannot be read.
        with contextlib.suppress(ConfigError, OSError):
            yield "recording", find_traces(path)


def programs_of(agents: Iterable[AgentSpec], metrics: Iterable[MetricConfig]) -> Iterator[Input]:
    """Yield the programs and Python files that agents and metrics name as inputs; see ``replaced_inputs``."""
    for agent in agents:
        yield from (("program", path) for path in files_of_agent(agent))
    for metric in metrics:
        yield from (("program", path) for path in files_of_metric(metric))


def judgement_files(metrics: Iterable[MetricConfig]) -> Iterator[Path]:
    """Yield the files to which judges append what they said."""
    for metric in metrics:
        limits = metric.judge_limits
        if limits is not None and limits.cache:
            yield Path(metric.where.directory, limits.cache)


def replaced_inputs(written: Iterable[Path], inputs: Iterable[Input]) -> Iterator[Problem]:
    """Yield a problem for each input that would be lost."""
    for kind, path in _lost(written, inputs):
        message = f"a report would take the place of this {kind}; write the reports to another directory"
        yield Problem(message, file=display_path(path), kind=Kind.OPTION)


def extended_inputs(written: Iterable[Path], inputs: Iterable[Input]) -> Iterator[Problem]:
    """Yield a problem for each input to which judgements would be appended; arguments as for ``replaced_inputs``."""
    for kind, path in _lost(written, inputs):
        message = f"judgements would be appended to this {kind}; name another file in limits.cache"
        yield Problem(message, file=display_path(path), kind=Kind.VALUE)


def reports_with_judgements(judgements: Iterable[Path], reports: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each file of a run to which judgements would be appended."""
    names = {real_path(path) for path in judgements}
    for path in reports:
        if names and real_path(path) in names:
            message = "judgements would be appended to this report; name another file in limits.cache"
            yield Problem(message, file=display_path(path), kind=Kind.VALUE)


def _lost(written: Iterable[Path], inputs: Iterable[Input]) -> Iterator[Input]:
    lost = {real_path(path) for path in written}
    if not lost:
        return
    for kind, path in inputs:
        if (real := real_path(path)) in lost and exists(path):
            # It may be an input in two ways.
            lost.remove(real)
            yield kind, path


def problem_of_another_run(directory: Path) -> Problem:
    """Return the problem that the results of another run and the reports of this one would be side by side."""
    message = "this directory contains the results of another run; name another directory with --out"
    return Problem(message, file=str(directory), kind=Kind.OPTION)


def check_inputs_stay(written: Iterable[Path], inputs: Iterable[Input]) -> None:
    """Check that no input would be lost; see ``replaced_inputs``.

    Raises:
        ConfigError: one would be.
    """
    problems = list(replaced_inputs(written, inputs))
    if problems:
        raise ConfigError(problems)
