"""One run from suites to exit status: load, run, compare, judge, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from agenteval.compare.gate import BROKEN, PASSED, Gate, GatePolicy, decide_gate, quarantined
from agenteval.core.errors import ConfigError, InfrastructureError, Problem
from agenteval.core.version import __version__
from agenteval.report.presentation import Presentation
from agenteval.report.view.view import GateView, count
from agenteval.report.write import print_table, write_reports
from agenteval.results.archive import Archive
from agenteval.results.history import EarlierRun, read_history
from agenteval.results.model import Results, Run, RunShard, SuiteResult, Tool
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import ComparedRun, compare_first, confirm_and_compare
from agenteval.run.provenance import Provenance, provenance
from agenteval.run.resolve.plan import make_plan, make_trace_plan, one_shard
from agenteval.run.resolve.spec import Loaded, load
from agenteval.run.runner.execute import execute
from agenteval.run.runner.execution import Execution
from agenteval.run.settings import Settings
from agenteval.run.setup import users_code


@dataclass(frozen=True)
class Outcome:
    """What a run led to.

    Attributes:
        archive: where the cases of the results are in full.
        quarantined: ids of cases that did not count.
        presentation: how comment and summary look.
    """

    results: Results
    gate: Gate
    view: GateView
    exit_status: int
    archive: Archive
    quarantined: frozenset[str] = frozenset()
    presentation: Presentation = field(default_factory=Presentation)


def run(settings: Settings, place: Provenance | None = None, stream: TextIO | None = None) -> Outcome:
    """Run suites, compare, judge, and write every report.

    Args:
        settings: what to run and how.
        place: the commit that is evaluated; found out if not given.
        stream: where the final table goes; standard output if not given.

    Raises:
        ConfigError: a suite, the configuration or an option is wrong; nothing was run.
        InfrastructureError: the reports cannot be written, or a command of ``setup`` failed.
    """
    loaded, part = _loaded(settings)
    make_directory(settings.out)
    with users_code(loaded.config, settings, loaded.redact):
        return _run(loaded, part, settings, place, stream or sys.stdout)


def _run(
    loaded: Loaded, part: RunShard | None, settings: Settings, place: Provenance | None, stream: TextIO
) -> Outcome:
    """Everything from the first case to the final table."""
    past = read_history(settings.history)
    execution = _executed(loaded, settings)
    results = _results(loaded, execution, place or provenance(os.environ, Path.cwd()), part, settings.seed)
    evaluations = _evaluated(loaded, execution, results)
    look = compare_first(evaluations.results, loaded, settings, execution)
    further = (*evaluations.warnings, *past.warnings)
    outcome = _reported(decide(look.compared, loaded, settings, execution, further), settings.out, past.runs)
    evaluations.write(settings.out)
    if look.needs_confirmation:
        # Whatever becomes of the runs that settle it, the reports of the first one are there.
        compared = confirm_and_compare(look, loaded, settings, execution)
        outcome = _reported(decide(compared, loaded, settings, execution, further), settings.out, past.runs)
    print_table(outcome.results, outcome.view, stream)
    return outcome


def _reported(outcome: Outcome, directory: Path, earlier: Sequence[EarlierRun]) -> Outcome:
    view = write_reports(
        outcome.results, outcome.view, directory, outcome.archive, earlier, presentation=outcome.presentation
    )
    return replace(outcome, view=view)


def make_directory(path: Path) -> None:
    """Make the report directory.

    Raises:
        InfrastructureError: it cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make the report directory {path}: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise InfrastructureError(f"cannot write to the report directory {path}: permission denied")


def _loaded(settings: Settings) -> tuple[Loaded, RunShard | None]:
    """Everything that the run needs, and which part of a run it is.

    Raises:
        ConfigError: a suite, the configuration or an option is wrong.
    """
    if settings.shard is not None and settings.traces is not None:
        message = "recorded traces cannot be divided; give each machine files of its own instead"
        raise ConfigError(Problem(f"--shard with --traces: {message}"))
    if settings.resume and settings.traces is not None:
        message = "recorded traces are scored from the start; what judges said is in the cache"
        raise ConfigError(Problem(f"--resume with --traces: {message}"))
    if settings.max_time_s is not None and settings.traces is not None:
        message = "recorded traces call no agent; what judges may take is limited by `llm:` in agenteval.yaml"
        raise ConfigError(Problem(f"--max-time with --traces: {message}"))
    loaded = load(settings)
    if loaded.baseline is not None:
        check_baseline(loaded.baseline.results, settings.baseline)
    return (loaded, None) if settings.shard is None else one_shard(loaded, settings.shard)


