"""Makes the confirmation run: the whole suite or single cases again, beside the base commit's agent if asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agenteval.compare.samples import Confirmation, run_scores
from agenteval.compare.statistics.decision import FirstStage
from agenteval.results.model import CaseResult, Results, SuiteResult
from agenteval.run.plan import Plan, PlannedCase
from agenteval.run.resolve.plan import make_plan
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.runner.execute import execute
from agenteval.run.runner.execution import Execution
from agenteval.suite.model import AgentSpec

# Prefixes of case ids: a case can be several times in one confirmation run.
_SECOND, _CONTROL, _RERUN, _CONTROL_RERUN = "second:", "control:", "rerun:", "control-rerun:"

_REPLAY = "replay"


@dataclass(frozen=True)
class Confirming:
    """The scores of a confirmation run, and its execution."""

    scores: Confirmation
    execution: Execution


@dataclass(frozen=True)
class Request:
    """What to run again.

    Attributes:
        first: the suite, or the cases with their repeats, that the first comparison asks for.
        control: the base commit's agents by case id, where they run beside the current ones.
    """

    first: FirstStage
    control: Mapping[str, AgentSpec] = field(default_factory=dict)


def cases_again(cases: Sequence[PlannedCase], request: Request) -> list[PlannedCase]:
    """Return the cases of a confirmation run, those of the two agents alternating.

    Iterations are numbered on from the first run, so that neither its cache nor its sessions answer.

    Args:
        cases: of the first run.
        request: what to run again.
    """
    return list(_again(cases, request))


def confirm(spec: RunSpec, results: Results) -> Confirming:
    """Make the confirmation run; both sides are part of it, so that they meet the same conditions.

    Args:
        spec: of the confirmation run, with the cases of `cases_again`.
        results: of the first run, for the suites.

    Raises:
        ConfigError: an agent cannot exist on this machine.
        InfrastructureError: the journal cannot be written.
    """
    plan = make_plan(spec)
    execution = execute(plan)
    suites = {suite.path: suite for suite in results.suites}
    scores = Confirmation(
        second=run_scores(_of(execution, suites, _SECOND)),
        control=run_scores(_of(execution, suites, _CONTROL)),
        reruns=run_scores(_of(execution, suites, _RERUN)),
        control_reruns=run_scores(_of(execution, suites, _CONTROL_RERUN)),
        obstacle=_obstacle(plan, execution),
    )
    return Confirming(scores, execution)


def _obstacle(plan: Plan, execution: Execution) -> str:
    """Return why a confirmation run is incomplete, the most important reason first; empty if it is complete."""
    if execution.signal is not None:
        return "the confirming runs were interrupted"
    if plan.catalog.resources.gateway.budget.refused:
        return "the budget for models was used up by the confirming runs"
    if execution.unfinished:
        return "the time was up before the confirming runs had ended"
    cases = [case for found in execution.cases.values() for case in found]
    broken = [case for case in cases if case.status == "error"]
    if not broken:
        return ""
    errors = (
        turn.error for case in broken for iteration in case.iterations for turn in iteration.turns if turn.error
    )
    first = next(errors, "")
    return f"{len(broken)} of {len(cases)} cases of the confirming runs broke{f': {first}' if first else ''}"


def _again(cases: Iterable[PlannedCase], request: Request) -> Iterator[PlannedCase]:
    for item in cases if request.first.second_run else ():
        yield from _both_sides(item, request, (_SECOND, _CONTROL), item.iterations, item.iterations)
    for item in cases:
        repeats = request.first.reruns.get(item.case.id, 0)
        if repeats:
            yield from _both_sides(item, request, (_RERUN, _CONTROL_RERUN), repeats, 2 * item.iterations)


def _both_sides(
    item: PlannedCase, request: Request, prefixes: tuple[str, str], iterations: int, first_iteration: int
) -> Iterator[PlannedCase]:
    def marked(prefix: str, agent: AgentSpec) -> PlannedCase:
        case = replace(item.case, id=prefix + item.case.id)
        # A recording has the iterations of the first run and no others.
        first = item.first_iteration if agent.kind == _REPLAY else first_iteration
        return replace(item, case=case, agent=agent, iterations=iterations, first_iteration=first)

    yield marked(prefixes[0], item.agent)
    control = request.control.get(item.case.id)
    if control is not None:
        yield marked(prefixes[1], control)


def _of(
    execution: Execution, suites: Mapping[str, SuiteResult], prefix: str
) -> Iterable[tuple[SuiteResult, CaseResult]]:
    """Yield the cases with a prefix, under their own ids."""
    for path, cases in execution.cases.items():
        for case in cases:
            if case.id.startswith(prefix):
                yield suites[path], case.model_copy(update={"id": case.id.removeprefix(prefix)})
