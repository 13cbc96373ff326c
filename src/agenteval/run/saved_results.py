"""The commands on results that are there: compare, report."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from agenteval.compare.comparer import Comparer
from agenteval.compare.gate import FailOn, Gate, decide_gate, parse_fail_on
from agenteval.core.errors import ConfigError, Problem
from agenteval.report.view.view import GateView
from agenteval.report.write import print_table, render_reports
from agenteval.results.archive import InMemory
from agenteval.results.history import read_history
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.config.read import find_config, read_config
from agenteval.run.pipeline import make_directory
from agenteval.run.resolve.presentation import presentation
from agenteval.run.settings import Settings


def compare_files(current: Path, baseline: Path, fail_on: str | None) -> int:
    """Compare two results files and judge the first.

    Raises:
        ConfigError: a file cannot be read, or ``fail_on`` is wrong.
    """
    try:
        words = parse_fail_on(fail_on) if fail_on is not None else frozenset[FailOn]()
    except ValueError as error:
        raise ConfigError(Problem(f"--fail-on: {error}")) from None
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    config = read_config(find_config(None, [Path.cwd()]))
    now, _ = read_run(current)
    then, notes = read_run(baseline, suites_of(now))
    known = {case.id for _, case in now.cases()}
    comparison = Comparer(now, then, known, config.compare, notes=notes).decide()
    results = now.model_copy(update={"comparison": comparison})
    gate = decide_gate(results, config.gate if fail_on is None else replace(config.gate, fail_on=words))
    print_table(results, _view(gate, results), sys.stdout)
    return gate.exit_status


def render_again(path: Path, settings: Settings, out: Path | None) -> int:
    """Write the rendered reports of a results file.

    Args:
        path: the file, or the report directory that holds it.
        settings: of them the history and the templates.
        out: where to; beside the file if not given.

    Raises:
        ConfigError: the file or a template cannot be read.
        InfrastructureError: the reports cannot be written.
    """
    results = read_results(path)
    config = read_config(find_config(None, [Path.cwd()]))
    look = presentation(settings, config, os.environ)
    directory = out or (path if path.is_dir() else path.parent)
    make_directory(directory)
    gate = decide_gate(results, config.gate)
    past = read_history(settings.history)
    view = _view(gate, results)
    view = replace(view, warnings=(*view.warnings, *past.warnings))
    view = render_reports(results, view, directory, InMemory(), past.runs, presentation=look)
    print_table(results, view, sys.stdout)
    return 0


def _view(gate: Gate, results: Results) -> GateView:
    notes = tuple(results.comparison.notes) if results.comparison else ()
    return GateView(passed=gate.passed, headline=gate.headline, reasons=gate.reasons, warnings=notes)
