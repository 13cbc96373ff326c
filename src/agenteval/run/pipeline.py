"""One run from its settings to its reports: resolve, judge by the base, run, compare, prove, decide, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.confine import under_rules, withheld_hint
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.runtime import signals_taken
from agenteval.gate.run_scores import pool_entry
from agenteval.report.report import Report, write_reports
from agenteval.results.case import CaseResult
from agenteval.results.history import why_no_baseline
from agenteval.results.model import Results, RunUsage
from agenteval.results.rollup import summarise
from agenteval.results.store import IN_MEMORY, RESULTS_FILE
from agenteval.run.compare import compare_first, comparer_of, prepared_control, prove_and_compare
from agenteval.run.config import CONFIG_FILE, Settings
from agenteval.run.context import RunContext
from agenteval.run.execute import execute
from agenteval.run.integrity.judged import apply_base_rules
from agenteval.run.journal import remove_confirmations
from agenteval.run.outcome import RunOutcome, SuiteAnalyses, decide, make_results, report_directory, unscored_metrics
from agenteval.run.plan import MayStop, PlannedCase, RunExecution, needs_whole_answers, with_open_criteria
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec, SuiteSpec, make_plan
from agenteval.run.setup import users_code
from agenteval.suite.agents import REPLAY

if TYPE_CHECKING:
    from agenteval.run.attempt import Attempt
    from agenteval.run.confirm.control import PreparedControl
    from agenteval.run.plan import Plan


def stopping(spec: RunSpec) -> MayStop | None:
    """Return what decides after each pass whether a first run may end; ``None`` if it makes all iterations.

    Runs of the base branch make all of them. So do runs of which something besides the comparison needs them: suites
    that state how often a case runs, metrics over all iterations, and cases that must pass.
    """
    # Imported here: most runs have no baseline.
    from agenteval.gate.pairing import continues_branch

    baseline = spec.baseline
    if baseline is None or spec.compare.first != "early" or continues_branch(spec.provenance, baseline.results.run):
        return None
    if not spec.cases or not all(map(_may_have_fewer, spec.cases)):
        return None
    if any(spec.gate.required.names(item.case) for item in spec.cases):
        return None
    fingerprints = {item.case.id: item.case.fingerprints for item in spec.cases}

    def may_stop(cases: Sequence[tuple[str, CaseResult]]) -> bool:
        results = _so_far(spec, cases)
        results = results.model_copy(update={"pool": [pool_entry(results, fingerprints)]})
        return comparer_of(results, spec, baseline).may_stop()

    return may_stop


def _may_have_fewer(item: PlannedCase) -> bool:
    """Return whether only the comparison needs all iterations of a case."""
    suite, case = item.suite, item.case
    is_stated = suite.iterations is not None or case.iterations is not None or case.strict or item.follow_recording
    return not is_stated and item.agent.kind != REPLAY and not needs_whole_answers(suite, case)


def _so_far(spec: RunSpec, cases: Sequence[tuple[str, CaseResult]]) -> Results:
    by_suite: dict[str, list[CaseResult]] = {}
    for path, case in cases:
        by_suite.setdefault(path, []).append(case)
    execution = RunExecution(
        run_id="",
        started=time.time(),
        duration_s=0.0,
        cases=by_suite,
        summary=summarise([case for _, case in cases]),
        asked=RunUsage(),
        total=len(cases),
        answers={},
        archive=IN_MEMORY,
    )
    return make_results(spec, execution)


# Other agents run elsewhere, with the judges' keys, or are recordings.
_USER_CODE = frozenset({"command", "command_tool", "python", "python_tool", "plugin", "framework", "project_runner"})


def run(settings: Settings, context: RunContext | None = None) -> RunOutcome:
    """Run suites, compare with the baseline, apply the gate, and write the requested reports.

    Args:
        context: additions of the environment; none by default.

    Raises:
        ConfigError: a suite, the configuration or an option is invalid; no case was run.
        InfrastructureError: the reports cannot be written, or a command of ``setup`` failed.
    """
    resolved = resolve_run(settings, context)
    with (
        apply_base_rules(resolved, settings, context.acceptances if context else None) as judged,
        prepared_control(judged) as control,
        report_directory(judged.journal.parent),
    ):
        spec = replace(judged, compare=replace(judged.compare, first="whole")) if settings.is_whole else judged
        attempt = _attempt(spec, context)
        if attempt is not None and attempt.shown is not None:
            return _shown_again(attempt.shown, attempt, attempt.spec(spec))
        with users_code(spec.setup, spec.redact):
            return _run(spec if attempt is None else attempt.spec(spec), control, attempt)


def _attempt(spec: RunSpec, context: RunContext | None) -> Attempt | None:
    """Begin an attempt of a pull request; ``None`` if the run is for none, or a shard, which decides nothing."""
    if context is None or context.attempts is None or spec.shard is not None:
        return None
    # Imported here: most runs are for no pull request.
    from agenteval.run.attempt import begin_attempt

    return begin_attempt(spec, context.attempts)


def _shown_again(shown: Results, attempt: Attempt, spec: RunSpec) -> RunOutcome:
    """Report the verdict of an earlier attempt."""
    from agenteval.run.attempt import shown_again

    outcome = shown_again(shown, attempt.memory, spec)
    if attempt.restore is not None and outcome.gate.passed:
        # A later run may continue a green attempt, to prove an improvement.
        attempt.restore(spec.journal.parent)
    return _reported(outcome, outcome.report(spec.earlier), spec.out)


def _planned(spec: RunSpec, attempt: Attempt | None) -> tuple[RunSpec, Plan]:
    """Return the plan of the run, which continues an attempt that was ended, if that is possible."""
    directory = spec.journal.parent
    if attempt is None or attempt.restore is None or not attempt.restore(directory):
        return spec, make_plan(spec)
    resumed = replace(spec, resume=True)
    try:
        return resumed, make_plan(resumed)
    except ConfigError:
        # The environment of the run has changed.
        remove_confirmations(directory)
        return spec, make_plan(spec)


def _run(spec: RunSpec, control: PreparedControl | AgentEvalError | None, attempt: Attempt | None) -> RunOutcome:
    """Run the cases and report. A signal ends the run, but not its reports."""
    spec, plan = _planned(spec, attempt)
    spec = _rescored(spec, plan)
    plan = replace(plan, may_stop=stopping(spec))
    with signals_taken() as signals:
        outcome = _executed(spec, plan, control, attempt)
    return outcome.ended_by(signals.held)


def _executed(
    spec: RunSpec, plan: Plan, control: PreparedControl | AgentEvalError | None, attempt: Attempt | None
) -> RunOutcome:
    """Run the cases, compare and report; then prove or clear suspicions and report again."""
    execution = execute(plan)
    analyses = _analyse(spec, execution, make_results(spec, execution))
    first = compare_first(analyses.results, spec, execution, control)
    of_change = _previewed(spec, analyses.results)
    warnings = (*analyses.warnings, *unscored_metrics(spec, execution), *_hints(spec, execution), *of_change)
    outcome = _recorded(decide(first.compared, spec, execution, warnings), attempt)
    outcome = _reported(outcome, outcome.report(spec.earlier, analyses), spec.out)
    if not first.needs_passes:
        return outcome
    # The reports of the first run are already written, so a failed pass loses nothing.
    proven = prove_and_compare(first, spec, execution, control)
    outcome = _recorded(decide(proven, spec, execution, warnings), attempt)
    return _reported(outcome, outcome.report(spec.earlier), spec.out)


def _rescored(spec: RunSpec, plan: Plan) -> RunSpec:
    """Return the specification with new scores of the baseline's answers, where only metrics changed."""
    if spec.baseline is None:
        return spec
    # Imported here: most runs have no baseline.
    from agenteval.run.rescore import with_rescored_baseline

    cases = [item.case for item in plan.known_cases or ()]
    return replace(spec, baseline=with_rescored_baseline(spec.baseline, cases, plan.limits.run_s))


