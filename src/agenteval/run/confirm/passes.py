"""Makes the passes that the gate asks for, in new sessions; without a baseline, the base makes the first ones."""

from __future__ import annotations

import hashlib
import json
import sys
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from agenteval.core.errors import AgentEvalError, ConfigError, UserCodeError
from agenteval.core.escape import one_line
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import held_signal
from agenteval.core.secrets import shortened
from agenteval.gate.evidence import Sides
from agenteval.gate.proof import Ask, CannotRunError, Side
from agenteval.gate.run_scores import baseline_case, baseline_run
from agenteval.gate.values import Pass
from agenteval.gate.words import count
from agenteval.results.case import CaseResult
from agenteval.results.history import why_not_evaluated
from agenteval.results.model import Results, RunUsage
from agenteval.results.rollup import agent_errors, summarise
from agenteval.run.base_commit import BaseCommit
from agenteval.run.confirm.control import Control, opened_control
from agenteval.run.context import FoundBaseline
from agenteval.run.execute import execute
from agenteval.run.git import ControlError
from agenteval.run.plan import Plan, PlannedCase, RunExecution, Shard, with_session
from agenteval.run.progress import PassProgress, Progress
from agenteval.run.rescore import rescorable
from agenteval.run.resolve.agents import interpreters_of
from agenteval.run.resolve.spec import PassPlan, RunSpec, llm_share, make_plan
from agenteval.run.store import confirmation_file
from agenteval.suite.model import OVERALL, AgentSpec, Case, Fingerprints, MetricConfig

_INTERRUPTED = "the passes side by side were interrupted; run it again"
_BUDGET, _TIME = "raise llm.max_calls or llm.max_cost_usd in agenteval.yaml", "raise time_limit in agenteval.yaml"
# Errors before any case ran: the agent of the base commit cannot start.
_CANNOT_START = (ControlError, ConfigError, UserCodeError)
_LONGEST_ERROR = 300
# One failure of an agent may be an accident: a pass of the base with fewer cases tells together with those before.
_FEWEST = 3


