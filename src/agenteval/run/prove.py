"""``agenteval prove``: runs what may be worse in a results file side by side with the base commit."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.runtime import signals_taken
from agenteval.gate.comparer import Comparer, Decision, answered
from agenteval.gate.comparison import replace_decision
from agenteval.gate.decide import prove
from agenteval.gate.proof import GateSuspicion
from agenteval.report.report import print_result, write_reports
from agenteval.report.terminal_lines import TerminalDetail, next_commands
from agenteval.results.model import Results, RunUsage
from agenteval.results.store import IN_MEMORY, RESULTS_FILE, read_results
from agenteval.run.baseline import FoundBaseline
from agenteval.run.compare import ComparedRun, with_usage
from agenteval.run.config import Settings
from agenteval.run.confirm.passes import Passes, passes_of
from agenteval.run.outcome import RunOutcome, decide, report_directory
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.resolve_run import resolve
from agenteval.run.setup import users_code


def prove_file(path: Path, settings: Settings) -> int:
    """Prove or clear what may be worse in a results file, and write its verdict and reports again.

    The suites and the agent are those of the working directory; the base commit is that of the file's baseline.

    Args:
        settings: the configuration, and what fails the gate.

    Returns:
        The exit status of the gate.

    Raises:
        ConfigError: the file cannot be read, or was compared with nothing.
    """
    results = read_results(path)
    comparison = results.comparison
    if comparison is None or results.run.shard is not None:
        message = "there is nothing to prove: it was compared with no baseline"
        raise ConfigError(Problem(message, file=str(path), kind=Kind.RESULTS))
    directory = path if path.is_dir() else path.parent
    suites = tuple(Path(suite.path) for suite in results.suites)
    # The base commit is that of the baseline, of which the file has only the name.
    run = results.run.model_copy(update={"commit": comparison.baseline.commit, "ref": comparison.baseline.ref})
    base = FoundBaseline(results.model_copy(update={"run": run, "comparison": None}))
    own = replace(settings, suites=suites, out=directory)
    with resolve(own, baseline=base) as spec:
        execution = _execution(results)
        with (
            report_directory(directory),
            users_code(spec.setup, spec.redact),
            signals_taken() as signals,
            passes_of(spec, execution, spec.control.base) as passes,
        ):
            outcome = _proven(results, spec, execution, passes)
        outcome = outcome.ended_by(signals.held)
        report = write_reports(outcome.report, directory / RESULTS_FILE)
    detail = TerminalDetail(settings.verbosity, next_commands(directory))
    print_result(report, sys.stdout, detail)
    return outcome.exit_status


def _proven(results: Results, spec: RunSpec, execution: RunExecution, passes: Passes) -> RunOutcome:
    comparison = results.comparison
    suspicions = [] if comparison is None else comparison.suspicions
    found = results
    if comparison is not None and suspicions and comparison.word in {"suspicious", "unproven"}:
        alone = results.model_copy(update={"comparison": None})
        # Its only earlier run is itself, which tells the metrics and what was asked.
        run = results.run.model_copy(update={"ref": comparison.baseline.ref})
        comparer = Comparer(
            alone, alone.model_copy(update={"run": run}), {case.id for _, case in results.cases()}, spec.compare
        )
        asked = [GateSuspicion(item.metric, item.case, item.p) for item in suspicions]
        evidence = comparer.sides.evidence
        out = answered(prove(evidence, asked, spec.compare.rules), (lambda ask: passes.again(ask, comparer.sides)))
        decision = Decision(out, commit=passes.commit)
        found = results.model_copy(update={"comparison": replace_decision(comparer, comparison, decision)})
    found = with_usage(found, passes.usage)
    notes = found.comparison.notes if found.comparison is not None else ()
    compared = ComparedRun(found, warnings=(*passes.warnings, *notes), signal=passes.signal)
    return decide(compared, spec, execution, ())


def _execution(results: Results) -> RunExecution:
    return RunExecution(
        run_id=results.run.id,
        started=datetime.fromisoformat(results.run.started_at).timestamp(),
        duration_s=0.0,
        cases={suite.path: suite.cases for suite in results.suites},
        summary=results.summary,
        asked=RunUsage(),
        total=results.summary.cases,
        answers={},
        archive=IN_MEMORY,
    )
