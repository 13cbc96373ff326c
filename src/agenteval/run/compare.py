"""Compares a finished run with its baseline, and confirms suspected regressions with further runs."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.results.model import Comparison, Results, RunUsage
from agenteval.run.resolve.spec import GateSpec, RunSpec
from agenteval.run.runner.execution import Execution
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.samples import Confirmation

_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """A run with its comparison and its pool.

    Attributes:
        results: the run.
        warnings: about the comparison.
        signal: the signal that ended the confirmation run early.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    signal: int | None = None


@dataclass(frozen=True)
class FirstComparison:
    """The comparison of the first run alone.

    Attributes:
        compared: the run with this comparison.
        comparer: compares it again with the scores of a confirmation run; ``None`` without a baseline.
        needs_confirmation: suspected regressions are to be run again.
    """

    compared: ComparedRun
    comparer: Comparer | None = None
    needs_confirmation: bool = False


def compare_first(results: Results, spec: GateSpec, execution: Execution) -> FirstComparison:
    """Compare a run with its baseline, without running anything.

    Args:
        results: the run, with its own entry in its pool.
        spec: has the baseline, if there is one, and how to compare.
        execution: of the run.
    """
    baseline = spec.baseline
    if baseline is None:
        return FirstComparison(ComparedRun(results))
    # Imported here: most runs compare nothing.
    from agenteval.compare.comparer import Comparer

    known = spec.known | {case.id for _, case in results.cases()}
    comparer = Comparer(
        results, baseline.results, known, spec.compare, notes=baseline.notes, distance=baseline.distance
    )
    first = comparer.first_stage
    confirms = spec.compare.parameters.confirm != "off"
    wanted = confirms and first is not None and (first.second_run or bool(first.reruns))
    compared = ComparedRun(_with(comparer.decide(), results, spec))
    return FirstComparison(_noted(compared), comparer, needs_confirmation=wanted and execution.complete)


def confirm_and_compare(look: FirstComparison, spec: RunSpec, execution: Execution) -> ComparedRun:
    """Run again what a first comparison suspects, within what the first run left of the limits, and compare again.

    If the runs cannot be made, the comparison stays undecided and contains the reason.

    Args:
        look: the first comparison.
        spec: of the first run.
        execution: of the first run.
    """
    comparer = look.comparer
    if comparer is None or comparer.first_stage is None:
        return look.compared
    from agenteval.compare.samples import Confirmation
    from agenteval.run.confirm.rerun import Request, cases_again, confirm

    left = spec.limits.minus(execution.asked, execution.duration_s - execution.earlier_s)
    if left.models_are_used_up and execution.asked.llm_calls > 0:
        return _decided(comparer, spec, Confirmation(obstacle="the budget for models is used up"))
    if left.time_is_up:
        return _decided(comparer, spec, Confirmation(obstacle="the time is up"))
    try:
        with _base_agents(comparer, spec) as agents:
            again = cases_again(spec.cases, Request(comparer.first_stage, agents))
            done = confirm(spec.confirming(again, left), comparer.current)
    except KeyboardInterrupt:
        # The signal came while git worked: the runner handles those that come during the run.
        compared = _decided(comparer, spec, Confirmation(obstacle="the confirming runs were interrupted"))
        return replace(compared, signal=int(signal.SIGINT))
    except AgentEvalError as error:
        compared = _decided(comparer, spec, Confirmation(obstacle=spec.redact(str(error))))
        return replace(compared, warnings=(f"nothing was run again: {error}", *compared.warnings))
    compared = _decided(comparer, spec, done.scores)
    return replace(
        compared,
        results=_with_usage(compared.results, done.execution.summary.usage),
        warnings=(*done.execution.warnings, *compared.warnings),
        signal=done.execution.signal,
    )


def _decided(comparer: Comparer, spec: GateSpec, confirmation: Confirmation) -> ComparedRun:
    return _noted(ComparedRun(_with(comparer.decide(confirmation), comparer.current, spec)))


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


@contextlib.contextmanager
def _base_agents(comparer: Comparer, spec: RunSpec) -> Iterator[Mapping[str, AgentSpec]]:
    """Yield the agents that run beside the current ones, by case id; none if only earlier runs are compared with."""
    if not spec.compare.confirms_beside_base:
        yield {}
    elif spec.base_agent is not None:
        yield {item.case.id: spec.base_agent for item in spec.cases}
    else:
        from agenteval.run.confirm.base_agent import base_agents

        commit = comparer.baseline.run.commit
        with base_agents(spec.sources, commit, spec.setup.commands, spec.redact) as agents:
            yield agents


def _with(comparison: Comparison, results: Results, spec: GateSpec) -> Results:
    """Return the run with its comparison, and with the pool that later runs are compared with."""
    results = results.model_copy(update={"comparison": comparison})
    # The pool has runs of the base branch only.
    if not results.pool or (results.run.ref or "").startswith(_PULL_REQUEST):
        return results
    from agenteval.compare.pool import extended_pool

    window = spec.compare.parameters.window
    earlier = spec.baseline.results if spec.baseline else None
    return results.model_copy(update={"pool": extended_pool(results.pool[0], earlier, comparison, window)})


def _with_usage(results: Results, taken: RunUsage) -> Results:
    """Return the run with the usage of the confirmation run added."""
    own = results.summary.usage
    usage = RunUsage(
        input_tokens=own.input_tokens + taken.input_tokens,
        output_tokens=own.output_tokens + taken.output_tokens,
        llm_calls=own.llm_calls + taken.llm_calls,
        cost_usd=own.cost_usd + taken.cost_usd,
    )
    return results.model_copy(update={"summary": results.summary.model_copy(update={"usage": usage})})