@dataclass
class Passes:
    """Makes passes within the limits that the first run has left; the base commit's agent exists inside the block.

    Each pass has a journal. A resumed run reads the passes that were made from there, and makes only what is missing.

    Attributes:
        first: the execution of the first run, whose usage and time count.
        base: the base commit, or why it cannot be used.
        controls: deployments of its agents, by case id; by default those of the run.
        shard: takes its share of the budget that the first run has left.
    """

    spec: RunSpec
    first: RunExecution
    base: BaseCommit | AgentEvalError | None = field(repr=False)
    controls: Mapping[str, AgentSpec] | None = field(default=None, repr=False)
    resume: bool = False
    shard: Shard | None = None
    usage: RunUsage = field(default_factory=RunUsage)
    seconds: float = 0.0
    signal: int | None = None
    warnings: list[str] = field(default_factory=list)
    _entered: ExitStack = field(default_factory=ExitStack, repr=False)
    _control: Control | AgentEvalError | None = field(default=None, repr=False)
    _asked: RunUsage = field(default_factory=RunUsage)
    _of_base: list[tuple[str, CaseResult]] = field(default_factory=list)
    _number: int = 0
    _told: set[Side] = field(default_factory=set)
    _progress: Progress = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._progress = Progress() if self.spec.output.quiet else PassProgress(sys.stderr)

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._entered.__exit__(*raised)

    @property
    def commit(self) -> str | None:
        """The commit whose agent ran beside the change; ``None`` if none did."""
        return self._control.commit if isinstance(self._control, Control) else None

    def again(self, ask: Ask, sides: Sides) -> Pass:
        """Make a pass, and return its values."""
        suites = {suite.path: suite for suite in sides.current.suites}
        return sides.one_pass((suites[path], case) for path, case in self.made(ask.side, ask.cases))

    def made(self, side: Side, cases: Sequence[str], iterations: int = 1) -> list[tuple[str, CaseResult]]:
        """Return the finished cases of a pass, each with the path of its suite."""
        if self._is_interrupted():
            raise CannotRunError(_INTERRUPTED)
        self._number += 1
        try:
            return self._made(side, cases, iterations)
        except AgentEvalError as error:
            if self._is_interrupted():
                # Ctrl-C ends git, too.
                raise CannotRunError(_INTERRUPTED) from None
            why = self.spec.redact(str(error))
            if side != "base" or not isinstance(error, _CANNOT_START):
                self.warnings.append(f"no further pass was made: {error}")
                raise CannotRunError(why) from None
            # No further pass tries it again.
            self._control = error
            warning = f"the agent of the base commit cannot run beside the change: {error}"
            if warning not in self.warnings:
                self.warnings.append(warning)
            raise CannotRunError(why, "outside", "base") from None

    def _tell(self, side: Side, number: int) -> None:
        text = "running side by side with the base" if side == "base" else "running again what may be worse"
        if side not in self._told and not self.spec.output.quiet:
            self._told.add(side)
            sys.stderr.write(f"{text}: {count(number, 'case')}\n")
            sys.stderr.flush()

    def fingerprints(self) -> Mapping[str, Fingerprints]:
        """Return the fingerprints of the cases of both commits, with the metrics that they share.

        The base must be open.
        """
        theirs, found = self._opened_control().cases, {}
        for own in (item.case for item in self.spec.cases if item.case.id in theirs):
            shared = _shared_metrics(theirs[own.id].case, own)
            if shared is not None:
                metrics = {name: content for name, content in own.fingerprints.metrics.items() if name in shared}
                found[own.id] = Fingerprints(own.fingerprints.question, metrics)
        return found

    def _made(self, side: Side, asked: Sequence[str], iterations: int) -> list[tuple[str, CaseResult]]:
        before, now = self.first.asked, self._asked
        left = self.spec.llm.limits.minus(before.llm_calls, before.cost_usd)
        llm = llm_share(replace(self.spec.llm, limits=left), self.shard)
        budget = llm.limits.minus(now.llm_calls, now.cost_usd)
        limits = self.spec.limits.minus(self.first.duration_s - self.first.earlier_s + self.seconds)
        if budget.are_exhausted and before.llm_calls + now.llm_calls > 0:
            raise CannotRunError(f"the LLM budget is exhausted; {_BUDGET}")
        if limits.time_limit_reached:
            raise CannotRunError(f"the time limit was reached; {_TIME}")
        control = self._opened_control() if side == "base" else Control()
        cases = self._planned(side, asked, control, iterations)
        self._tell(side, len(cases))
        if not cases:
            why = "no requested case is in the base commit with the same question and metrics"
            raise CannotRunError(f"{why}; merge the change of the suite first, or accept it with 'agenteval accept'")
        again = PassPlan(
            cases=tuple(cases),
            limits=limits,
            llm=replace(llm, limits=budget),
            interpreters=interpreters_of([case.agent for case in control.cases.values()]),
            progress=self._progress,
            journal=self.spec.output.journal.with_name(confirmation_file(self._number)),
            conditions={
                "the first run": self.first.run_id,
                "the pass": _digest([side, [item.case.id for item in cases]]),
                "the base": control.commit
                or _digest(sorted(str(case.agent.target) for case in control.cases.values())),
            },
        )
        try:
            plan = make_plan(self.spec, again, resume=self.resume)
        except ConfigError:
            # There is no journal, or that of another pass.
            plan = make_plan(self.spec, again)
        execution = execute(plan)
        self._count(execution)
        if why := _why_incomplete(plan, execution):
            raise CannotRunError(why)
        found = [(path, case) for path, done in execution.cases.items() for case in done]
        # Without a baseline, the run of the base is one, and is refused as every other one is.
        if side == "base" and self.spec.baseline is not None:
            self._of_base = found if len(found) >= _FEWEST else [*self._of_base, *found][-_FEWEST:]
            named = self.spec.control.agents if self.controls is None else self.controls
            if broken := _why_broken(self._of_base, named):
                raise ControlError(broken)
        return found

    def _planned(self, side: Side, asked: Sequence[str], control: Control, iterations: int) -> list[PlannedCase]:
        wanted = set(asked)
        # It looks like that of any other run.
        session = uuid.uuid4().hex[:12]
        agents: dict[int, AgentSpec] = {}

        def agent_of(agent: AgentSpec) -> AgentSpec:
            return agents.setdefault(id(agent), with_session(agent, session))

        cases = []
        for item in self.spec.cases:
            if item.case.id not in wanted:
                continue
            again = replace(item, iterations=iterations)
            if side == "pr":
                cases.append(replace(again, agent=agent_of(item.agent)))
                continue
            there = control.cases.get(item.case.id)
            case = _comparable(there.case, item.case) if there is not None else None
            if there is not None and case is not None:
                # The change may have moved the suite; its settings are known by its path there.
                suite = replace(there.suite, path=item.suite.path)
                cases.append(replace(again, suite=suite, case=case, agent=agent_of(there.agent)))
        return cases

    def _is_interrupted(self) -> bool:
        if self.signal is None:
            self.signal = held_signal()
        return self.signal is not None

    def _opened_control(self) -> Control:
        if self._control is None:
            try:
                opened = opened_control(self.base, self.spec, self.controls)
                self._control = self._entered.enter_context(opened)
                self.warnings += [self._control.note] if self._control.note else []
            except AgentEvalError as error:
                self._control = error
        if isinstance(self._control, AgentEvalError):
            raise self._control
        return self._control

    def _count(self, execution: RunExecution) -> None:
        self.usage = self.usage.plus(execution.summary.usage)
        self.signal = execution.signal
        self.warnings += [text for text in execution.warnings if text not in self.warnings]
        self._asked = self._asked.plus(execution.asked)
        self.seconds += execution.duration_s - execution.earlier_s


