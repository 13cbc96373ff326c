"""Compares a finished run with its baseline, and makes the passes that prove or clear a suspicion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agenteval.core.records import dataclass, replace
from agenteval.core.text import place_of
from agenteval.results.comparison import BaselineRun, Comparison
from agenteval.results.history import why_no_baseline
from agenteval.results.model import OWN_NAME, Results, RunUsage
from agenteval.run.context import FoundBaseline
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.spec import RunSpec
from agenteval.suite.model import Case

if TYPE_CHECKING:
    from agenteval.gate.comparer import Comparer, Decision
    from agenteval.run.confirm.passes import Passes

_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """A run with its comparison and its baseline of earlier runs.

    Attributes:
        signal: number of the signal that interrupted the passes side by side.
        comparer: decides with further passes; ``None`` without a baseline.
        needs_passes: whether further passes must prove or clear a suspicion.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    signal: int | None = None
    comparer: Comparer | None = None
    needs_passes: bool = False


def compare_first(
    results: Results,
    spec: RunSpec,
    baseline: FoundBaseline | None,
    execution: RunExecution,
) -> ComparedRun:
    """Compare a run with its baseline without running any case again."""
    if baseline is None:
        is_waiting = spec.earlier.missing is not None and execution.complete
        return ComparedRun(results, needs_passes=is_waiting)
    comparer = comparer_of(results, spec, baseline)
    # Imported here: most runs have no baseline.
    from agenteval.gate.comparison import decide_files

    needs_passes = execution.complete and comparer.needs_runs
    found = _with(decide_files(comparer), comparer)
    return _noted(ComparedRun(found, comparer=comparer, needs_passes=needs_passes))


def comparer_of(results: Results, spec: RunSpec, baseline: FoundBaseline) -> Comparer:
    """Return what compares a run with a baseline; see ``compare_first``."""
    # Imported here: most runs have no baseline.
    from agenteval.gate.comparer import Comparer

    known = spec.known | {case.id for _, case in results.cases()} | spec.integrity.gone_before(baseline.results)
    covered = results.run.coverage
    if covered is not None and covered.selection_note and not spec.suites:
        # Without the suites, it is unknown whether the other cases still exist.
        known |= {case.id for _, case in baseline.results.cases()}
    return Comparer(
        results,
        baseline.results,
        known,
        spec.compare,
        notes=baseline.notes,
        gone=_gone(results, baseline.results),
        file=baseline.file,
        distance=baseline.distance,
        between=baseline.between,
        proven=spec.earlier.proven,
        unrelated=spec.control.unrelated,
        integrity=spec.integrity,
        rescored=baseline.rescored,
    )


def _gone(results: Results, baseline: Results) -> frozenset[str]:
    """Return the paths of the baseline's suites whose files do not exist any more.

    Suites that the caller has built, and those of other tools, have no files.
    """
    if baseline.tool.name != OWN_NAME or any(place_of(suite.path) is None for suite in results.suites):
        return frozenset()
    return frozenset(suite.path for suite in baseline.suites if place_of(suite.path) is None)


def rescored_baseline(spec: RunSpec, cases: Iterable[Case]) -> FoundBaseline | None:
    """Return the baseline with new scores of its answers, where only metrics changed."""
    if spec.baseline is None:
        return None
    # Imported here: most runs have no baseline.
    from agenteval.run.rescore import with_rescored_baseline

    return with_rescored_baseline(spec.baseline, cases, spec.limits.run_s)


def prove_and_compare(
    first: ComparedRun,
    spec: RunSpec,
    execution: RunExecution,
    *,
    resumes: bool = False,
) -> ComparedRun:
    """Make the passes that the first comparison asks for within the remaining limits, and decide with them.

    Without a baseline, the base commit's agent runs the suite once, and this run is the baseline.
    """
    from agenteval.gate.comparison import make_comparison
    from agenteval.gate.proof import CannotRunError
    from agenteval.run.confirm.passes import Passes

    with Passes(spec, execution, spec.control.base, resume=resumes) as passes:
        try:
            comparer = first.comparer or _first_comparer(first.results, spec, passes)
        except CannotRunError as error:
            return _uncompared(first.results, spec, passes, error.why)
        sides = comparer.sides
        with _beside_start(spec, execution, passes) as look_back:
            decision = comparer.prove(
                lambda ask: passes.again(ask, sides),
                None if look_back is None else lambda ask: look_back.again(ask, sides),
            )
        decision = replace(decision, commit=passes.commit)
        results = _with(make_comparison(comparer, decision), comparer, _entries(comparer, decision))
    compared = _noted(ComparedRun(results))
    why = results.comparison.why if results.comparison else ""
    # The comparison says why it is unproven.
    warnings = [text for text in passes.warnings if not why or why not in spec.redact(text)]
    return replace(
        compared,
        results=with_usage(compared.results, passes.usage, passes.seconds),
        warnings=(*warnings, *compared.warnings),
        signal=passes.signal,
    )


@contextmanager
def _beside_start(spec: RunSpec, execution: RunExecution, beside: Passes) -> Iterator[Passes | None]:
    from agenteval.run.confirm.passes import Passes

    if spec.control.start is None:
        yield None
        return
    # An old commit has no deployment.
    with Passes(spec, execution, spec.control.start, {}, resume=beside.resume) as passes:
        yield passes
        beside.usage = beside.usage.plus(passes.usage)
        beside.seconds += passes.seconds
        beside.warnings += [text for text in passes.warnings if text not in beside.warnings]
        beside.signal = beside.signal or passes.signal


def _first_comparer(results: Results, spec: RunSpec, passes: Passes) -> Comparer:
    from agenteval.run.confirm.passes import first_baseline

    return comparer_of(results, spec, first_baseline(results, passes))


def _uncompared(results: Results, spec: RunSpec, passes: Passes, why: str) -> ComparedRun:
    warnings = [text for text in passes.warnings if why not in text]
    if missing := spec.earlier.missing:
        warnings += [*missing, f"the base commit's agent cannot make a baseline: {why}"]
    results = with_usage(results, passes.usage, passes.seconds)
    return ComparedRun(results, warnings=tuple(warnings), signal=passes.signal)


def _entries(comparer: Comparer, decision: Decision) -> Sequence[BaselineRun]:
    if not comparer.current.baseline_runs or not comparer.is_of_branch:
        return ()
    for out in (decision.outcome, decision.look):
        if out is not None and any(proof.case is None for proof in out.proofs):
            return comparer.sides.entries_of(out.pr, comparer.current.baseline_runs[0])
    return ()


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


def _with(comparison: Comparison, comparer: Comparer, passes: Sequence[BaselineRun] = ()) -> Results:
    results = comparer.current.model_copy(update={"comparison": comparison})
    # The baseline contains only runs of the base branch that can be baselines.
    if not results.baseline_runs or (results.run.ref or "").startswith(_PULL_REQUEST) or why_no_baseline(results):
        return results
    from agenteval.gate.baseline import extended_baseline

    runs = extended_baseline(comparer.current.baseline_runs[0], comparer.baseline, comparison, passes)
    return results.model_copy(update={"baseline_runs": runs})


def with_usage(results: Results, taken: RunUsage, seconds: float) -> Results:
    """Return the run with the usage and the time of further passes added to its own."""
    summary = results.summary.model_copy(update={"usage": results.summary.usage.plus(taken)})
    run = results.run.model_copy(update={"duration_s": round(results.run.duration_s + seconds, 3)})
    return results.model_copy(update={"summary": summary, "run": run})
