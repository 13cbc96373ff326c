"""Reports: all of them by name, their settings, and the writing of their files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agenteval.core import plugins
from agenteval.core.errors import AgentEvalError, ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.shared_files import LOCK_FILE
from agenteval.core.text import choices
from agenteval.core.writing import remove_regular_file, write_file
from agenteval.report.parts import ReportFile
from agenteval.results.store import RESULTS_FILE, results_json

if TYPE_CHECKING:
    from agenteval.report.facts import Report
    from agenteval.report.terminal_lines import TerminalDetail

#: A reporter: a function ``report_files(report)`` that yields the files of one kind of report. Reporters of other
#: packages run in agenteval's process, so they run only if ``AGENTEVAL_PLUGINS`` names them.
Render = Callable[["Report"], Iterable[ReportFile]]


#: The modules of the built-in reporters. They run in this order: later ones show the warnings of earlier ones.
#: A module is imported when a report is written, so that other commands start faster.
REPORTERS: Mapping[str, str] = {
    "evaluation": "agenteval.report.analysis",
    "junit": "agenteval.report.junit",
    "markdown": "agenteval.report.markdown",
    "findings": "agenteval.report.findings",
    "badge": "agenteval.report.overview",
    "html": "agenteval.report.html",
}
#: The files that they write to a report directory, besides those of analyses.
FILES = ("junit.xml", "summary.md", "comment.md", "findings.json", "badge.json", "trend.json", "report.html")
#: The folder of analyses.
ANALYSES = "evaluation"


def built_in(report: Report) -> Iterator[Render]:
    """Yield the built-in reporters that have something to write."""
    names = (name for name in REPORTERS if name != "evaluation" or report.source.analyses)
    yield from map(built_in_reporter, names)


def built_in_reporter(name: str) -> Render:
    """Import a built-in reporter."""
    render: Render = import_module(REPORTERS[name]).report_files
    return render


def find_reporter(name: str) -> Render:
    """Import a reporter of another package.

    Args:
        name: the name of its entry point, with a dot.

    Raises:
        ConfigError: the name is built in or unknown, or the reporter is not allowed or cannot be imported.
    """
    if name in REPORTERS:
        raise ConfigError(
            Problem(
                f"{name!r} is built in and always written; list reporters of other packages only", kind=Kind.PLUGIN
            )
        )
    names = [plugin.name for plugin in plugins.installed() if plugin.group == "agenteval.reporters"]
    if name not in names:
        message = f"no installed package has a reporter {name!r}{choices(name, names, 'installed')}"
        raise ConfigError(Problem(message, kind=Kind.UNKNOWN_NAME))
    if not plugins.is_allowed(name):
        variable = plugins.ALLOWED_VARIABLE
        message = f"the reporter {name!r} runs in agenteval's process only where {variable} names it"
        raise ConfigError(Problem(f"{message}; set {variable}={name} if you trust its package", kind=Kind.PLUGIN))
    render = plugins.find("agenteval.reporters", name)
    if not callable(render):
        raise ConfigError(
            Problem(
                f"the reporter {name!r} is not a function, or its name has no dot; fix its package", kind=Kind.PLUGIN
            )
        )
    found: Render = render
    return found


# Left behind by a process that was killed while it wrote a file; see ``core.files.writing``.
_TEMPORARY = re.compile(rf"\.({'|'.join(map(re.escape, (RESULTS_FILE, *FILES)))})\.[0-9a-f]{{16}}")


def results_identity(directory: Path) -> tuple[int, ...] | None:
    """Return what tells the results file of a directory from a later one; ``None`` without a file."""
    try:
        found = (directory / RESULTS_FILE).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def remove_reports(directory: Path) -> None:
    """Remove the reports of an earlier run from a directory.

    Files of reporters of other packages stay, and analyses: FluxLoop's recordings have the same names.
    """
    for name in (RESULTS_FILE, *FILES, *_temporary(directory)):
        remove_regular_file(directory, name)


def remove_rendered(directory: Path) -> None:
    """Remove the reports that are rendered from results; what cannot be removed is left to the writing of reports."""
    for name in (*FILES, *_temporary(directory)):
        with contextlib.suppress(InfrastructureError):
            remove_regular_file(directory, name)


def _temporary(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir() if _TEMPORARY.fullmatch(path.name))
    except OSError:
        # It does not exist, or is no folder.
        return []


_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
# Files of a report directory that no reporter writes.
_CONFIRMATION = re.compile(r"confirmation(-[0-9]+)?\.jsonl", re.IGNORECASE)
_RESERVED = frozenset({RESULTS_FILE, "journal.jsonl", ANALYSES, LOCK_FILE})


def write_reports(report: Report, path: Path) -> Report:
    """Write the results, then the files rendered from them, so that a rendering error loses no result.

    Earlier files are removed first: at no time do results and rendered files of different runs stand side by side.

    Args:
        path: the results file; all others are written beside it.

    Returns:
        The report, with a warning for each template that could not be used.

    Raises:
        InfrastructureError: a file cannot be written, or a reporter of another package failed.
    """
    remove_rendered(path.parent)
    write_file(path.parent, path.name, results_json(report.results, report.source.archive))
    return _render(report, path.parent, {path.name})


def render_reports(report: Report, directory: Path) -> Report:
    """Write the files that are rendered from saved results; result and errors are those of :func:`write_reports`."""
    remove_rendered(directory)
    return _render(report, directory, set())


def write_files(files: Iterable[ReportFile], directory: Path) -> tuple[ReportFile, ...]:
    """Write files, and create the folders in their names."""
    written = []
    for file in files:
        write_file(directory, file.name, file.text)
        written.append(ReportFile(file.name, "", file.warnings))
    return tuple(written)


def print_result(report: Report, stream: TextIO, detail: TerminalDetail | None = None) -> None:
    """Print the result; colour only on a terminal, and never with ``NO_COLOR`` set."""
    from agenteval.report.terminal import print_report
    from agenteval.report.terminal_lines import TerminalDetail

    colour = stream.isatty() and not os.environ.get("NO_COLOR")
    print_report(report, stream, colour, detail or TerminalDetail())


def _render(report: Report, directory: Path, taken: set[str]) -> Report:
    names = {*_RESERVED, *taken}
    for render in built_in(report):
        written = write_files(render(report), directory)
        names.update(file.name for file in written)
        report = report.with_warnings(text for file in written for text in file.warnings)
    failed = []
    for name in report.source.presentation.reports:
        try:
            written = write_files(_checked(find_reporter(name)(report), names), directory)
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