def _why_incomplete(plan: Plan, execution: RunExecution) -> str:
    if execution.signal is not None:
        return _INTERRUPTED
    if plan.resources.gateway.budget.refused:
        return f"the LLM budget was exhausted by the passes side by side; {_BUDGET}"
    if execution.unfinished:
        return f"the time limit was reached before the passes side by side had ended; {_TIME}"
    return ""


def _why_broken(cases: Sequence[tuple[str, CaseResult]], named: Collection[str]) -> str:
    """Return why the passes of the base say nothing about it; empty if they do.

    An agent that fails has the score 0. A base that lacks what earlier steps installed always fails, and a change
    that is as bad would look harmless beside it. The baseline shows that the base commit can answer.

    Args:
        named: the cases that a deployment answers, by id.
    """
    iterations = [iteration for _, case in cases for iteration in case.iterations]
    failed = [turn for iteration in iterations for turn in iteration.turns[-1:] if turn.error]
    is_deployed = any(case.id in named for _, case in cases)
    # A deployment that never answers is no outage that a later pass might not meet.
    is_gone = is_deployed and len(failed) == len(iterations) and all(turn.unavailable for turn in failed)
    errors = [turn.error or "" for turn in failed if is_gone or not turn.unavailable]
    if len(iterations) < _FEWEST or len(errors) * 2 <= len(iterations):
        return ""
    lacks = "what earlier steps install in the workspace is not in its checkout: install it with setup, or elsewhere"
    if is_deployed:
        lacks = "check the deployment that `control:` or --control names"
    first = shortened(errors[0], _LONGEST_ERROR)
    return f"its agent failed in {len(errors)} of {len(iterations)} iterations ({lacks}): {first}"


def _shared_metrics(theirs: Case, ours: Case) -> frozenset[str] | None:
    before, now = theirs.fingerprints, ours.fingerprints
    shared = _alike(before, now) | rescorable(ours, baseline_case(before, {}))
    return None if before.question != now.question or (now.metrics and not shared) else shared


