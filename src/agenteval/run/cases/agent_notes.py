"""What many cases of one agent have in common, so that it is reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agenteval.results.agent_errors import agent_errors
from agenteval.results.case import CaseResult
from agenteval.run.cases.agent_failure import AgentFailure
from agenteval.suite.agent_kinds import REPLAY
from agenteval.suite.model import AgentSpec

# The kind of the metrics of expected tool calls.
_TOOLS = "tools"
_MOST_ERRORS = 1000


@dataclass
class _Agent:
    """The cases of one agent.

    Attributes:
        without_expected_calls: number of cases that lack an expected tool call.
        errors: number of cases by error.
        fastest_ms: latency of the fastest answer.
    """

    spec: AgentSpec
    cases: int = 0
    has_tool_calls: bool = False
    without_expected_calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    fastest_ms: float | None = None

    def add(self, case: CaseResult) -> None:
        """Count a case."""
        self.cases += 1
        for turn in case.turns:
            if turn.error is None and turn.latency_ms is not None:
                self.fastest_ms = min(turn.latency_ms, self.fastest_ms or turn.latency_ms)
        self.has_tool_calls |= any(turn.tool_calls for turn in case.turns)
        self.without_expected_calls += any(score.kind == _TOOLS and score.passed is False for score in case.scores)
        # What was not asked did not fail.
        for error in agent_errors(turn for turn in case.turns if not turn.not_asked):
            if error in self.errors or len(self.errors) < _MOST_ERRORS:
                self.errors[error] += 1


class AgentNotes:
    """Counts the cases of each agent."""

    def __init__(self) -> None:
        self._agents: dict[int, _Agent] = {}

    def add(self, spec: AgentSpec, case: CaseResult) -> None:
        """Count a finished case of an agent."""
        self._agents.setdefault(id(spec), _Agent(spec)).add(case)

    def failures(self) -> Iterator[AgentFailure]:
        """Yield the error of each agent that failed in every case for one reason, and of those that were too slow."""
        for agent in self._agents.values():
            if agent.spec.kind == REPLAY:
                continue
            found = [
                AgentFailure(agent.spec, error, count, agent.cases, agent.fastest_ms)
                for error, count in agent.errors.most_common()
            ]
            yield from [item for item in found if item.cases == agent.cases or item.is_timeout][:1]

    def warnings(self, mapping_of: Callable[[AgentSpec], str | None]) -> Iterator[str]:
        """Yield sentences about agents that never return tool calls; every report groups the errors.

        Args:
            mapping_of: returns the configuration that would find the tool calls of an agent, if it is known.
        """
        for agent in self._agents.values():
            if agent.without_expected_calls and not agent.has_tool_calls:
                yield _without_calls(agent, mapping_of(agent.spec))


def _without_calls(agent: _Agent, mapping: str | None) -> str:
    number = agent.without_expected_calls
    what = "1 case expects" if number == 1 else f"{number:,} cases expect"
    place = f" ({agent.spec.where})" if agent.spec.where else ""
    fix = (
        f"the replies contain tool calls elsewhere: add `{mapping}` to the agent{place}"
        if mapping
        else f"return them as `tool_calls`; `agenteval probe` shows a reply of the agent{place}"
    )
    return f"{what} tool calls, but no reply of the agent contains any; {fix}"
