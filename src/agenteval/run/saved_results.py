"""The commands on saved results: compare, report."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from agenteval.compare.comparer import Comparer
from agenteval.compare.gate import Gate, decide_gate
from agenteval.report.report import Report
from agenteval.report.view.view import GateView
from agenteval.report.write import print_table, render_reports
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.outcome import make_directory
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings


def compare_files(current: Path, baseline: Path, settings: Settings) -> int:
    """Compare two results files, and decide on the first.

    Args:
        current: the file to decide on, or its report directory.
        baseline: the same of the earlier run.
        settings: name what fails the gate.

    Returns:
        The exit status of the gate.

    Raises:
        ConfigError: a file cannot be read.
    """
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    spec = resolve_saved(settings, os.environ)
    now, _ = read_run(current)
    then, notes = read_run(baseline, suites_of(now))
    known = {case.id for _, case in now.cases()}
    comparison = Comparer(now, then, known, spec.compare, notes=notes).decide()
    results = now.model_copy(update={"comparison": comparison})
    gate = decide_gate(results, spec.gate)
    print_table(results, _view(gate, results), sys.stdout)
    return gate.exit_status


def render_again(path: Path, settings: Settings, out: Path | None) -> int:
    """Write the rendered reports of a results file.

    Args:
        path: the file, or its report directory.
        settings: name the history and the templates.
        out: the directory to write to; that of the file by default.

    Raises:
        ConfigError: the file or a template cannot be read.
        InfrastructureError: the reports cannot be written.
    """
    results = read_results(path)
    spec = resolve_saved(settings, os.environ)
    directory = out or (path if path.is_dir() else path.parent)
    make_directory(directory)
    view = _view(decide_gate(results, spec.gate), results)
    view = replace(view, warnings=(*view.warnings, *spec.warnings))
    report = Report(view, earlier=spec.earlier, presentation=spec.presentation)
    print_table(results, render_reports(report, results, directory).gate, sys.stdout)
    return 0


def _view(gate: Gate, results: Results) -> GateView:
    notes = tuple(results.comparison.notes) if results.comparison else ()
    return GateView(passed=gate.passed, headline=gate.headline, reasons=gate.reasons, warnings=notes)
