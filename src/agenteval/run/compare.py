"""Compares a finished run with its baseline, and confirms suspected regressions with a confirmation run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.results.comparison import Comparison
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.partial import why_no_baseline
from agenteval.results.summary import RunUsage
from agenteval.run.resolve.spec import GateSpec, RunSpec
from agenteval.run.resolve.suites import place_of
from agenteval.run.runner.execution import RunExecution

if TYPE_CHECKING:
    from agenteval.compare.baseline_runs import RunScores
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.samples import Confirmation
    from agenteval.compare.statistics.decision import FirstStage
    from agenteval.run.confirm.control import PreparedControl
    from agenteval.run.confirm.requests import Answer, Side
    from agenteval.run.confirm.runs import ConfirmingRuns

_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """A run with its comparison and its pool of earlier runs.

    Attributes:
        results: the run.
        warnings: about the comparison.
        signal: number of the signal that interrupted the confirmation run.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    signal: int | None = None


@dataclass(frozen=True)
class FirstComparison:
    """The comparison of the first run alone.

    Attributes:
        compared: the run with this comparison.
        comparer: repeats the comparison with the scores of a confirmation run; ``None`` without a baseline.
        needs_confirmation: whether suspected regressions must be re-run.
    """

    compared: ComparedRun
    comparer: Comparer | None = None
    needs_confirmation: bool = False


def compare_first(results: Results, spec: GateSpec, execution: RunExecution) -> FirstComparison:
    """Compare a run with its baseline without re-running any case.

    Args:
        results: the run, with its own entry in the pool.
        spec: contains the baseline, if there is one, and the comparison policy.
        execution: the execution of the run.
    """
    baseline = spec.baseline
    if baseline is None:
        return FirstComparison(ComparedRun(results))
    # Imported here: most runs have no baseline.
    from agenteval.compare.comparer import Comparer

    known = spec.known | {case.id for _, case in results.cases()} | spec.integrity.gone_before(baseline.results)
    comparer = Comparer(
        results,
        baseline.results,
        known,
        spec.compare,
        notes=baseline.notes,
        gone=_gone(results, baseline.results),
        distance=baseline.distance,
        integrity=spec.integrity,
    )
    first = comparer.first_stage
    confirms = spec.compare.parameters.confirm != "off"
    wanted = confirms and first is not None and (first.second_run or bool(first.reruns))
    compared = ComparedRun(_with(comparer.decide(), results, spec))
    return FirstComparison(_noted(compared), comparer, needs_confirmation=wanted and execution.complete)


def _gone(results: Results, baseline: Results) -> frozenset[str]:
    """Return the paths of the baseline's suites whose files do not exist any more.

    Suites that the caller has built, and those of other tools, have no files.
    """
    if baseline.tool.name != OWN_NAME or any(place_of(suite.path) is None for suite in results.suites):
        return frozenset()
    return frozenset(suite.path for suite in baseline.suites if place_of(suite.path) is None)


@contextmanager
def prepared_control(spec: RunSpec) -> Iterator[PreparedControl | AgentEvalError | None]:
    """Find the control before user code runs; see ``run.confirm.control``.

    Yields:
        The control, or why it cannot be used; ``None`` if the run needs none.
    """
    if spec.baseline is None or not spec.compare.confirms_beside_base:
        yield None
        return
    # Imported here: most runs need none.
    from agenteval.run.confirm.control import prepared_control as prepared

    with prepared(spec, spec.baseline.results.run.commit) as control:
        yield control


def confirm_and_compare(
    first: FirstComparison,
    spec: RunSpec,
    execution: RunExecution,
    control: PreparedControl | AgentEvalError | None,
) -> ComparedRun:
    """Re-run suspected regressions within the remaining limits of the first run, and compare again.

    If the confirmation run is impossible, the comparison stays undecided and contains the reason.

    Args:
        first: the first comparison.
        spec: the specification of the first run.
        execution: the execution of the first run.
        control: the control, from ``prepared_control``.
    """
    comparer = first.comparer
    if comparer is None or comparer.first_stage is None:
        return first.compared
    from agenteval.run.confirm.runs import confirming_runs

    sides: tuple[Side, ...] = ("current", "control") if spec.compare.confirms_beside_base else ("current",)
    with confirming_runs(spec, execution, control) as runs:
        confirmation = _confirmation(runs, comparer.first_stage, sides, comparer.current)
        runs.close()
    compared = _noted(ComparedRun(_with(comparer.decide(confirmation), comparer.current, spec)))
    return replace(
        compared,
        results=_with_usage(compared.results, runs.usage),
        warnings=(*runs.warnings, *compared.warnings),
        signal=runs.signal,
    )


def _confirmation(runs: ConfirmingRuns, first: FirstStage, sides: tuple[Side, ...], results: Results) -> Confirmation:
    """Make the runs that the first comparison asks for, and return their scores."""
    from agenteval.compare.samples import Confirmation
    from agenteval.run.confirm.requests import Answer, CaseRuns, WholeRun

    second = runs.answer(WholeRun(sides)) if first.second_run else Answer()
    stopped = bool(second.unavailable)
    reruns = runs.answer(CaseRuns(sides, first.reruns)) if first.reruns and not stopped else Answer()
    return Confirmation(
        second=_scores(second, "current", results),
        control=_scores(second, "control", results),
        reruns=_scores(reruns, "current", results),
        control_reruns=_scores(reruns, "control", results),
        not_run_because=second.unavailable or reruns.unavailable or _broken((second, reruns)),
    )


def _scores(answer: Answer, side: Side, results: Results) -> RunScores:
    from agenteval.compare.samples import run_scores

    suites = {suite.path: suite for suite in results.suites}
    return run_scores((suites[path], case) for path, case in answer.side(side))


def _broken(answers: Iterable[Answer]) -> str:
    """Return how many cases could not be evaluated, with the first error; empty if all could."""
    cases = [case for answer in answers for found in answer.cases.values() for _, case in found]
    broken = [case for case in cases if case.status == "error"]
    if not broken:
        return ""
    errors = (
        turn.error for case in broken for iteration in case.iterations for turn in iteration.turns if turn.error
    )
    first = next(errors, "")
    message = f"{len(broken)} of {len(cases)} cases of the confirmation run could not be evaluated"
    return f"{message}: {first}" if first else message


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


def _with(comparison: Comparison, results: Results, spec: GateSpec) -> Results:
    """Return the run with its comparison and the updated pool for later runs."""
    results = results.model_copy(update={"comparison": comparison})
    # The pool contains only runs of the base branch that can be baselines.
    if not results.pool or (results.run.ref or "").startswith(_PULL_REQUEST) or why_no_baseline(results):
        return results
    from agenteval.compare.pool import extended_pool

    window = spec.compare.parameters.window
    earlier = spec.baseline.results if spec.baseline else None
    return results.model_copy(update={"pool": extended_pool(results.pool[0], earlier, comparison, window)})


def _with_usage(results: Results, taken: RunUsage) -> Results:
    """Return the run with the usage of the confirmation run added to its own."""
    usage = results.summary.usage.plus(taken)
    return results.model_copy(update={"summary": results.summary.model_copy(update={"usage": usage})})
