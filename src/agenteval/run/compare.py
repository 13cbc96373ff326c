"""Compares a finished run with its baseline, and runs again what looks worse before anything is said about it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.compare.pairing import entry_without_cases, pool_entry
from agenteval.compare.policy import ComparePolicy
from agenteval.core.errors import AgentEvalError
from agenteval.results.model import Comparison, Results, RunUsage
from agenteval.run.config.model import llm_settings, time_limit_s
from agenteval.run.journal.journal import CONFIRMATION_FILE
from agenteval.run.resolve.spec import Loaded
from agenteval.run.runner.execution import Execution
from agenteval.run.settings import Settings
from agenteval.suite.model import AgentSpec

if TYPE_CHECKING:
    from agenteval.compare.comparer import Comparer
    from agenteval.compare.samples import Confirmation

_REPLAY = "replay"
_PULL_REQUEST = "refs/pull/"


@dataclass(frozen=True)
class ComparedRun:
    """The run with its comparison and its pool.

    Attributes:
        results: the run.
        warnings: what is worth saying about the comparison.
        signal: what ended the confirming runs early.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    signal: int | None = None


@dataclass(frozen=True)
class FirstComparison:
    """What one run says.

    Attributes:
        compared: the run compared as it is.
        comparer: what compares it; ``None`` without a baseline.
        needs_confirmation: further runs would settle what looks worse.
    """

    compared: ComparedRun
    comparer: Comparer | None = None
    needs_confirmation: bool = False


def compare_first(results: Results, loaded: Loaded, settings: Settings, execution: Execution) -> FirstComparison:
    """Compare a run with its baseline, without running anything."""
    _forget_earlier_confirmation(settings)
    # With fingerprints: cases that ask something else than the baseline's are not compared.
    results = _pooled(results, execution)
    if loaded.baseline is None:
        return FirstComparison(ComparedRun(results))
    # Imported here: most runs compare nothing.
    from agenteval.compare.comparer import Comparer

    known = loaded.known | {case.id for _, case in results.cases()}
    policy = _policy(loaded, settings)
    baseline = loaded.baseline
    comparer = Comparer(results, baseline.results, known, policy, notes=baseline.notes, distance=baseline.distance)
    first = comparer.first_stage
    wanted = first is not None and policy.parameters.confirm != "off" and (first.second_run or bool(first.reruns))
    compared = ComparedRun(_with(comparer.decide(), results, loaded))
    return FirstComparison(_noted(compared), comparer, needs_confirmation=wanted and execution.complete)


def confirm_and_compare(
    look: FirstComparison, loaded: Loaded, settings: Settings, execution: Execution
) -> ComparedRun:
    """Make the runs that a first look asks for, within what it left of the budget, and compare again.

    What keeps them from being made leaves the comparison undecided, and says why.
    """
    comparer = look.comparer
    if comparer is None or comparer.first_stage is None:
        return look.compared
    from agenteval.compare.samples import Confirmation
    from agenteval.run.confirm.rerun import Request, confirm, make_confirming_plan

    rest = _with_what_is_left(settings, loaded, execution)
    if _is_spent(rest, execution.asked):
        return _decided(comparer, loaded, Confirmation(obstacle="the budget for models is used up"))
    if rest.max_time_s is not None and rest.max_time_s <= 0:
        return _decided(comparer, loaded, Confirmation(obstacle="the time is up"))
    try:
        with _control(comparer, loaded, settings) as control:
            plan = make_confirming_plan(loaded, rest, Request(comparer.first_stage, control))
            done = confirm(plan, comparer.current)
    except KeyboardInterrupt:
        # While git worked: during the runs themselves signals are theirs.
        compared = _decided(comparer, loaded, Confirmation(obstacle="the confirming runs were interrupted"))
        return replace(compared, signal=int(signal.SIGINT))
    except AgentEvalError as error:
        compared = _decided(comparer, loaded, Confirmation(obstacle=loaded.redact(str(error))))
        return replace(compared, warnings=(f"nothing was run again: {error}", *compared.warnings))
    compared = _decided(comparer, loaded, done.scores)
    return replace(
        compared,
        results=_with_usage(compared.results, done.execution.summary.usage),
        warnings=(*done.execution.warnings, *compared.warnings),
        signal=done.execution.signal,
    )