def _previewed(spec: RunSpec, results: Results) -> tuple[str, ...]:
    """Return what the change's own rules would say about its answers, where those of the base commit decide."""
    if not any(item.kind == "metric" for item in spec.integrity.differences) or spec.shard is not None:
        return ()
    # Imported here: few changes change metrics.
    from agenteval.run.rescore import preview

    return preview(results, spec.proposed)


def _recorded(outcome: RunOutcome, attempt: Attempt | None) -> RunOutcome:
    return outcome if attempt is None else attempt.recorded(outcome)


def _hints(spec: RunSpec, execution: RunExecution) -> Iterable[str]:
    """Return which variables agents with errors did not receive: a newcomer's agent usually has no key."""
    if not execution.summary.errors:
        return ()
    kinds = {item.case.id: item.agent.kind for item in spec.cases}
    broken = [
        path
        for path, cases in execution.cases.items()
        if any(_is_of_user_code(case, kinds.get(case.id)) for case in cases if case.status == "error")
    ]
    return [hint for hint in dict.fromkeys(_hint(spec.settings[path]) for path in broken) if hint]


def _is_of_user_code(case: CaseResult, kind: str | None) -> bool:
    """Return whether user code caused the error of a case: its agent, or a code grader."""
    if any(score.kind == "code" and score.status == "error" for score in case.scores):
        return True
    # Cases of long runs are kept without their turns.
    return kind in _USER_CODE and (not case.turns or any(turn.error for turn in case.turns))


