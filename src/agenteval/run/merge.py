"""Merges results files into one run, then compares it, applies the gate and writes the reports."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from agenteval.compare.run_scores import pool_entry
from agenteval.core.errors import ConfigError, Problem
from agenteval.report.write import print_table, write_reports
from agenteval.results.analysis.answers import EvaluatedAnswer, evaluated
from agenteval.results.archive import InMemory
from agenteval.results.case import SuiteResult
from agenteval.results.merge import Merged, merge
from agenteval.results.merge_parts import Part
from agenteval.results.model import Results
from agenteval.results.shortening import shortened_values
from agenteval.results.store import RESULTS_FILE, read_results
from agenteval.results.summary import RunUsage
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import compare_first
from agenteval.run.context import RunContext
from agenteval.run.integrity.finished import merged_by_base, with_integrity
from agenteval.run.outcome import RunOutcome, decide, report_directory_of_run
from agenteval.run.resolve.merge import resolve_merge
from agenteval.run.runner.execution import RunExecution
from agenteval.run.settings import Settings
from agenteval.suite.model import Suite


def merge_files(
    files: Sequence[Path],
    out: Path,
    settings: Settings,
    context: RunContext | None = None,
    stream: TextIO | None = None,
) -> RunOutcome:
    """Merge results files, compare the merged run with the baseline, apply the gate, and write every report.

    No case runs again: the merged run alone decides.

    Args:
        files: results files, or report directories.
        out: the file to write, or the directory for a results.json; other reports are written beside it.
        settings: the configuration, baseline, history, templates, and what fails the gate.
        context: additions of the environment; none by default.
        stream: receives the final table; standard output by default.

    Raises:
        ConfigError: a file cannot be read, the files do not belong together, or an option is invalid.
        InfrastructureError: the reports cannot be written.
    """
    target = out if out.suffix == ".json" and not out.is_dir() else out / RESULTS_FILE
    merged = merge(_read(files, target))
    spec = resolve_merge(merged, settings, context)
    execution = _execution(merged, spec.suites)
    evaluations = _evaluated(merged.results, spec.suites, execution)
    results = evaluations.results
    if merged.fingerprints:
        results = results.model_copy(update={"pool": [pool_entry(results, merged.fingerprints)]})
    spec = merged_by_base(spec, settings, context or RunContext(), results)
    results = with_integrity(results, spec.integrity)
    first = compare_first(results, spec, execution)
    outcome = decide(first.compared, spec, execution, evaluations.warnings)
    with report_directory_of_run(target.parent):
        report = write_reports(outcome.report(spec.earlier, evaluations), outcome.results, target)
    outcome = replace(outcome, view=report.gate)
    print_table(outcome.results, outcome.view, stream or sys.stdout)
    return outcome


def _read(files: Iterable[Path], target: Path) -> list[Part]:
    """Return the runs in files, or raise an error that names every invalid file."""
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


def _execution(merged: Merged, suites: Sequence[Suite]) -> RunExecution:
    results = merged.results
    turns = [turn for _, case in results.cases() for turn in case.turns]
    skipped = results.summary.skipped == results.summary.cases
    return RunExecution(
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
    """Return the answers that analyses need, by path of each suite that defines one."""
    asking = {suite.path: suite for suite in suites if suite.evaluation is not None}
    return {
        suite.path: list(_answers_of(suite, asking[suite.path]))
        for suite in results.suites
        if suite.path in asking and suite.cases and not _has_shortened_calls(suite, asking[suite.path])
    }


def _has_shortened_calls(results: SuiteResult, suite: Suite) -> bool:
    """Return whether a criterion reads tool calls of which the results contain only the beginning."""
    criteria = suite.evaluation.criteria if suite.evaluation else None
    asks = criteria is not None and bool(criteria.tool_calls)
    return asks and any(shortened_values(case, ("tool_calls",)) for case in results.cases)


def _answers_of(results: SuiteResult, suite: Suite) -> Iterator[EvaluatedAnswer]:
    personas = {case.id: case.persona for case in suite.cases}
    for case in results.cases:
        for iteration in case.iterations:
            yield evaluated(case, iteration, personas.get(case.id), {"success": True})


def _evaluated(results: Results, suites: Sequence[Suite], execution: RunExecution) -> SuiteAnalyses:
    """Return the run with the criteria of its suites, if the suites are available."""
    evaluations = SuiteAnalyses(results)
    if execution.answers:
        from agenteval.run.analyse import evaluate_suites

        evaluations = evaluate_suites(suites, execution.answers, results)
    unknown = [suite.path for suite in results.suites if suite.criteria and suite.path not in execution.answers]
    message = (
        "its criteria could not be checked: the suite is not available, or has changed since the run, or tool calls "
        "that a criterion reads are shortened (`max_answer_bytes`)"
    )
    warnings = (*evaluations.warnings, *(f"{path}: {message}" for path in unknown))
    return replace(evaluations, warnings=warnings)
