"""What the scheduler runs."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.agents.base import Agent
from agenteval.results.model import IterationResult
from agenteval.suite.model import AgentSpec, Case, Suite


@dataclass(frozen=True)
class BoundAgent:
    """A started agent with what the scheduler must know of its definition."""

    agent: Agent
    spec: AgentSpec


@dataclass(frozen=True)
class Job:
    """A case of a suite, with the agent that answers it; further runs of a case count their iterations on.

    Attributes:
        done: iterations that an interrupted run had finished.
    """

    suite: Suite
    case: Case
    agent: BoundAgent
    iterations: int
    first_iteration: int = 0
    done: tuple[IterationResult, ...] = ()

    @property
    def left(self) -> list[int]:
        """The numbers of the iterations that are still to run."""
        done = {iteration.index for iteration in self.done}
        end = self.first_iteration + self.iterations
        return [index for index in range(self.first_iteration, end) if index not in done]
