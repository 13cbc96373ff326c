"""What the scheduler runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.agents.base import Agent
from agenteval.results.model import IterationResult
from agenteval.suite.model import AgentSpec, Case, Suite


@dataclass(frozen=True, slots=True)
class BoundAgent:
    """A started agent with what the scheduler must know of its definition."""

    agent: Agent
    spec: AgentSpec


@dataclass(frozen=True, slots=True)
class Job:
    """A case of a suite, with the agent that answers it; further runs of a case count their iterations on.

    Attributes:
        done: iterations that an interrupted run had finished.
        position: of the case in the plan.
    """

    suite: Suite
    case: Case
    agent: BoundAgent
    iterations: int
    first_iteration: int = 0
    done: tuple[IterationResult, ...] = ()
    position: int = 0

    @property
    def left(self) -> Sequence[int]:
        """The numbers of the iterations that are still to run."""
        wanted = range(self.first_iteration, self.first_iteration + self.iterations)
        done = {iteration.index for iteration in self.done}
        return [index for index in wanted if index not in done] if done else wanted
