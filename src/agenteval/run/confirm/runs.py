"""Makes the runs that a confirmation asks for, one request after the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from agenteval.compare.regression.model import Request, Side, Unavailable
from agenteval.core.errors import AgentEvalError, ConfigError, UserCodeError
from agenteval.core.runtime import held_signal
from agenteval.results.case import CaseResult
from agenteval.results.model import RunUsage
from agenteval.run.confirm.control import Control, PreparedControl, opened_control
from agenteval.run.confirm.requests import FinishedRuns, needs_control, request_key, why_broken
from agenteval.run.confirm.round import Round, shared_metrics
from agenteval.run.confirm.spent import Spent, narrowed, refusal
from agenteval.run.execute import execute
from agenteval.run.git import ControlError
from agenteval.run.journal import confirmation_file
from agenteval.run.plan import Plan, PlannedCase, RunExecution
from agenteval.run.progress import CONFIRMING
from agenteval.run.resolve.agents import interpreters_of
from agenteval.run.resolve.spec import RunSpec, make_plan

_INTERRUPTED = "the confirmation run was interrupted"
# Errors before any case ran: the agent of the base commit cannot start.
_CANNOT_START = (ControlError, ConfigError, UserCodeError)


@contextmanager
def confirming_runs(
    spec: RunSpec, first: RunExecution, prepared: PreparedControl | AgentEvalError | None
) -> Iterator[ConfirmingRuns]:
    """Yield what makes the runs of a confirmation; the control exists until the end of the block.

    Args:
        first: its execution, whose usage and time count.
        prepared: the control, from ``prepared_control``.
    """
    early = prepared.early if isinstance(prepared, PreparedControl) else ()
    with ExitStack() as entered:
        yield ConfirmingRuns(spec, first, _Controls(spec, entered, prepared), early)


@dataclass
class _Controls:
    """Opens one control at a time."""

    spec: RunSpec
    entered: ExitStack
    prepared: PreparedControl | AgentEvalError | None
    name: str = "the base commit"

    def open(self) -> Control:
        """Check the control out.

        Raises:
            AgentEvalError: it cannot run.
        """
        return self.entered.enter_context(_opened(self.prepared, self.spec))

    def turn_to(self, prepared: PreparedControl) -> None:
        """Close the control, and open another one at the next request. It has no deployments."""
        self.entered.close()
        self.prepared, self.spec = prepared, replace(self.spec, controls={})
        self.name = f"commit {prepared.tree.commit[:12]}" if prepared.tree is not None else self.name


def _opened(prepared: PreparedControl | AgentEvalError | None, spec: RunSpec) -> AbstractContextManager[Control]:
    if isinstance(prepared, AgentEvalError):
        raise prepared
    if prepared is None:
        raise ControlError("this run has no control")
    return opened_control(prepared, spec)


@dataclass
class ConfirmingRuns:
    """Makes the runs of one confirmation, within the limits that the first run has left.

    Each request has a journal. A resumed run reads the answers to the same requests from there, and makes only what
    is missing.

    Attributes:
        early: early commits of the base branch, for a long look; or why they cannot run.
    """

    spec: RunSpec
    first: RunExecution
    controls: _Controls = field(repr=False)
    early: tuple[PreparedControl | AgentEvalError, ...] = ()
    spent: Spent = field(default_factory=Spent)
    usage: RunUsage = field(default_factory=RunUsage)
    signal: int | None = None
    warnings: list[str] = field(default_factory=list)
    _control: Control | AgentEvalError | None = None
    _left: RunSpec | None = None
    _asked: int = 0
    _done: dict[str, int] = field(default_factory=dict)
    _requests: int = 0

    @property
    def control_commit(self) -> str | None:
        """The commit whose agent ran; ``None`` if it has none or did not run."""
        return self._control.commit if isinstance(self._control, Control) else None

    def answer(self, request: Request) -> FinishedRuns:
        """Make the runs of a request.

        Args:
            request: the runs to make; with two sides, both run at the same time.

        Returns:
            The finished cases. ``unavailable`` tells why something is missing: the control cannot run, a limit is
            reached, or a signal ended the run.
        """
        if self._is_interrupted():
            return _missing(_INTERRUPTED)
        self._requests += 1
        try:
            return self._answer(request, Round(request, f"{self.first.run_id}.{self._requests}"))
        except AgentEvalError as error:
            if self._is_interrupted():
                # Ctrl-C ends git, too.
                return _missing(_INTERRUPTED)
            if not needs_control(request) or not isinstance(error, _CANNOT_START):
                self.warnings.append(f"no confirmation run was made: {error}")
                return _missing(self.spec.redact(str(error)))
            # No further request tries it again.
            self._control = error
            warning = f"the agent of {self.controls.name} cannot run beside the change: {error}"
            if warning not in self.warnings:
                self.warnings.append(warning)
            return FinishedRuns(unavailable=Unavailable("control", self.spec.redact(str(error))))

    def turn_to(self, prepared: PreparedControl) -> Mapping[str, frozenset[str] | None] | None:
        """Let further requests run beside another control.

        Returns:
            What ``shared`` returns; ``None`` if the control cannot run: then the next request tells why.
        """
        self.close()
        self.controls.turn_to(prepared)
        self._control = None
        try:
            self._opened_control()
        except AgentEvalError:
            return None
        return self.shared()

    def _is_interrupted(self) -> bool:
        """Return whether a signal arrived, during a run of cases or after it."""
        if self.signal is None:
            self.signal = held_signal()
        return self.signal is not None

    def shared(self) -> Mapping[str, frozenset[str] | None]:
        """Return the metrics that each case shares with the control, by case id; ``None`` for all.

        The control must be open.
        """
        cases = self._opened_control().cases
        ours = {item.case.id: item.case for item in self.spec.cases if item.case.id in cases}
        pairs = {case_id: (cases[case_id].case, case) for case_id, case in ours.items()}
        same = {case_id: (shared_metrics(*pair), pair[1]) for case_id, pair in pairs.items()}
        return {
            case_id: metrics if case.fingerprints.metrics else None
            for case_id, (metrics, case) in same.items()
            if metrics is not None
        }

    def close(self) -> None:
        """Add warnings about what happened to the control; call it after the last request."""
        if isinstance(self._control, Control):
            self.warnings += [text for text in self._control.warnings() if text not in self.warnings]

    def _answer(self, request: Request, made: Round) -> FinishedRuns:
        left = self._left or self.spec.after(self.first.asked, self.first.duration_s - self.first.earlier_s)
        asked = self._asked + self.first.asked.llm_calls
        if left.llm.limits.are_exhausted and asked > 0:
            return _missing("the LLM budget is exhausted")
        if left.limits.time_limit_reached:
            return _missing("the time limit was reached")
        control = self._opened_control() if needs_control(request) else Control()
        cases = list(made.planned(self.spec.cases, control.cases, self._done))
        if "control" in request.sides and not any(item.beside for item in cases):
            why = "no requested case is in the base commit with the same question and metrics"
            return FinishedRuns(unavailable=Unavailable("control", why))
        limits = self.spec.compare.max_confirmation
        wanted = sum(item.iterations for item in cases)
        refused = refusal(limits, self.spent, wanted, self._run_calls, self._cost_of_a_call())
        if refused:
            return FinishedRuns(unavailable=Unavailable("limit", refused))
        if not cases:
            return FinishedRuns()
        llm = replace(left.llm, limits=narrowed(left.llm.limits, limits, self.spent))
        plan, execution = self._executed(self._spec_of(replace(left, llm=llm), made, cases, control))
        self._count(made, wanted, execution, left)
        why = _why_incomplete(plan, execution)
        finished = FinishedRuns(_by_side(made, execution), Unavailable("runs", why) if why else None)
        # Without a baseline, the run of the control is one, and is refused as every other one is.
        if self.spec.baseline is not None and (broken := why_broken(finished.side("control"))):
            raise ControlError(broken)
        return finished

    def _opened_control(self) -> Control:
        """Return the control.

        Raises:
            AgentEvalError: it cannot run; no further request tries it again.
        """
        if self._control is None:
            try:
                self._control = self.controls.open()
            except AgentEvalError as error:
                self._control = error
        if isinstance(self._control, AgentEvalError):
            raise self._control
        return self._control

    @property
    def _run_calls(self) -> int:
        return sum(item.iterations for item in self.spec.cases)

    def _cost_of_a_call(self) -> float:
        """Return what one iteration of a case has cost so far, in US dollars; 0 if it is unknown."""
        calls = self.spent.calls + self._run_calls
        return (self.first.summary.usage.cost_usd + self.spent.cost_usd) / max(calls, 1)

    def _spec_of(self, left: RunSpec, made: Round, cases: list[PlannedCase], control: Control) -> RunSpec:
        agents = [case.agent for case in control.cases.values()]
        interpreters = interpreters_of(agents)
        changed = {
            id(settings): replace(settings, interpreters={**settings.interpreters, **interpreters})
            for settings in left.settings.values()
        }
        return replace(
            left,
            cases=tuple(cases),
            settings={path: changed[id(settings)] for path, settings in left.settings.items()},
            # A cached answer is no second sample.
            llm=replace(left.llm, cache=None),
            journal=left.journal.with_name(confirmation_file(self._requests)),
            activity=CONFIRMING,
            conditions={
                "the first run": self.first.run_id,
                "the request": _digest([*request_key(made.request), [item.case.id for item in cases]]),
                "the control": control.commit
                or _digest(sorted(str(case.agent.target) for case in control.cases.values())),
            },
        )

    def _executed(self, spec: RunSpec) -> tuple[Plan, RunExecution]:
        """Run a plan; the cases in the journal of an interrupted run are not run again."""
        if spec.resume:
            try:
                plan = make_plan(spec)
            except ConfigError:
                # There is no journal, or that of another request.
                plan = make_plan(replace(spec, resume=False))
        else:
            plan = make_plan(spec)
        return plan, execute(plan)

    def _count(self, made: Round, calls: int, execution: RunExecution, left: RunSpec) -> None:
        usage = execution.summary.usage
        self.usage = self.usage.plus(usage)
        self.spent = self.spent.plus(Spent(calls, usage.cost_usd))
        self.signal = execution.signal
        self.warnings += execution.warnings
        self._asked += execution.asked.llm_calls
        self._left = left.after(execution.asked, execution.duration_s - execution.earlier_s)
        for item in self.spec.cases:
            more = made.request.iterations.get(item.case.id, 0)
            if more:
                self._done[item.case.id] = self._done.get(item.case.id, item.iterations) + more


def _missing(why: str) -> FinishedRuns:
    return FinishedRuns(unavailable=Unavailable("runs", why))


def _by_side(made: Round, execution: RunExecution) -> Mapping[Side, tuple[tuple[str, CaseResult], ...]]:
    """Return the finished cases by side, with the ids of the first run."""
    found: dict[Side, tuple[tuple[str, CaseResult], ...]] = {}
    for side in made.request.sides:
        prefix = made.prefix(side)
        found[side] = tuple(
            (path, case.model_copy(update={"id": case.id.removeprefix(prefix)}))
            for path, cases in execution.cases.items()
            for case in cases
            if case.id.startswith(prefix)
        )
    return found


def _why_incomplete(plan: Plan, execution: RunExecution) -> str:
    """Return why runs are incomplete, the main reason first; empty if they are complete."""
    if execution.signal is not None:
        return _INTERRUPTED
    if plan.resources.gateway.budget.refused:
        return "the LLM budget was exhausted by the confirmation run"
    if execution.unfinished:
        return "the time limit was reached before the confirmation run had ended"
    return ""


def _digest(value: object) -> str:
    return f"#{hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]}"
