"""The commands on saved results: compare, report."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.escape import terminal
from agenteval.core.files import kind_of
from agenteval.core.runtime import finished_first
from agenteval.core.text import display_path
from agenteval.core.writing import make_directory, write_file
from agenteval.gate.verdict import decide_gate
from agenteval.report.facts import Report, facts, notes_of
from agenteval.report.report import built_in_reporter, print_result, render_reports, results_identity
from agenteval.report.terminal_lines import TerminalDetail, next_commands
from agenteval.results.merge import Merged
from agenteval.results.model import Results
from agenteval.results.rollup import check_consistent
from agenteval.results.store import IN_MEMORY, RESULTS_FILE, read_results, results_json
from agenteval.run.config import Settings
from agenteval.run.context import baseline_of, check_baseline, check_not_shard
from agenteval.run.merge import decide_finished
from agenteval.run.outcome import refuse_files, report_directory
from agenteval.run.resolve.configurations import check_directory, inside, problem_of_another_run
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.resolve_saved import resolve_merge, resolve_saved

#: Reporter and file of each single report besides JSON, which is the results themselves.
_REPORTS: Mapping[str, tuple[str, str]] = {
    "markdown": ("markdown", "summary.md"),
    "html": ("html", "report.html"),
    "junit": ("junit", "junit.xml"),
}
_BY_ENDING: Mapping[str, str] = {".md": "markdown", ".html": "html", ".htm": "html", ".xml": "junit"}


def compare_files(current: Path, baseline: Path, settings: Settings) -> int:
    """Compare two results files, and apply the gate to the first."""
    from agenteval.results.importers.base import suites_of
    from agenteval.results.importers.detect import read_run

    now, _ = read_run(current)
    then, notes = read_run(baseline, suites_of(now))
    check_not_shard(now, current)
    check_consistent(now, current)
    check_baseline(then, baseline)
    if now.run.id == then.run.id:
        notes = (*notes, "both files contain the same run, so nothing can differ")
    spec, results = resolve_merge(Merged(now, {}), settings, baseline=baseline_of(then, notes))
    outcome, _ = decide_finished(results, spec)
    print_result(outcome.report, sys.stdout, TerminalDetail(settings.verbosity))
    return outcome.exit_status


def render_one(paths: Sequence[Path], settings: Settings, kind: str | None, output: Path | None) -> int:
    """Write a single report of a results file; of several, a page with a column for each."""
    found = [_consistent_results(path) for path in paths]
    if len(found) > 1:
        if kind not in {None, "html"}:
            raise ConfigError(Problem("several results are one HTML page; leave out --format", kind=Kind.OPTION))
        from agenteval.report.html import render_runs

        page = output or Path("agenteval-report", "runs.html")
        # As they were given: the reports of two clones have the same path in their repositories.
        names = (str(path).encode("utf-8", "backslashreplace").decode() for path in paths)
        runs = list(zip(names, found, strict=True))
        status = _write_one(render_runs(runs), page, map(_results_file, paths))
        sys.stdout.write(f"wrote {terminal(display_path(page))}\n")
        return status
    (results,) = found
    kind = kind or (_BY_ENDING.get(output.suffix.lower(), "json") if output else "json")
    if kind == "json" and output is None:
        # No configuration is needed, so none can be wrong.
        sys.stdout.writelines(results_json(results, IN_MEMORY))
        return 0
    spec = resolve_saved(results, settings, os.environ)
    text: str | Iterable[str]
    if kind == "json":
        text = results_json(results, IN_MEMORY)
    else:
        reporter, name = _REPORTS[kind]
        report = _saved_report(results, spec)
        text = next(file.text for file in built_in_reporter(reporter)(report) if file.name == name)
    return _write_one(text, output, [_results_file(paths[0]), *spec.output.inputs])


def _write_one(text: str | Iterable[str], output: Path | None, inputs: Iterable[Path]) -> int:
    if output is None:
        sys.stdout.writelines([text] if isinstance(text, str) else text)
        return 0
    _check_is_free(output, inputs)
    refuse_files(output.parent)
    _check_is_file(output)
    make_directory(output.parent)
    write_file(output.parent, output.name, text)
    return 0


def _check_is_file(output: Path) -> None:
    if os.path.lexists(output) and not stat.S_ISREG(mode := output.lstat().st_mode):
        message = f"it is {kind_of(mode)}, not a regular file; name another file with -o"
        raise ConfigError(Problem(message, file=str(output), kind=Kind.OPTION))


def _consistent_results(path: Path) -> Results:
    from agenteval.results.importers.detect import read_run

    results, _ = read_run(path)
    check_consistent(results, path)
    return results


def _check_is_free(output: Path, inputs: Iterable[Path]) -> None:
    for path in inside(output, inputs):
        message = "a report would take the place of this file; name another one with -o"
        raise ConfigError(Problem(message, file=display_path(path), kind=Kind.OPTION))


def _results_file(path: Path) -> Path:
    return path / RESULTS_FILE if path.is_dir() else path


def _check_same_run(results: Results, directory: Path) -> None:
    if results_identity(directory) is None:
        return
    other = read_results(directory)
    if other.run.id != results.run.id:
        raise ConfigError(problem_of_another_run(directory))


def _saved_report(results: Results, spec: RunSpec) -> Report:
    warnings = (*notes_of(results), *spec.warnings)
    # What was decided is decided; only other tools leave it open.
    gate = results.gate or decide_gate(results, spec.gate)
    return facts(results, gate, warnings, earlier=spec.earlier.runs, presentation=spec.presentation)


def render_again(path: Path, settings: Settings, out: Path | None) -> int:
    """Write the rendered reports of a results file."""
    results = _consistent_results(path)
    directory = out or (path if path.is_dir() else path.parent)
    if out is not None:
        _check_same_run(results, out)
    spec = resolve_saved(results, settings, os.environ)
    # The reports of results belong beside them, whatever else reads the results.
    own = [] if _results_file(path).name == RESULTS_FILE and out is None else [_results_file(path)]
    check_directory(directory, [*own, *spec.output.inputs])
    report = _saved_report(results, spec)
    with finished_first(), report_directory(directory):
        report = render_reports(report, directory)
    detail = TerminalDetail(settings.verbosity, commands=next_commands(directory))
    print_result(report, sys.stdout, detail)
    return 0
