"""Merges results files into one run, then compares, judges and reports it like any run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from agenteval.core.errors import ConfigError, Problem
from agenteval.report.write import print_table, render_reports
from agenteval.results.analysis.answers import EvaluatedAnswer, evaluated
from agenteval.results.archive import InMemory
from agenteval.results.history import read_history
from agenteval.results.merge import Merged, merge
from agenteval.results.merge_parts import Part
from agenteval.results.model import Results, RunUsage, SuiteResult
from agenteval.results.store import RESULTS_FILE, read_results, results_json, write_atomic
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.baseline import FoundBaseline, Search, masked
from agenteval.run.compare import compare_first
from agenteval.run.config.model import Config
from agenteval.run.config.read import find_config, read_config
from agenteval.run.pipeline import Outcome, check_baseline, decide, make_directory
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.defaults import with_config_defaults
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.spec import Loaded, redactor
from agenteval.run.runner.execution import Execution
from agenteval.run.settings import Settings
from agenteval.suite.formats.registry import load_suites
from agenteval.suite.model import Suite


def merge_files(files: Sequence[Path], out: Path, settings: Settings, stream: TextIO | None = None) -> Outcome:
    """Merge results files, compare what they make together, judge it, and write every report.

    Nothing is run again: what looks worse is decided by the merged run alone, as with ``confirm: off``.

    Args:
        files: results files, or report directories.
        out: the file to write, or the directory that gets a results.json; the other reports are beside it.
        settings: of them the configuration, the baseline, the history, and what fails the gate.
        stream: where the final table goes; standard output if not given.

    Raises:
        ConfigError: a file cannot be read, the files do not belong together, or an option is wrong.
        InfrastructureError: the reports cannot be written.
    """
    target = out if out.suffix == ".json" and not out.is_dir() else out / RESULTS_FILE
    merged = merge(_read(files, target))
    loaded = _loaded(merged, settings)
    execution = _execution(merged, loaded)
    evaluations = _evaluated(merged.results, loaded, execution)
    make_directory(target.parent)
    past = read_history(settings.history)
    look = compare_first(evaluations.results, loaded, replace(settings, out=target.parent), execution)
    outcome = decide(look.compared, loaded, settings, execution, (*evaluations.warnings, *past.warnings))
    write_atomic(target, results_json(outcome.results, execution.archive))
    view = render_reports(
        outcome.results,
        outcome.view,
        target.parent,
        execution.archive,
        past.runs,
        presentation=loaded.presentation,
    )
    outcome = replace(outcome, view=view)
    evaluations.write(target.parent)
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


def _loaded(merged: Merged, settings: Settings) -> Loaded:
    """What a run would have loaded to compare and judge the merged one."""
    places = [place for suite in merged.results.suites if (place := _place(suite.path)) is not None]
    config = read_config(find_config(settings.config, [Path.cwd(), *(place.parent for place in places)]))
    suites = _suites_here(merged.results.suites, places, config)
    redact = redactor(config.secrets.union(*(suite.secrets for suite in suites)))
    search = _baseline(settings, merged.results)
    found = search.found
    return Loaded(
        suites=suites,
        config=_without_confirmation(config),
        selected={},
        agents={},
        baseline=replace(found, results=masked(found.results, redact)) if found else None,
        warnings=(*config.warnings, *merged.warnings, *search.warnings),
        redact=redact,
        presentation=presentation(settings, config, os.environ),
    )


def _without_confirmation(config: Config) -> Config:
    parameters = replace(config.compare.parameters, confirm="off")
    return replace(config, compare=replace(config.compare, parameters=parameters))


def _baseline(settings: Settings, results: Results) -> Search:
    """The run to compare with, where one is asked for and there is one."""
    if settings.baseline is not None:
        return Search(_baseline_in(settings.baseline, results))
    if settings.baseline_source is not None:
        return settings.baseline_source.search([case.id for _, case in results.cases()])
    return Search()


def _baseline_in(path: Path, results: Results) -> FoundBaseline:
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import suites_of

    try:
        baseline, notes = read_run(path, suites_of(results))
    except ConfigError as error:
        raise ConfigError(
            replace(problem, message=f"--baseline: {problem.message}") for problem in error.problems
        ) from None
    check_baseline(baseline, path)
    return FoundBaseline(baseline, notes)


def _place(path: str) -> Path | None:
    """Where a suite lies here, if it does: the inverse of `display_path`."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    try:
        return root / path if (root / path).is_file() else None
    except OSError:
        # Too long for the name of a file.
        return None


def _suites_here(suites: Sequence[SuiteResult], places: Sequence[Path], config: Config) -> list[Suite]:
    """The suites that lie here and still ask and judge what they did in the run."""
    fingerprints = {suite.path: suite.fingerprint for suite in suites}
    # What is wrong with a suite here is no matter: then it is another than that of the run.
    found = load_suites(places, [])
    wished = (_bound(with_config_defaults(suite, config), config) for suite in found)
    return [suite for suite in wished if fingerprints.get(suite.path) == suite.fingerprint]


def _bound(suite: Suite, config: Config) -> Suite:
    """The suite with every ``*`` written out, where it is known who that is."""
    try:
        return bind(suite, None, config).suite
    except ConfigError:
        return suite


def _execution(merged: Merged, loaded: Loaded) -> Execution:
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
        fingerprints=merged.fingerprints,
        answers=_answers(results, loaded),
        archive=InMemory(),
        nothing_to_check=skipped and all(turn.response is None and turn.error is None for turn in turns),
    )


def _answers(results: Results, loaded: Loaded) -> dict[str, list[EvaluatedAnswer]]:
    """What analyses need, of the suites that want to know something of the run as a whole."""
    asking = {suite.path: suite for suite in loaded.suites if suite.evaluation is not None}
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


def _evaluated(results: Results, loaded: Loaded, execution: Execution) -> SuiteAnalyses:
    """The run with the criteria of its suites, as far as these are here to say what they mean."""
    evaluations = SuiteAnalyses(results)
    if execution.answers:
        from agenteval.run.analyse import evaluate_suites

        evaluations = evaluate_suites(loaded.suites, execution.answers, results)
    unknown = [suite.path for suite in results.suites if suite.criteria and suite.path not in execution.answers]
    message = "its criteria could not be checked: the suite is not here, or is another than that of the run"
    warnings = (*evaluations.warnings, *(f"{path}: {message}" for path in unknown))
    return replace(evaluations, warnings=warnings)
