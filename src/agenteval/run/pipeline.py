"""One run from what is asked to the exit status: resolve, plan, run, compare, confirm, decide, report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agenteval.report.report import Report
from agenteval.report.write import write_reports
from agenteval.results.model import Results
from agenteval.results.store import RESULTS_FILE
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import compare_first, confirm_and_compare
from agenteval.run.context import RunContext
from agenteval.run.outcome import RunOutcome, decide, make_directory_of_run
from agenteval.run.resolve.plan import make_plan
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.results import make_results
from agenteval.run.runner.execute import execute
from agenteval.run.runner.execution import Execution
from agenteval.run.settings import Settings
from agenteval.run.setup import users_code


def run(settings: Settings, context: RunContext | None = None) -> RunOutcome:
    """Run suites, compare with the baseline, let the gate decide, and write the reports that are asked for.

    Args:
        settings: what the caller asks for.
        context: what the place of the run contributes; nothing by default.

    Raises:
        ConfigError: a suite, the configuration or an option is wrong; nothing was run.
        InfrastructureError: the reports cannot be written, or a command of ``setup`` failed.
    """
    spec = resolve_run(settings, context)
    make_directory_of_run(spec.journal.parent)
    with users_code(spec.setup, spec.redact):
        return _run(spec)


def _run(spec: RunSpec) -> RunOutcome:
    """Run the cases, compare and report; confirm what looks worse, and report again."""
    execution = execute(make_plan(spec))
    analyses = _analyse(spec, execution, make_results(spec, execution))
    first = compare_first(analyses.results, spec, execution)
    outcome = decide(first.compared, spec, execution, analyses.warnings)
    outcome = _reported(outcome, outcome.report(spec.earlier, analyses), spec.out)
    if not first.needs_confirmation:
        return outcome
    # The reports of the first run exist by now, whatever happens to the confirmation run.
    confirmed = confirm_and_compare(first, spec, execution)
    outcome = decide(confirmed, spec, execution, analyses.warnings)
    return _reported(outcome, outcome.report(spec.earlier), spec.out)


def _analyse(spec: RunSpec, execution: Execution, results: Results) -> SuiteAnalyses:
    """Analyse each suite as a whole; a shard leaves its criteria open."""
    if spec.shard is not None:
        from agenteval.run.shard import with_open_criteria

        return SuiteAnalyses(with_open_criteria(spec.suites, results))
    if not execution.answers:
        return SuiteAnalyses(results)
    from agenteval.run.analyse import evaluate_suites

    return evaluate_suites(spec.suites, execution.answers, results)


def _reported(outcome: RunOutcome, report: Report, directory: Path | None) -> RunOutcome:
    """Write the reports that are asked for; the outcome then warns of each template that could not be used."""
    if directory is None:
        return outcome
    return replace(outcome, view=write_reports(report, outcome.results, directory / RESULTS_FILE).gate)
