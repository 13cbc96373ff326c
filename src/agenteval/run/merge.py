"""Merges results files into one run, then compares it, applies the gate and writes the reports."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import replace
from agenteval.core.runtime import finished_first
from agenteval.core.writing import remove_regular_file
from agenteval.report.report import print_result, results_identity
from agenteval.report.terminal_lines import NextCommands, TerminalDetail, next_commands
from agenteval.results.analysis.answers import EvaluatedAnswer, evaluated
from agenteval.results.case import SuiteResult
from agenteval.results.importers.detect import read_run
from agenteval.results.masking import shortened_values
from agenteval.results.merge import MissingShardError, RunToMerge, merge, missing_shards
from agenteval.results.model import Results
from agenteval.results.rollup import check_consistent
from agenteval.results.store import RESULTS_FILE
from agenteval.run.compare import compare_first, rescored_baseline
from agenteval.run.config import Settings
from agenteval.run.context import RunContext
from agenteval.run.git import Provenance
from agenteval.run.outcome import RunOutcome, SuiteAnalyses, decide, report_directory, reported
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.configurations import check_directory, problem_of_another_run
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.resolve_saved import check_origin, resolve_merge
from agenteval.run.rules.base import with_integrity
from agenteval.run.store import CONFIRMATION_FILE, JOURNAL_FILE, remove_journals
from agenteval.suite.model import Suite


def merge_files(
    files: Sequence[Path],
    out: Path,
    settings: Settings,
    context: RunContext | None = None,
    stream: TextIO | None = None,
) -> RunOutcome:
    """Merge results files, compare the merged run with the baseline, apply the gate, and write every report.

    No case runs again: the merged run alone decides, or what the shards of its proof have shown.
    """
    context = context or RunContext()
    target = out if out.suffix == ".json" and not out.is_dir() else out / RESULTS_FILE
    check_directory(target.parent, files)
    parts, notes = _read(files)
    if target.name != RESULTS_FILE and results_identity(target.parent) is not None:
        raise ConfigError(problem_of_another_run(target.parent))
    merged = merge(parts)
    for part in parts:
        check_origin(part, context)
    results = _of(context.provenance, merged.results)
    if len(parts) == 1 and parts[0].run.shard is None:
        # A whole run brings what it has proven.
        results = results.model_copy(update={"comparison": parts[0].results.comparison})
    merged = replace(merged, results=results, warnings=(*merged.warnings, *notes))
    if parts[0].shard.proof is not None:
        from agenteval.run.prove import merged_proof

        outcome, spec = merged_proof(merged, parts, settings, context)
        analyses = None
    else:
        spec, results = resolve_merge(merged, settings, context)
        outcome, analyses = decide_finished(results, spec)
    check_directory(target.parent, spec.output.inputs)
    with finished_first(), report_directory(target.parent):
        # First, so that a killed merge leaves no results of an earlier one.
        remove_regular_file(target.parent, target.name)
        if target.name == RESULTS_FILE:
            remove_journals(target.parent)
        outcome = reported(outcome, spec, analyses, target)
    # In a workflow the page is in an artifact.
    commands = None if context.provenance is not None else next_commands(target.parent)
    detail = TerminalDetail(settings.verbosity, commands or NextCommands())
    print_result(outcome.report, stream or sys.stdout, detail)
    return outcome


def decide_finished(results: Results, spec: RunSpec) -> tuple[RunOutcome, SuiteAnalyses]:
    """Compare a finished run with its baseline, and apply the gate; no case runs again.

    What the run has proven beside the same baseline holds.
    """
    execution = _execution(results, spec.suites)
    analyses = _evaluated(results, spec.suites, execution)
    baseline = rescored_baseline(spec, (case for suite in spec.suites for case in suite.cases))
    current = with_integrity(analyses.results, spec.integrity)
    if baseline is None:
        current = current.model_copy(update={"comparison": None})
    first = compare_first(current, spec, baseline, execution)
    return decide(first, spec, execution, analyses.warnings), analyses


def _of(provenance: Provenance | None, results: Results) -> Results:
    if provenance is None:
        return results
    run = results.run
    known = {
        "commit": run.commit or provenance.commit,
        "ref": run.ref or provenance.ref,
        "base_ref": run.base_ref or provenance.base_ref,
        "repository": run.repository or provenance.repository,
        "workflow_run_id": run.workflow_run_id or provenance.workflow_run_id,
        "workflow_artifact": run.workflow_artifact or provenance.artifact,
    }
    return results.model_copy(update={"run": run.model_copy(update=known)})


def _read(files: Iterable[Path]) -> tuple[list[RunToMerge], list[str]]:
    parts: list[RunToMerge] = []
    notes: dict[str, None] = {}
    problems: list[Problem] = []
    killed: list[Problem] = []
    for file in (path / RESULTS_FILE if (path / RESULTS_FILE).is_file() else path for path in files):
        if file.is_dir() and _has_no_results(file):
            finish = ", or finish it with --resume" if (file / JOURNAL_FILE).is_file() else ""
            killed.append(Problem(f"its run was killed; repeat it{finish}", str(file), kind=Kind.MERGE))
            continue
        try:
            results, missing = read_run(file)
            check_consistent(results, file)
            parts.append(RunToMerge(str(file), results))
            notes |= dict.fromkeys(missing)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError([*problems, *killed])
    if killed:
        raise MissingShardError([*missing_shards(parts), *killed])
    return parts, list(notes)


def _has_no_results(directory: Path) -> bool:
    # A proof has no journal before its first pass.
    names = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
    return not names or any(name == JOURNAL_FILE or CONFIRMATION_FILE.fullmatch(name) for name in names)


def _execution(results: Results, suites: Sequence[Suite]) -> RunExecution:
    turns = [turn for _, case in results.cases() for turn in case.turns]
    skipped = results.summary.skipped == results.summary.cases
    return replace(
        RunExecution.of(results),
        answers=_answers(results, suites),
        nothing_to_check=skipped and all(turn.response is None and turn.error is None for turn in turns),
    )


def _answers(results: Results, suites: Sequence[Suite]) -> dict[str, list[EvaluatedAnswer]]:
    asking = {suite.path: suite for suite in suites if suite.evaluation is not None}
    return {
        suite.path: list(_answers_of(suite, asking[suite.path]))
        for suite in results.suites
        if suite.path in asking
        and suite.cases
        and not _has_shortened_calls(suite, asking[suite.path])
        # Of traces.
        and all(case.cluster is None for case in suite.cases)
    }


def _has_shortened_calls(results: SuiteResult, suite: Suite) -> bool:
    criteria = suite.evaluation.criteria if suite.evaluation else None
    asks = criteria is not None and bool(criteria.tool_calls)
    return asks and any(shortened_values(case, ("tool_calls",)) for case in results.cases)


def _answers_of(results: SuiteResult, suite: Suite) -> Iterator[EvaluatedAnswer]:
    personas = {case.id: case.persona for case in suite.cases}
    for case in results.cases:
        for iteration in case.iterations:
            yield evaluated(case, iteration, personas.get(case.id), {"success": True})


def _evaluated(results: Results, suites: Sequence[Suite], execution: RunExecution) -> SuiteAnalyses:
    evaluations = SuiteAnalyses(results)
    if execution.answers:
        from agenteval.run.outcome import evaluate_suites

        evaluations = evaluate_suites(suites, execution.answers, results)
    unknown = [
        suite.path
        for suite in results.suites
        if suite.path not in execution.answers and any(criterion.met is None for criterion in suite.criteria)
    ]
    message = (
        "its criteria could not be checked: the suite is not available, or has changed since the run, or the results "
        "do not contain what a criterion reads: shortened tool calls (`max_answer_bytes`), or what traces report"
    )
    warnings = (*evaluations.warnings, *(f"{path}: {message}" for path in unknown))
    return replace(evaluations, warnings=warnings)
