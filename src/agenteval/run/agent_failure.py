"""Failures of agents in words: of one turn, and notes about many turns that fail alike."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from agenteval.core.errors import MOST_ALIKE, Kind, Problem, agent_problem
from agenteval.core.records import dataclass, field, replace
from agenteval.core.secrets import is_secret_name, shortened
from agenteval.core.text import display_path
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.rollup import RAISED, agent_errors
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec

_MISSING = (
    re.compile(r"can't open file '(?P<file>[^']+)'"),
    re.compile(r"Cannot find module '(?P<file>/[^']+)'"),
    re.compile(r"(?:^|[\s:])(?P<file>[\w./-]+): (?:command )?not found\b"),
    re.compile(r"(?P<file>[\w./-]+): No such file or directory"),
)
_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<module>[^']+)'")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_LISTENS = re.compile(r"nothing listens on \S+")

_TIMEOUT = "no answer within "
_LONGEST = 300


@dataclass(frozen=True)
class AgentFailure:
    """An error that cases of an agent have in common.

    Attributes:
        fastest_ms: latency of its fastest answer, if it gave any.
    """

    spec: AgentSpec
    error: str
    cases: int
    total: int
    fastest_ms: float | None = None

    @property
    def is_timeout(self) -> bool:
        """Whether the agent was too slow."""
        return self.error.startswith(_TIMEOUT)

    def problem(self) -> Problem:
        """Return what to tell the author of the agent."""
        if self.is_timeout:
            return self._too_slow()
        found = next(self._explanations())
        if self.cases <= MOST_ALIKE:
            return found
        stopped = f"after the first {MOST_ALIKE} failures alike, the agent was not asked again"
        return replace(found, message=f"{found.message}; {stopped}")

    def _explanations(self) -> Iterator[Problem]:
        # The error ends with the last line of a traceback, whose beginning can be cut off.
        module, raised = _MODULE.search(self.error), RAISED.search(self.error)
        for pattern in _MISSING:
            if raised is None and (missing := pattern.search(self.error)):
                what = f"your agent cannot be started: {self._here(missing['file'])} does not exist here"
                fix = f"the command runs in {self._directory()}"
                yield self._at_agent(f"{what}; {fix}", mark=self._here(missing["file"]))
        if module is not None:
            what = f"your agent cannot be started: it imports {module['module']}, which is not installed"
            yield self._at_agent(f"{what}; install it with `setup` of the action, or name another `interpreter`")
        if raised is not None:
            yield self._raised(raised["error"], raised["text"])
        listens = _LISTENS.search(self.error)
        if listens is not None:
            start = "start the service before the run; in the action's container, services are called by their names"
            yield self._at_agent(f"{listens[0]}; {start}")
        yield self._at_agent(f"your agent failed: {self.error}; `agenteval probe` shows the request and the reply")

    def _raised(self, error: str, text: str) -> Problem:
        what = f"your agent raised {shortened(error, _LONGEST)}"
        secrets = [name for name in _NAME.findall(text) if is_secret_name(name)]
        fix = (
            "set the variable in the environment; in CI your code gets it only by name: write "
            f"`pass_env: [{secrets[0]}]` in agenteval.yaml"
            if secrets
            else "`agenteval probe` repeats it with one case"
        )
        place = self._frame()
        if place is None:
            return self._at_agent(f"{what}; {fix}")
        file, line = place
        return Problem(f"{what}; {fix}", file=file, line=line, kind=Kind.AGENT_FAILS)

    def _frame(self) -> tuple[str, int] | None:
        directory = Path(self.spec.directory)
        for frame in reversed(list(_FRAME.finditer(self.error))):
            path = Path(os.path.normpath(directory / frame["file"]))
            if path.is_relative_to(directory) and "site-packages" not in path.parts:
                return display_path(path), int(frame["line"])
        return None

    def _too_slow(self) -> Problem:
        fastest = "" if self.fastest_ms is None else f" (fastest answer {self.fastest_ms / 1000:.1f} s)"
        cases = "" if self.cases == self.total else f" in {self.cases:,} of {self.total:,} cases"
        limit = self.error.removeprefix(_TIMEOUT)
        key = "`case_timeout` in agenteval.yaml" if limit.endswith("of the case") else "`timeout` of the agent"
        fix = f"set a longer {key}, such as 2m"
        return self._at_agent(f"your agent did not answer within {limit}{cases}{fastest}; {fix}")

    def _at_agent(self, message: str, mark: str = "") -> Problem:
        place, target = agent_problem(self.spec.where, ""), self.spec.target
        shown = mark or (target if isinstance(target, str) else next(iter(target), "")) or self.spec.kind
        return Problem(shortened(message, 2 * _LONGEST), place.file, place.line, kind=Kind.AGENT_FAILS, mark=shown)

    def _here(self, file: str) -> str:
        path = Path(self.spec.directory, file)
        return path.relative_to(self.spec.directory).as_posix() if path.is_relative_to(self.spec.directory) else file

    def _directory(self) -> str:
        shown = display_path(Path(self.spec.directory))
        return "this directory" if shown == "." else shown


# The kind of the metrics of expected tool calls.
_TOOLS = "tools"
_MOST_ERRORS = 1000


@dataclass
class _Agent:
    spec: AgentSpec
    cases: int = 0
    has_tool_calls: bool = False
    without_expected_calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    fastest_ms: float | None = None

    def add(self, case: CaseResult) -> None:
        self.cases += 1
        # What was not asked did not fail.
        failed: list[TurnResult] = []
        for turn in case.turns:
            if turn.error is None:
                if turn.latency_ms is not None:
                    self.fastest_ms = min(turn.latency_ms, self.fastest_ms or turn.latency_ms)
            elif not turn.not_asked:
                failed.append(turn)
            self.has_tool_calls = self.has_tool_calls or bool(turn.tool_calls)
        if not self.has_tool_calls:
            self.without_expected_calls += any(
                score.kind == _TOOLS and score.passed is False for score in case.scores
            )
        for error in agent_errors(failed) if failed else ():
            if error in self.errors or len(self.errors) < _MOST_ERRORS:
                self.errors[error] += 1


class AgentNotes:
    """Counts the cases of each agent."""

    def __init__(self) -> None:
        self._agents: dict[int, _Agent] = {}

    def add(self, spec: AgentSpec, case: CaseResult) -> None:
        """Count a finished case of an agent."""
        agent = self._agents.get(id(spec))
        if agent is None:
            agent = self._agents[id(spec)] = _Agent(spec)
        agent.add(case)

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
