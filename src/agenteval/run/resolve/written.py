"""Checks that no command replaces a file that it reads: a file of a suite, a recording, a template or results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.paths import display_path, real_path
from agenteval.report.presentation import Presentation
from agenteval.report.registry import ANALYSES, FILES
from agenteval.results.store import RESULTS_FILE
from agenteval.run.journal.journal import CONFIRMATION_FILE, JOURNAL_FILE
from agenteval.run.programs import files_of_agent, files_of_metric, files_of_recording
from agenteval.run.resolve.presentation import template_texts
from agenteval.suite.files import exists, is_file

if TYPE_CHECKING:
    from agenteval.suite.model import AgentSpec, MetricConfig

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
        from agenteval.agents.replay.trace_files import find_traces

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
    """Yield a problem for each input that would be lost.

    Args:
        written: the files that the command writes.
        inputs: what the command reads.
    """
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
    """Yield the inputs that are among the written files."""
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
