"""Compares a finished run with its baseline, and makes the runs that prove or clear a suspected regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.core.text import place_of
from agenteval.results.comparison import Comparison, PoolEntry
from agenteval.results.history import why_no_baseline
from agenteval.results.model import OWN_NAME, Results, RunUsage
from agenteval.run.baseline import FoundBaseline, MissingBaseline
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.spec import GateSpec, RunSpec

if TYPE_CHECKING:
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.regression.model import Decision
    from agenteval.run.confirm.control import PreparedControl
    from agenteval.run.confirm.runs import ConfirmingRuns

_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """A run with its comparison and its pool of earlier runs.

    Attributes:
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
    parts: Sequence[PoolEntry] = (),
) -> FirstComparison:
    """Compare a run with its baseline without running any case again.

    Args:
        spec: contains the baseline, if there is one, and the comparison policy.
        control: the control, from ``prepared_control``; it tells which earlier runs are of its history.
        parts: the runs that the results were merged from, if they are runs of the same cases.
    """
    if spec.baseline is None:
        is_waiting = spec.missing_baseline is not None and execution.complete
        return FirstComparison(ComparedRun(results), needs_confirmation=is_waiting)
    comparer = _comparer(results, spec, spec.baseline, control, parts)
    decision = comparer.screened.decision if comparer.screened is not None else None
    comparison = comparer.decide()
    compared = ComparedRun(_with(comparison, comparer), decision=decision)
    wanted = execution.complete and (comparer.needs_runs or comparer.needs_long_look(comparison))
    return FirstComparison(_noted(compared), comparer, needs_confirmation=wanted)


def _comparer(
    results: Results,
    spec: GateSpec,
    baseline: FoundBaseline,
    control: PreparedControl | AgentEvalError | None,
    parts: Sequence[PoolEntry] = (),
) -> Comparer:
    # Imported here: most runs have no baseline.
    from agenteval.compare.comparer import Comparer

    known = spec.known | {case.id for _, case in results.cases()} | spec.integrity.gone_before(baseline.results)
    return Comparer(
        results,
        baseline.results,
        known,
        spec.compare,
        notes=baseline.notes,
        gone=_gone(results, baseline.results),
        distance=baseline.distance,
        between=baseline.between,
        burden=spec.burden,
        unrelated=frozenset() if control is None or isinstance(control, AgentEvalError) else control.unrelated,
        integrity=spec.integrity,
        parts=parts,
        rescored=baseline.rescored,
    )


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
    if (spec.baseline is None and spec.missing_baseline is None) or not spec.compare.confirms_beside_base:
        yield None
        return
    # Imported here: most runs need none.
    from agenteval.run.confirm.control import prepared_control as prepared
    from agenteval.run.confirm.early_commits import early_commits

    baseline = spec.baseline.results if spec.baseline is not None else None
    earlier = {entry.commit for entry in baseline.pool if entry.commit} if baseline is not None else ()
    with prepared(spec, baseline.run.commit if baseline else None, earlier, early_commits(spec)) as control:
        yield control


def confirm_and_compare(
    first: FirstComparison,
    spec: RunSpec,
    execution: RunExecution,
    control: PreparedControl | AgentEvalError | None,
) -> ComparedRun:
    """Make the runs that the first comparison asks for within the remaining limits, and decide with them.

    Without a baseline, the base commit's agent runs the suite once, and this run is the baseline.

    Args:
        control: the control, from ``prepared_control``.
    """
    from agenteval.compare.regression.model import Cost
    from agenteval.compare.statistical import with_cost
    from agenteval.run.confirm.proving import Proving
    from agenteval.run.confirm.runs import confirming_runs

    with confirming_runs(spec, execution, control) as runs:
        comparer = first.comparer or _first_comparer(first.compared.results, spec, runs)
        if isinstance(comparer, ComparedRun):
            return comparer
        baseline = Cost(runs=1.0, calls=runs.spent.calls) if first.comparer is None else Cost()
        proving = Proving(runs, comparer.sides, comparer.sides.evidence)
        decided = replace(comparer.prove(proving.answer), control=runs.control_commit)
        comparison = with_cost(comparer.concluded(decided), baseline)
        results = _looked_back(comparer, comparison, runs, proving.entries())
        runs.close()
    compared = _noted(ComparedRun(results, decision=decided.decision))
    return replace(
        compared,
        results=_with_usage(compared.results, runs.usage),
        warnings=(*runs.warnings, *compared.warnings),
        signal=runs.signal,
    )


def _first_comparer(results: Results, spec: RunSpec, runs: ConfirmingRuns) -> Comparer | ComparedRun:
    """Return what compares a run with a baseline that is made for it; without one, the run compared with nothing."""
    from agenteval.run.confirm.first_baseline import first_baseline

    made = first_baseline(results, runs)
    if isinstance(made, FoundBaseline):
        return _comparer(results, spec, made, None)
    missing = spec.missing_baseline or MissingBaseline()
    warnings = [text for text in runs.warnings if made.why not in text]
    accepted = missing.warnings(f"the base commit's agent cannot make a baseline: {made.why}")
    uncompared = ComparedRun(results, warnings=(*warnings, *accepted), signal=runs.signal)
    return replace(uncompared, results=_with_usage(results, runs.usage))


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


def _looked_back(
    comparer: Comparer, comparison: Comparison, runs: ConfirmingRuns, entries: Sequence[PoolEntry]
) -> Results:
    """Return the run with its comparison, and with a long look at the base branch if one is due."""
    if not comparer.needs_long_look(comparison) or runs.signal is not None:
        return _with(comparison, comparer, entries)
    from agenteval.compare.long_look import with_long_look
    from agenteval.run.confirm.long_look import look_back

    looked = look_back(comparer, comparison, runs, made=len(entries))
    found = with_long_look(comparison, looked.look, looked.cost)
    results = _with(found, comparer, [*entries, *looked.entries])
    if found.begins_epoch or results.epoch is None:
        return results
    return results.model_copy(update={"epoch": looked.epoch})


def _with(comparison: Comparison, comparer: Comparer, confirming: Sequence[PoolEntry] = ()) -> Results:
    """Return the run with its comparison, and with the updated pool and epoch for later runs."""
    results = comparer.current.model_copy(update={"comparison": comparison})
    # The pool contains only runs of the base branch that can be baselines.
    if not results.pool or (results.run.ref or "").startswith(_PULL_REQUEST) or why_no_baseline(results):
        return results
    from agenteval.compare.pool import extended_pool

    own, window = comparer.current.pool[0], comparer.policy.settings.window
    pool = extended_pool(own, comparer.baseline, comparison, window, confirming)
    return results.model_copy(update={"pool": pool, "epoch": comparer.epoch(comparison, [own, *confirming])})


def _with_usage(results: Results, taken: RunUsage) -> Results:
    usage = results.summary.usage.plus(taken)
    return results.model_copy(update={"summary": results.summary.model_copy(update={"usage": usage})})
