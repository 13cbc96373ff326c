"""Merges results files into one run, which is compared, decided on and reported like any run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from agenteval.compare.pairing import pool_entry
from agenteval.core.errors import ConfigError, Problem
from agenteval.report.write import print_table, write_reports
from agenteval.results.analysis.answers import EvaluatedAnswer, evaluated
from agenteval.results.archive import InMemory
from agenteval.results.merge import Merged, merge
from agenteval.results.merge_parts import Part
from agenteval.results.model import Results, RunUsage, SuiteResult
from agenteval.results.store import RESULTS_FILE, read_results
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import compare_first
from agenteval.run.context import RunContext
from agenteval.run.outcome import RunOutcome, decide, make_directory_of_run
from agenteval.run.resolve.merge import resolve_merge
from agenteval.run.runner.execution import Execution
from agenteval.run.settings import Settings
from agenteval.suite.model import Suite


def merge_files(
    files: Sequence[Path],
    out: Path,
    settings: Settings,
    context: RunContext | None = None,
    stream: TextIO | None = None,
) -> RunOutcome:
    """Merge results files, compare the merged run with the baseline, let the gate decide, and write every report.

    Nothing runs again: the merged run decides alone, as with ``confirm: off``.

    Args:
        files: results files, or report directories.
        out: the file to write, or the directory that gets a results.json; the other reports are beside it.
        settings: name configuration, baseline, history and templates, and what fails the gate.
        context: what the place of the merge contributes; nothing by default.
        stream: receives the final table; standard output by default.

    Raises:
        ConfigError: a file cannot be read, the files do not belong together, or an option is wrong.
        InfrastructureError: the reports cannot be written.
    """
    target = out if out.suffix == ".json" and not out.is_dir() else out / RESULTS_FILE
    merged = merge(_read(files, target))
    spec = resolve_merge(merged, settings, context)
    execution = _execution(merged, spec.suites)
    evaluations = _evaluated(merged.results, spec.suites, execution)
    make_directory_of_run(target.parent)
    results = evaluations.results
    if merged.fingerprints:
        results = results.model_copy(update={"pool": [pool_entry(results, merged.fingerprints)]})
    first = compare_first(results, spec, execution)
    outcome = decide(first.compared, spec, execution, evaluations.warnings)
    report = write_reports(outcome.report(spec.earlier, evaluations), outcome.results, target)
    outcome = replace(outcome, view=report.gate)
    print_table(outcome.results, outcome.view, stream or sys.stdout)
    return outcome


def _read(files: Iterable[Path], target: Path) -> list[Part]:
    """The runs in files; every file that is wrong is named."""
    parts: list[Part] = []
    problems: list[Problem] = []
    for file in (path / RESULTS_FILE if path.is_dir() else path for path in files):
        try:
            parts.append(Part(str(file), read_results(file)))
        except ConfigError as error:
            problems += error.problems
        if file.resolve() == target.resolve():
            problems.append(Problem("-o: this file is one of those to merge, and would be lost", file=str(file)))
    if problems:
        raise ConfigError(problems)
    return parts


def _execution(merged: Merged, suites: Sequence[Suite]) -> Execution:
    results = merged.results
    turns = [turn for _, case in results.cases() for iteration in case.iterations for turn in iteration.turns]
    skipped = results.summary.skipped == results.summary.cases
    return Execution(
        run_id=results.run.id,
        started=datetime.fromisoformat(results.run.started_at).timestamp(),
        duration_s=results.run.duration_s,
        cases={suite.path: suite.cases for suite in results.suites},
        summary=results.summary,
        asked=RunUsage(),
        total=results.summary.cases,
        answers=_answers(results, suites),
        archive=InMemory(),
        nothing_to_check=skipped and all(turn.response is None and turn.error is None for turn in turns),
    )


def _answers(results: Results, suites: Sequence[Suite]) -> dict[str, list[EvaluatedAnswer]]:
    """What analyses need, of the suites that want to know something of the run as a whole."""
    asking = {suite.path: suite for suite in suites if suite.evaluation is not None}
    return {
        suite.path: list(_answers_of(suite, asking[suite.path]))
        for suite in results.suites
        if suite.path in asking and suite.cases
    }


def _answers_of(results: SuiteResult, suite: Suite) -> Iterator[EvaluatedAnswer]:
    personas = {case.id: case.persona for case in suite.cases}
    for case in results.cases:
        for iteration in case.iterations:
            yield evaluated(case, iteration, personas.get(case.id), {"success": iteration.status != "error"})


def _evaluated(results: Results, suites: Sequence[Suite], execution: Execution) -> SuiteAnalyses:
    """The run with the criteria of its suites, as far as these are here to say what they mean."""
    evaluations = SuiteAnalyses(results)
    if execution.answers:
        from agenteval.run.analyse import evaluate_suites

        evaluations = evaluate_suites(suites, execution.answers, results)
    unknown = [suite.path for suite in results.suites if suite.criteria and suite.path not in execution.answers]
    message = "its criteria could not be checked: the suite is not here, or is another than that of the run"
    warnings = (*evaluations.warnings, *(f"{path}: {message}" for path in unknown))
    return replace(evaluations, warnings=warnings)
