"""Writes the report files and prints the result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agenteval.core.errors import AgentEvalError, InfrastructureError
from agenteval.core.files.lock import LOCK_FILE
from agenteval.core.files.writing import write_file
from agenteval.report.earlier import remove_rendered
from agenteval.report.registry import ANALYSES, built_in, find_reporter
from agenteval.report.report import Report, ReportFile
from agenteval.report.view.view import GateView
from agenteval.results.model import Results
from agenteval.results.store import RESULTS_FILE, results_json

if TYPE_CHECKING:
    from agenteval.report.terminal.detail import Detail

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
# Files of a report directory that no reporter writes.
_CONFIRMATION = re.compile(r"confirmation(-[0-9]+)?\.jsonl", re.IGNORECASE)
_RESERVED = frozenset({RESULTS_FILE, "journal.jsonl", ANALYSES, LOCK_FILE})


def write_reports(report: Report, results: Results, path: Path) -> Report:
    """Write the results, then the files rendered from them, so that a rendering error loses no result.

    Earlier files are removed first: at no time do results and rendered files of different runs stand side by side.

    Args:
        report: the report without the results.
        results: the run.
        path: the results file; all others are written beside it.

    Returns:
        The report, with a warning for each template that could not be used.

    Raises:
        InfrastructureError: a file cannot be written, or a reporter of another package failed.
    """
    remove_rendered(path.parent)
    write_file(path.parent, path.name, results_json(results, report.archive))
    return _render(report, results, path.parent, {path.name})


def render_reports(report: Report, results: Results, directory: Path) -> Report:
    """Write the files that are rendered from saved results.

    Args:
        report: the report without the results.
        results: the run.
        directory: directory of the files.

    Returns:
        The report. Errors are those of :func:`write_reports`.
    """
    remove_rendered(directory)
    return _render(report, results, directory, set())


def write_files(files: Iterable[ReportFile], directory: Path) -> tuple[ReportFile, ...]:
    """Write files, and create the folders in their names.

    Raises:
        InfrastructureError: a file or folder cannot be written.
    """
    written = []
    for file in files:
        write_file(directory, file.name, file.text)
        written.append(ReportFile(file.name, "", file.warnings))
    return tuple(written)


def print_result(results: Results, view: GateView, stream: TextIO, detail: Detail | None = None) -> None:
    """Print the result; colour only on a terminal, and never with ``NO_COLOR`` set."""
    from agenteval.report.terminal.detail import Detail
    from agenteval.report.terminal.result import print_results

    colour = stream.isatty() and not os.environ.get("NO_COLOR")
    print_results(results, view, stream, colour, detail or Detail())


def _render(report: Report, results: Results, directory: Path, taken: set[str]) -> Report:
    names = {*_RESERVED, *taken}
    for render in built_in():
        written = write_files(render(report, results), directory)
        names.update(file.name for file in written)
        report = report.with_warnings(text for file in written for text in file.warnings)
    failed = []
    for name in report.presentation.reports:
        try:
            written = write_files(_checked(find_reporter(name)(report, results), names), directory)
        except AgentEvalError as error:
            failed.append(f"reports: {name}: {error}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no other report may be lost
            failed.append(f"reports: {name}: {type(error).__name__}: {error}")
        else:
            report = report.with_warnings(f"{name}: {text}" for file in written for text in file.warnings)
    if failed:
        raise InfrastructureError("\n".join(failed))
    return report


def _checked(files: Iterable[ReportFile], names: set[str]) -> Iterable[ReportFile]:
    """Yield the files of a reporter of another package after a check of their names.

    Raises:
        InfrastructureError: a name is not allowed or already used.
    """
    for file in files:
        if not isinstance(file, ReportFile):
            raise InfrastructureError(f"it yields {type(file).__name__} instead of ReportFile")
        if not _PLAIN_NAME.fullmatch(file.name):
            allowed = "letters, digits, '.', '-' and '_', at most 100, without a folder"
            raise InfrastructureError(f"{file.name[:100]!r} is not a plain file name; use {allowed}")
        if file.name.casefold() in {name.casefold() for name in names} or _CONFIRMATION.fullmatch(file.name):
            raise InfrastructureError(f"{file.name!r} already exists; choose another name")
        names.add(file.name)
        yield file
