"""Compares a finished run with its baseline, and makes the runs that prove or clear a suspected regression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.results.comparison import Comparison, PoolEntry
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.partial import why_no_baseline
from agenteval.results.summary import RunUsage
from agenteval.run.resolve.spec import GateSpec, RunSpec
from agenteval.run.resolve.suites import place_of
from agenteval.run.runner.execution import RunExecution

if TYPE_CHECKING:
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.regression.model import Decision
    from agenteval.run.confirm.control import PreparedControl

_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """A run with its comparison and its pool of earlier runs.

    Attributes:
        results: the run.
        warnings: about the comparison.
        signal: number of the signal that interrupted the confirmation run.
        decision: the decision of the statistics; ``None`` for a simple rule, and without a baseline.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    signal: int | None = None
    decision: Decision | None = None


@dataclass(frozen=True)
class FirstComparison:
    """The comparison of the first run alone.

    Attributes:
        compared: the run with this comparison.
        comparer: decides with further runs; ``None`` without a baseline.
        needs_confirmation: whether further runs must prove or clear a suspicion.
    """

    compared: ComparedRun
    comparer: Comparer | None = None
    needs_confirmation: bool = False


def compare_first(
    results: Results,
    spec: GateSpec,
    execution: RunExecution,
    control: PreparedControl | AgentEvalError | None = None,
) -> FirstComparison:
    """Compare a run with its baseline without running any case again.

    Args:
        results: the run, with its own entry in the pool.
        spec: contains the baseline, if there is one, and the comparison policy.
        execution: the execution of the run.
        control: the control, from ``prepared_control``; it tells which earlier runs are of its history.
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
        burden=spec.burden,
        unrelated=frozenset() if control is None or isinstance(control, AgentEvalError) else control.unrelated,
        integrity=spec.integrity,
    )
    decision = comparer.screened.decision if comparer.screened is not None else None
    compared = ComparedRun(_with(comparer.decide(), results, spec), decision=decision)
    wanted = execution.complete and comparer.needs_runs
    return FirstComparison(_noted(compared), comparer, needs_confirmation=wanted)


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

    baseline = spec.baseline.results
    with prepared(spec, baseline.run.commit, {entry.commit for entry in baseline.pool if entry.commit}) as control:
        yield control


def confirm_and_compare(
    first: FirstComparison,
    spec: RunSpec,
    execution: RunExecution,
    control: PreparedControl | AgentEvalError | None,
) -> ComparedRun:
    """Make the runs that the first comparison asks for within the remaining limits, and decide with them.

    Args:
        first: the first comparison.
        spec: the specification of the first run.
        execution: the execution of the first run.
        control: the control, from ``prepared_control``.
    """
    comparer = first.comparer
    if comparer is None:
        return first.compared
    from agenteval.run.confirm.proving import Proving
    from agenteval.run.confirm.runs import confirming_runs

    with confirming_runs(spec, execution, control) as runs:
        proving = Proving(runs, comparer.sides)
        decided = replace(comparer.prove(proving.answer), control=runs.control_commit)
        runs.close()
    results = _with(comparer.concluded(decided), comparer.current, spec, proving.entries())
    compared = _noted(ComparedRun(results, decision=decided.decision))
    return replace(
        compared,
        results=_with_usage(compared.results, runs.usage),
        warnings=(*runs.warnings, *compared.warnings),
        signal=runs.signal,
    )


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


def _with(comparison: Comparison, results: Results, spec: GateSpec, confirming: Iterable[PoolEntry] = ()) -> Results:
    """Return the run with its comparison and the updated pool for later runs."""
    results = results.model_copy(update={"comparison": comparison})
    # The pool contains only runs of the base branch that can be baselines.
    if not results.pool or (results.run.ref or "").startswith(_PULL_REQUEST) or why_no_baseline(results):
        return results
    from agenteval.compare.pool import extended_pool

    window = spec.compare.settings.window
    earlier = spec.baseline.results if spec.baseline else None
    pool = extended_pool(results.pool[0], earlier, comparison, window, confirming)
    return results.model_copy(update={"pool": pool})


def _with_usage(results: Results, taken: RunUsage) -> Results:
    """Return the run with the usage of the confirmation run added to its own."""
    usage = results.summary.usage.plus(taken)
    return results.model_copy(update={"summary": results.summary.model_copy(update={"usage": usage})})
