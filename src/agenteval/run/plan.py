"""What is run: data only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agenteval.agents.base import Agent
from agenteval.core.llm.budget import Limits
from agenteval.core.text.redact import Redactor
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.model import CaseResult, IterationResult, RunUsage
from agenteval.run.progress import Progress
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.agents.replay.cases import RecordedAnswer


@dataclass(frozen=True, slots=True)
class AgentSlot:
    """A started agent with what the scheduler must know of its definition."""

    agent: Agent
    spec: AgentSpec


@dataclass(frozen=True, slots=True)
class Job:
    """A case of a suite, with the agent that answers it; further runs of a case count their iterations on.

    Attributes:
        done: iterations that an interrupted run had finished.
        position: of the case in the plan.
        recorded: the answer of the trace that the case was made from; no agent is asked.
    """

    suite: Suite
    case: Case
    agent: AgentSlot
    iterations: int
    first_iteration: int = 0
    done: tuple[IterationResult, ...] = ()
    position: int = 0
    recorded: RecordedAnswer | None = field(default=None, repr=False)

    @property
    def left(self) -> Sequence[int]:
        """The numbers of the iterations that are still to run."""
        wanted = range(self.first_iteration, self.first_iteration + self.iterations)
        done = {iteration.index for iteration in self.done}
        return [index for index in wanted if index not in done] if done else wanted


@dataclass(frozen=True)
class ResumedRun:
    """What an interrupted run left.

    Attributes:
        run_id: which run it is.
        active_s: how long it ran, in seconds.
        end: bytes of the journal that are whole lines.
        complete: by case id, the byte of the journal where a case stands that had finished with all its iterations.
        iterations: by case id, what had finished of others.
        done: how many iterations had finished in all.
        asked: what asking models took.
        judged: how many answers of judges counted, by suite.
    """

    run_id: str
    active_s: float
    end: int
    complete: Mapping[str, int] = field(default_factory=dict)
    iterations: Mapping[str, tuple[IterationResult, ...]] = field(default_factory=dict)
    done: int = 0
    asked: RunUsage = field(default_factory=RunUsage)
    judged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RunLimits:
    """How much runs at once, for how long, and what models may cost; ``None`` is no limit.

    Attributes:
        concurrency: iterations under way at once, of all agents together.
        case_s: limit for the conversation of one iteration, in seconds.
        run_s: limit for the whole run, in seconds; 0 or less leaves no time.
        models: calls and cost of models.
    """

    concurrency: int
    case_s: float | None = None
    run_s: float | None = None
    models: Limits = field(default_factory=Limits)

    def minus(self, usage: RunUsage, seconds: float) -> RunLimits:
        """Return what is left.

        Args:
            usage: calls and cost of models so far.
            seconds: time so far.
        """
        calls, cost_usd = self.models.max_calls, self.models.max_cost_usd
        return replace(
            self,
            run_s=None if self.run_s is None else self.run_s - seconds,
            models=Limits(
                max_calls=None if calls is None else max(0, calls - usage.llm_calls),
                max_cost_usd=None if cost_usd is None else max(0.0, cost_usd - usage.cost_usd),
            ),
        )

    @property
    def models_are_used_up(self) -> bool:
        """Whether no model can be called any more."""
        return self.models.max_calls == 0 or self.models.max_cost_usd == 0

    @property
    def time_is_up(self) -> bool:
        """Whether no time is left."""
        return self.run_s is not None and self.run_s <= 0


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case with its agent and its iterations.

    Attributes:
        follow_recording: nobody asked for a number of iterations, so that a replay agent answers all it has recorded.
        recorded: the answer of the trace that the case was made from; no agent is asked.
    """

    suite: Suite
    case: Case
    agent: AgentSpec
    iterations: int
    first_iteration: int = 0
    follow_recording: bool = False
    recorded: RecordedAnswer | None = field(default=None, repr=False)


class CaseSource(Protocol):
    """Cases that are planned one by one, as the run gets to them; every iteration starts anew."""

    def __iter__(self) -> Iterator[PlannedCase]: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the last iteration left out."""
        ...


@dataclass(frozen=True)
class Plan:
    """The cases of a run, with everything that the runner needs.

    Attributes:
        cases: in a fixed order.
        compared: the cases stay in memory, because they are compared with a baseline.
        named: whether the quarantine names a case, so that reports list it whatever its status is.
        earlier: the interrupted run that this one finishes.
    """

    run_id: str
    cases: Sequence[PlannedCase] | CaseSource
    limits: RunLimits
    catalog: MetricCatalog
    journal: Path
    redact: Redactor = field(repr=False)
    progress: Progress
    compared: bool
    named: Callable[[CaseResult], bool]
    earlier: ResumedRun | None = None