def _decided(comparer: Comparer, loaded: Loaded, confirmation: Confirmation) -> ComparedRun:
    return _noted(ComparedRun(_with(comparer.decide(confirmation), comparer.current, loaded)))


def _noted(compared: ComparedRun) -> ComparedRun:
    comparison = compared.results.comparison
    return replace(compared, warnings=tuple(comparison.notes) if comparison else ())


def _policy(loaded: Loaded, settings: Settings) -> ComparePolicy:
    """The policy, as far as it can be followed: recorded answers stay what they are however often they are asked."""
    policy = loaded.config.compare
    recorded = frozenset(case_id for case_id, agent in loaded.agents.items() if agent.kind == _REPLAY)
    policy = replace(policy, recorded=recorded)
    if settings.traces is not None or (recorded and len(recorded) == len(loaded.agents)):
        return replace(policy, parameters=replace(policy.parameters, confirm="off"))
    return policy


@contextlib.contextmanager
def _control(comparer: Comparer, loaded: Loaded, settings: Settings) -> Iterator[Mapping[str, AgentSpec]]:
    """The agent that runs beside the current one, by case id; none where the pool alone is compared with."""
    if not comparer.policy.confirms_beside_base:
        yield {}
    elif loaded.control is not None:
        yield dict.fromkeys(loaded.agents, loaded.control)
    else:
        from agenteval.run.confirm.base_agent import base_agents

        with base_agents(settings, comparer.baseline.run.commit) as agents:
            yield agents


def _with_what_is_left(settings: Settings, loaded: Loaded, execution: Execution) -> Settings:
    """The settings with what the first run left of money and time."""
    limits = llm_settings(settings, loaded.config).limits
    limit_s = time_limit_s(settings, loaded.config)
    spent = execution.asked
    return replace(
        settings,
        max_llm_calls=None if limits.max_calls is None else max(0, limits.max_calls - spent.llm_calls),
        max_cost_usd=None if limits.max_cost_usd is None else max(0.0, limits.max_cost_usd - spent.cost_usd),
        max_time_s=None if limit_s is None else limit_s - (execution.duration_s - execution.earlier_s),
    )


def _is_spent(rest: Settings, spent: RunUsage) -> bool:
    """Whether nothing is left for models, and models are asked."""
    return spent.llm_calls > 0 and (rest.max_llm_calls == 0 or rest.max_cost_usd == 0)


def _pooled(results: Results, execution: Execution) -> Results:
    """The run with its own entry in the pool."""
    # Traces are no cases that are asked again; what is known of them stands in their ids.
    if execution.pool_in_archive:
        return results.model_copy(update={"pool": [entry_without_cases(results)]})
    if not execution.fingerprints:
        return results
    return results.model_copy(update={"pool": [pool_entry(results, execution.fingerprints)]})


def _with(comparison: Comparison, results: Results, loaded: Loaded) -> Results:
    """The run with its comparison, and with the pool that later runs will be compared with."""
    results = results.model_copy(update={"comparison": comparison})
    # What a pull request does says nothing about the base branch.
    if not results.pool or (results.run.ref or "").startswith(_PULL_REQUEST):
        return results
    from agenteval.compare.pool import extended_pool

    window = loaded.config.compare.parameters.window
    earlier = loaded.baseline.results if loaded.baseline else None
    return results.model_copy(update={"pool": extended_pool(results.pool[0], earlier, comparison, window)})


def _with_usage(results: Results, taken: RunUsage) -> Results:
    """The run with what the confirming runs took as well."""
    own = results.summary.usage
    usage = RunUsage(
        input_tokens=own.input_tokens + taken.input_tokens,
        output_tokens=own.output_tokens + taken.output_tokens,
        llm_calls=own.llm_calls + taken.llm_calls,
        cost_usd=own.cost_usd + taken.cost_usd,
    )
    return results.model_copy(update={"summary": results.summary.model_copy(update={"usage": usage})})


def _forget_earlier_confirmation(settings: Settings) -> None:
    """The reports of a directory are all of one run."""
    with contextlib.suppress(OSError):
        (settings.out / CONFIRMATION_FILE).unlink(missing_ok=True)