def _comparable(theirs: Case, ours: Case) -> Case | None:
    shared = _shared_metrics(theirs, ours)
    if shared is None:
        return None
    same = _alike(theirs.fingerprints, ours.fingerprints)

    def chosen(before: Iterable[MetricConfig], now: Iterable[MetricConfig]) -> tuple[MetricConfig, ...]:
        kept = (metric for metric in before if metric.id in same)
        return (*kept, *(metric for metric in now if metric.id in shared - same))

    turns = tuple(
        # A metric that both share expects the same of the turn.
        replace(
            turn,
            ground_truth=own.ground_truth,
            retrieval_context=own.retrieval_context,
            config=own.config,
            metrics=chosen(turn.metrics, own.metrics),
        )
        for turn, own in zip(theirs.turns, ours.turns, strict=True)
    )
    aggregate = ours.aggregate if OVERALL in shared else None
    return replace(theirs, turns=turns, metrics=chosen(theirs.metrics, ours.metrics), aggregate=aggregate)


def _alike(before: Fingerprints, now: Fingerprints) -> frozenset[str]:
    return frozenset(metric for metric, content in now.metrics.items() if before.metrics.get(metric) == content)


def _digest(value: object) -> str:
    return f"#{hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]}"


_COMMIT = 7


def first_baseline(results: Results, passes: Passes) -> FoundBaseline:
    """Run the suite with the base commit's agent, with as many iterations as a first run.

    Args:
        results: the first run of the pull request.
    """
    cases = {item.case.id: item for item in passes.spec.cases}
    asked = [case.id for _, case in results.cases() if case.id in cases and case.status != "skipped"]
    iterations = max((cases[case_id].iterations for case_id in asked), default=1)
    done = passes.made("base", asked, iterations)
    made = _results_of(done, results, passes)
    if why := why_not_evaluated(made.summary):
        raise CannotRunError(f"{why}{_first_error(made)}", "outside", "base")
    where = f"the base commit {made.run.commit[:_COMMIT]}" if made.run.commit else "the deployment of the base commit"
    missing = passes.spec.earlier.missing
    # The reason can be a missing permission, which would cost this run in every pull request.
    *notes, reason = missing or ("no earlier run was found",)
    calls = count(iterations * len(done), "call")
    made_now = f"so the suite ran once at {where} ({calls}), and this is the baseline"
    return FoundBaseline(made, (*notes, f"{reason}; {made_now}"))


def _first_error(made: Results) -> str:
    errors = sorted(text for _, case in made.cases() for text in agent_errors(case.turns))
    return f": {one_line(errors[0], _LONGEST_ERROR)}" if errors else ""


def _results_of(done: Sequence[tuple[str, CaseResult]], results: Results, passes: Passes) -> Results:
    by_id = {case.id: case for _, case in done}
    fingerprints = {case_id: known for case_id, known in passes.fingerprints().items() if case_id in by_id}
    suites = [
        suite.model_copy(update={"cases": [by_id[case.id] for case in suite.cases if case.id in fingerprints]})
        for suite in results.suites
    ]
    branch = passes.spec.control.branch
    run = results.run.model_copy(
        update={
            "id": f"{results.run.id}.base",
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "commit": passes.commit,
            "ref": f"refs/heads/{branch}" if branch else None,
            "base_ref": None,
            "workflow_run_id": None,
            "workflow_artifact": None,
            "integrity": [],
            "accepted": [],
        }
    )
    kept = [case for suite in suites for case in suite.cases]
    nothing: dict[str, object] = {"gate": None, "baseline_runs": [], "memory": None}
    made = results.model_copy(update={"run": run, "suites": suites, "summary": summarise(kept), **nothing})
    return made.model_copy(update={"baseline_runs": [baseline_run(made, fingerprints)]})
