"""One run from its settings to its reports: resolve, judge by the base, run, compare, prove, decide, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.confine import under_rules, withheld_hint
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import replace
from agenteval.core.runtime import signals_taken
from agenteval.gate.run_scores import baseline_run
from agenteval.results.case import CaseResult
from agenteval.results.history import why_no_baseline
from agenteval.results.model import Results, RunUsage
from agenteval.results.rollup import summarise
from agenteval.results.store import RESULTS_FILE
from agenteval.run.compare import compare_first, comparer_of, prove_and_compare, rescored_baseline
from agenteval.run.config import CONFIG_FILE, Settings
from agenteval.run.context import Attempt, FoundBaseline, RunContext
from agenteval.run.execute import execute
from agenteval.run.outcome import (
    RunOutcome,
    SuiteAnalyses,
    decide,
    make_results,
    report_directory,
    reported,
    shown_again,
    unscored_metrics,
)
from agenteval.run.plan import MayStop, PlannedCase, RunExecution, needs_whole_answers, with_open_criteria
from agenteval.run.resolve.spec import RunSpec, SuiteSpec, make_plan
from agenteval.run.resolve_run import resolve
from agenteval.run.setup import users_code
from agenteval.run.store import remove_confirmations
from agenteval.suite.agents import REPLAY

if TYPE_CHECKING:
    from agenteval.run.plan import Plan


def stopping(spec: RunSpec, baseline: FoundBaseline | None) -> MayStop | None:
    """Return what decides after each pass whether a first run may end; ``None`` if it makes all iterations.

    Runs of the base branch make all of them. So do runs of which something besides the comparison needs them: suites
    that state how often a case runs, metrics over all iterations, and cases that must pass.
    """
    # Imported here: most runs have no baseline.
    from agenteval.gate.pairing import continues_branch

    if baseline is None or spec.compare.first != "early" or continues_branch(spec.provenance, baseline.results.run):
        return None
    if not spec.cases or not all(map(_may_have_fewer, spec.cases)):
        return None
    if any(spec.gate.required.names(item.case) for item in spec.cases):
        return None
    fingerprints = {item.case.id: item.case.fingerprints for item in spec.cases}

    def may_stop(cases: Sequence[tuple[str, CaseResult]]) -> bool:
        results = _so_far(spec, cases)
        results = results.model_copy(update={"baseline_runs": [baseline_run(results, fingerprints)]})
        return comparer_of(results, spec, baseline).may_stop()

    return may_stop


def _may_have_fewer(item: PlannedCase) -> bool:
    suite, case = item.suite, item.case
    is_stated = suite.iterations is not None or case.iterations is not None or case.strict
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
    )
    return make_results(spec, execution)


def run(settings: Settings, context: RunContext | None = None) -> RunOutcome:
    """Run suites, compare with the baseline, apply the gate, and write the requested reports."""
    with (
        resolve(settings, context) as spec,
        report_directory(spec.output.journal.parent),
    ):
        attempt = spec.earlier.attempt
        if attempt is not None and attempt.shown is not None:
            return _shown_again(attempt.shown, attempt, spec)
        with users_code(spec.setup, spec.redact):
            plan, resumes = _planned(spec)
            baseline = rescored_baseline(spec, [item.case for item in plan.known_cases or ()])
            plan = replace(plan, may_stop=stopping(spec, baseline))
            # A signal ends the run, but not its reports.
            with signals_taken() as signals:
                outcome = _executed(spec, plan, baseline, resumes=resumes)
            return outcome.ended_by(signals.held)


def _shown_again(shown: Results, attempt: Attempt, spec: RunSpec) -> RunOutcome:
    outcome = shown_again(shown, attempt.memory, spec)
    if attempt.restore is not None and outcome.gate.passed:
        # A later run may continue a green attempt, to prove an improvement.
        attempt.restore(spec.output.journal.parent)
    return reported(outcome, spec)


def _planned(spec: RunSpec) -> tuple[Plan, bool]:
    attempt, directory = spec.earlier.attempt, spec.output.journal.parent
    if spec.output.resume or attempt is None or attempt.restore is None or not attempt.restore(directory):
        return make_plan(spec, resume=spec.output.resume), spec.output.resume
    try:
        return make_plan(spec, resume=True), True
    except ConfigError:
        # The environment of the run has changed.
        remove_confirmations(directory)
        return make_plan(spec), False


def _executed(
    spec: RunSpec,
    plan: Plan,
    baseline: FoundBaseline | None,
    *,
    resumes: bool,
) -> RunOutcome:
    execution = execute(plan)
    analyses = _analyse(spec, execution, make_results(spec, execution))
    first = compare_first(analyses.results, spec, baseline, execution)
    # Beside a baseline, an agent that lost its tool calls is a regression, and no mistake of the form of its replies.
    without_calls = execution.without_calls if baseline is None else ()
    warnings = (*without_calls, *analyses.warnings, *unscored_metrics(spec, execution), *_hints(spec, execution))
    outcome = reported(decide(first, spec, execution, warnings), spec, analyses)
    if not first.needs_passes:
        return outcome
    # The reports of the first run are already written, so a failed pass loses nothing.
    proven = prove_and_compare(first, spec, execution, resumes=resumes)
    return reported(decide(proven, spec, execution, warnings), spec)


# Other agents run elsewhere, with the judges' keys, or are recordings.
_USER_CODE = frozenset({"command", "command_tool", "python", "python_tool", "plugin", "framework", "project_runner"})


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
    if any(score.kind == "code" and score.status == "error" for score in case.scores):
        return True
    # Cases of long runs are kept without their turns.
    return kind in _USER_CODE and (not case.turns or any(turn.error for turn in case.turns))


def _hint(settings: SuiteSpec) -> str:
    with under_rules(settings.rules):
        return withheld_hint(settings.config or CONFIG_FILE)


def _analyse(spec: RunSpec, execution: RunExecution, results: Results) -> SuiteAnalyses:
    if spec.shard is not None:
        return SuiteAnalyses(with_open_criteria(spec.suites, results))
    if not execution.answers:
        return SuiteAnalyses(results)
    from agenteval.run.outcome import evaluate_suites

    return evaluate_suites(spec.suites, execution.answers, results)


def run_repeatedly(
    settings: Settings, out: Path, runs: int, tell: Callable[[str], None], context: RunContext | None = None
) -> RunOutcome:
    """Run suites several times. Each run has the one before it as its baseline, so that the last has all of them.

    A run that cannot be a baseline, or that is proven worse than its baseline, is the last one.
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
    if outcome.is_cancelled:
        return "it was interrupted"
    comparison = outcome.results.comparison
    if comparison is not None and comparison.state == "proven":
        return "it is worse than its baseline"
    return why_no_baseline(outcome.results)