def check_baseline(results: Results, file: Path | None) -> None:
    """See that a baseline is a run that others can be compared with.

    Args:
        results: the baseline.
        file: where it was read, if from a file.

    Raises:
        ConfigError: it is only a part of a run.
    """
    part = results.run.shard
    if part is not None:
        message = f"this is shard {part.index} of {part.count} of a run; merge them first, with agenteval merge"
        raise ConfigError(Problem(f"--baseline: {message}", file=str(file or "")))


def _executed(loaded: Loaded, settings: Settings) -> Execution:
    if settings.traces is None:
        return execute(make_plan(loaded, settings))
    from agenteval.run.runner.traces import score_traces

    return score_traces(make_trace_plan(loaded, settings, settings.traces))


def _evaluated(loaded: Loaded, execution: Execution, results: Results) -> SuiteAnalyses:
    if results.run.shard is not None:
        from agenteval.run.shard import with_open_criteria

        return SuiteAnalyses(with_open_criteria(loaded.suites, results))
    if not execution.answers:
        return SuiteAnalyses(results)
    from agenteval.run.analyse import evaluate_suites

    return evaluate_suites(loaded.suites, execution.answers, results)


def _results(
    loaded: Loaded, execution: Execution, place: Provenance, part: RunShard | None, seed: int | None
) -> Results:
    suites = [
        SuiteResult(
            path=suite.path,
            name=loaded.redact(suite.name),
            format=suite.format,
            fingerprint=suite.fingerprint,
            threshold=suite.aggregate.threshold if suite.aggregate else None,
            cases=list(execution.cases.get(suite.path, ())),
        )
        for suite in loaded.suites
    ]
    return Results(
        tool=Tool(version=__version__),
        run=Run(
            id=execution.run_id,
            started_at=_timestamp(execution.started),
            finished_at=_timestamp(execution.started + execution.duration_s),
            duration_s=round(execution.duration_s, 3),
            complete=execution.complete,
            commit=place.commit,
            ref=place.ref,
            repository=place.repository,
            workflow_run_id=place.workflow_run_id,
            shard=part,
            seed=seed,
        ),
        summary=execution.summary,
        suites=suites,
    )


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def decide(
    compared: ComparedRun, loaded: Loaded, settings: Settings, execution: Execution, further: Sequence[str]
) -> Outcome:
    """Let the gate decide, and put what there is to say into words.

    Args:
        compared: the run, with its comparison if there is one.
        loaded: its configuration.
        settings: what the command line overrules.
        execution: how it ended.
        further: warnings besides those of these.
    """
    results = compared.results
    policy = loaded.config.gate
    if settings.fail_on is not None:
        policy = replace(policy, fail_on=settings.fail_on)
    gate = _gate(results, policy)
    status = gate.exit_status
    signal = execution.signal or compared.signal
    if signal is not None:
        status = 128 + signal
    elif execution.nothing_to_check and results.run.shard is None:
        status = ConfigError.exit_status
    elif execution.unfinished and "errors" in policy.fail_on and status == PASSED:
        status = BROKEN
    headline, reasons = gate.headline, gate.reasons
    if execution.signal is not None:
        headline = f"{results.summary.cases} of {execution.total} cases had finished"
        reasons = gate.reasons if results.summary.cases else ()
    elif execution.unfinished:
        cases = count(execution.total, "case")
        headline = f"the time is up: {execution.unfinished} of {cases} did not come to an end"
        reasons = tuple(dict.fromkeys((gate.headline, *gate.reasons)))
    elif compared.signal is not None:
        headline = "interrupted while what looks worse was run again"
    warnings = (*settings.warnings, *loaded.warnings, *execution.warnings, *further, *compared.warnings)
    view = GateView(
        passed=status == 0,
        headline=headline,
        reasons=reasons,
        warnings=tuple(loaded.redact(text) for text in warnings),
    )
    return Outcome(
        results=results,
        gate=gate,
        view=view,
        exit_status=status,
        archive=execution.archive,
        quarantined=quarantined(results, loaded.config.gate),
        presentation=loaded.presentation,
    )


def _gate(results: Results, policy: GatePolicy) -> Gate:
    """The gate's decision; it makes none on a part of a run."""
    part = results.run.shard
    if part is None:
        return decide_gate(results, policy)
    cases = f"{results.summary.cases} of {count(len(part.cases), 'case')}"
    return Gate(PASSED, f"shard {part.index} of {part.count}, {cases}; agenteval merge decides", ())