def _hint(settings: SuiteSpec) -> str:
    with under_rules(settings.rules):
        return withheld_hint(settings.config or CONFIG_FILE)


def _analyse(spec: RunSpec, execution: RunExecution, results: Results) -> SuiteAnalyses:
    """Analyse each suite as a whole; in a shard the criteria stay undecided."""
    if spec.shard is not None:
        return SuiteAnalyses(with_open_criteria(spec.suites, results))
    if not execution.answers:
        return SuiteAnalyses(results)
    from agenteval.run.outcome import evaluate_suites

    return evaluate_suites(spec.suites, execution.answers, results)


def _reported(outcome: RunOutcome, report: Report, directory: Path | None) -> RunOutcome:
    """Write the requested reports; return the outcome with a warning for each template that could not be used."""
    if directory is None:
        return outcome
    return replace(outcome, view=write_reports(report, outcome.results, directory / RESULTS_FILE).gate)


def run_repeatedly(
    settings: Settings, out: Path, runs: int, tell: Callable[[str], None], context: RunContext | None = None
) -> RunOutcome:
    """Run suites several times. Each run has the one before it as its baseline, so that the last has the pool of all.

    A run that cannot be a baseline, or that is proven worse than its baseline, is the last one.

    Args:
        settings: the settings of every run; the baseline is that of the first run.
        out: the directory of the reports, which are those of the last run at the end.
        runs: the number of runs, from 1.
        tell: receives a line before each run but the first, and if the runs end early.

    Returns:
        The outcome of the last run.

    Raises:
        ConfigError: the settings select only a part of the cases or resume a run, or as ``run`` raises it.
        InfrastructureError: as ``run`` raises it.
    """
    if runs > 1:
        _refuse_parts(settings)
        settings = replace(settings, is_whole=True)
    outcome = run(replace(settings, out=out), context)
    again = replace(settings, out=out, baseline=out / RESULTS_FILE)
    for number in range(2, runs + 1):
        why = _why_last(outcome)
        if why:
            tell(f"run {number - 1} of {runs} is the last: {why}")
            return outcome
        tell(f"run {number} of {runs}")
        outcome = run(again, context)
    return outcome


def _refuse_parts(settings: Settings) -> None:
    named = {
        "a shard": settings.shard is not None,
        "selected cases": bool(settings.filter or settings.tags or settings.cases or settings.failed_in),
        "a resumed run": settings.resume,
    }
    problems = [
        Problem(
            f"several runs make a baseline of whole runs, so they cannot be of {what}; use one run",
            path="runs",
            kind=Kind.OPTION,
        )
        for what, is_given in named.items()
        if is_given
    ]
    if problems:
        raise ConfigError(problems)


def _why_last(outcome: RunOutcome) -> str:
    """Return why no run may follow; empty if one may."""
    if outcome.is_cancelled:
        return "it was interrupted"
    comparison = outcome.results.comparison
    if comparison is not None and comparison.word == "proven":
        return "it is worse than its baseline"
    return why_no_baseline(outcome.results)
