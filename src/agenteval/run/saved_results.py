"""The commands on saved results: compare, report."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from agenteval.compare.gate import decide_gate
from agenteval.core.paths import working_directory
from agenteval.report.report import Report
from agenteval.report.view.view import view_of
from agenteval.report.write import print_table, render_reports
from agenteval.results.store import read_results
from agenteval.run.baseline import check_baseline, check_not_shard
from agenteval.run.finished_runs import compare_finished
from agenteval.run.integrity.finished import integrity_of
from agenteval.run.outcome import report_directory
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings


def compare_files(current: Path, baseline: Path, settings: Settings) -> int:
    """Compare two results files, and apply the gate to the first.

    Args:
        current: the file to decide on, or its report directory.
        baseline: the file or report directory of the earlier run.
        settings: what fails the gate.

    Returns:
        The exit status of the gate.

    Raises:
        ConfigError: a file cannot be read, the first is a shard, or the earlier run cannot be a baseline.
    """
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    now, _ = read_run(current)
    spec = resolve_saved(now, settings, os.environ)
    then, notes = read_run(baseline, suites_of(now))
    check_not_shard(now, current)
    check_baseline(then, baseline)
    integrity = integrity_of(now, then, working_directory(), spec.redact)
    comparison = compare_finished(now, then, spec.compare, notes, integrity)
    results = now.model_copy(update={"comparison": comparison})
    gate = decide_gate(results, spec.gate)
    print_table(results, view_of(gate, results), sys.stdout)
    return gate.exit_status


def render_again(path: Path, settings: Settings, out: Path | None) -> int:
    """Write the rendered reports of a results file.

    Args:
        path: the file, or its report directory.
        settings: the history and the templates.
        out: the directory to write to; by default that of the file.

    Raises:
        ConfigError: the file or a template cannot be read.
        InfrastructureError: the reports cannot be written.
    """
    results = read_results(path)
    spec = resolve_saved(results, settings, os.environ)
    directory = out or (path if path.is_dir() else path.parent)
    gate = decide_gate(results, spec.gate)
    view = view_of(gate, results)
    view = replace(view, warnings=(*view.warnings, *spec.warnings))
    report = Report(view, earlier=spec.earlier, presentation=spec.presentation)
    with report_directory(directory):
        report = render_reports(report, results, directory)
    print_table(results, report.gate, sys.stdout)
    return 0
