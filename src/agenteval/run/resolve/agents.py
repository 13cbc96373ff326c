"""The agents of a run: named by option or configuration, or a suite's recorded traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.text import choices, working_directory
from agenteval.run.config import CONFIG_FILE, DEFAULT_AGENT, Config, Settings
from agenteval.run.resolve.configurations import shortened
from agenteval.suite.agents import REPLAY, agent_from_text, is_inline_agent
from agenteval.suite.model import AgentSpec, Case, Suite, Target

if TYPE_CHECKING:
    from agenteval.agents.frameworks.scan import Discovered, FoundAgent


def resolve_agent(
    asked: AgentSpec | str | None, config: Config, suite: str, fallback: AgentSpec | None = None
) -> AgentSpec:
    """Return the agent that answers a suite."""
    if isinstance(asked, AgentSpec):
        return asked
    if asked is not None and is_inline_agent(asked):
        return agent_from_text(asked, working_directory())
    name = asked or DEFAULT_AGENT
    if name in config.agents:
        return config.agents[name]
    if asked is None and fallback is not None:
        # Both kinds of agents that suites describe have such reasons why they cannot run.
        problems = fallback.options["agent"].problems
        if problems:
            raise ConfigError(problems)
        return fallback
    if asked is None:
        message = (
            f"no agent to run: add one to {config.name or CONFIG_FILE}, for instance\n"
            "    agents:\n      default:\n        command: [python, agent.py]"
        )
    else:
        hint = "" if config.agents else "; write a program as a list, such as [python, agent.py]"
        message = f"no agent is called {name!r}{choices(name, config.agents, 'defined')}{hint}"
    raise ConfigError(Problem(message, file=suite, kind=Kind.AGENT_MISSING))


def discover_targets(root: Path) -> Discovered:
    """Return the agents and tools that a repository's source code defines; see ``agents.frameworks.scan``."""
    # Imported here: only suites that name targets need the scan.
    from agenteval.agents.frameworks.scan import discover_targets as scan

    return scan(root)


def interpreters_of(agents: Iterable[AgentSpec]) -> Mapping[str, str]:
    """Return the Python of graders by directory: that of the agent beside them, where it names one."""
    return {
        agent.directory: str(agent.options["interpreter"]) for agent in agents if agent.options.get("interpreter")
    }


def bind(
    suite: Suite,
    asked: AgentSpec | str | None,
    config: Config,
    discover: Callable[[Path], Discovered] = discover_targets,
) -> tuple[Suite, Mapping[str, AgentSpec]]:
    """Return a suite with every ``*`` expanded, and the agent of each case by case id."""
    if not any(case.target for case in suite.cases):
        spec = with_limit(resolve_agent(asked or suite.agent, config, suite.path, suite.fallback_agent), suite)
        return suite, {case.id: spec for case in suite.cases}
    return _Binder(suite, asked, config, discover).bind()


def with_limit(spec: AgentSpec, suite: Suite) -> AgentSpec:
    """Return the agent with the suite's time limit, unless the agent defines one."""
    if spec.timeout_s is not None or suite.turn_timeout_s is None:
        return spec
    return replace(spec, timeout_s=suite.turn_timeout_s)


@dataclass(frozen=True)
class _Binder:
    suite: Suite
    asked: AgentSpec | str | None
    config: Config
    discover: Callable[[Path], Discovered]

    def bind(self) -> tuple[Suite, Mapping[str, AgentSpec]]:
        problems: list[Problem] = []
        specs: dict[Target, AgentSpec] = {}
        cases: list[Case] = []
        for target, block in _blocks(self.suite.cases):
            for name in self._names(target, problems):
                one = replace(target, name=name)
                if one not in specs:
                    try:
                        specs[one] = with_limit(self._spec(one), self.suite)
                    except ConfigError as error:
                        problems += error.problems
                cases += [_with_target(case, one) for case in block]
        if problems:
            raise ConfigError(list(dict.fromkeys(problems)))
        cases = _named(cases) if len(specs) > 1 else cases
        agents = {case.id: specs[case.target] for case in cases if case.target}
        warnings = dict.fromkeys((*self.suite.warnings, *self._left_out))
        return replace(self.suite, cases=tuple(cases), warnings=tuple(warnings)), agents

    def _names(self, target: Target, problems: list[Problem]) -> Sequence[str]:
        if not target.is_pattern:
            return (target.name,)
        if target.kind == "agent" and self.asked is not None:
            is_name = isinstance(self.asked, str) and not is_inline_agent(self.asked)
            return (str(self.asked) if is_name else DEFAULT_AGENT,)
        defined = _without_controls(self.config.agents if target.kind == "agent" else self.config.tools)
        found = defined or (self._discovered.agents if target.kind == "agent" else self._discovered.tools)
        if not found:
            problems.append(self._problem(target, self._nobody(target)))
        return tuple(found)

    def _spec(self, target: Target) -> AgentSpec:
        if target.kind == "agent" and self.asked is not None:
            return resolve_agent(self.asked, self.config, self.suite.path)
        defined = self.config.agents if target.kind == "agent" else self.config.tools
        if target.name in defined:
            return defined[target.name]
        found = self._discovered.agents if target.kind == "agent" else self._discovered.tools
        from agenteval.agents.frameworks.scan import AmbiguousNameError, lookup

        try:
            discovered = lookup(found, target.name)
        except AmbiguousNameError as error:
            raise ConfigError(self._problem(target, str(error))) from None
        if discovered is None:
            raise ConfigError(self._problem(target, self._unknown(target, [*defined, *found])))
        return _framework_spec(discovered, target, self.suite.root)

    @cached_property
    def _discovered(self) -> Discovered:
        return self.discover(Path(self.suite.root))

    @property
    def _left_out(self) -> Sequence[str]:
        return self._discovered.warnings if "_discovered" in self.__dict__ else ()

    def _problem(self, target: Target, message: str) -> Problem:
        return Problem(
            message,
            file=self.suite.path,
            line=target.line,
            path=f"eval.targets.{target.kind}s",
            kind=Kind.AGENT_MISSING,
        )

    def _nobody(self, target: Target) -> str:
        what = f"{target.kind}s"
        example = _example(replace(target, name=DEFAULT_AGENT if target.kind == "agent" else "my_tool"))
        known = f"no {target.kind} is known{self._why()}"
        return f'["*"] means all {what}, but {known}; define one in {CONFIG_FILE}:\n{example}'

    def _unknown(self, target: Target, known: Iterable[str]) -> str:
        names = list(known)
        hint = choices(target.name, names, "known") if names else f"; none is known{self._why()}"
        return f"no {target.kind} is called {target.name!r}{hint}; define it in {CONFIG_FILE}:\n{_example(target)}"

    def _why(self) -> str:
        return f": {'; '.join(self._left_out)}" if self._left_out else ""


def _without_controls(agents: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    controls = {agent.control for name, agent in agents.items() if agent.control != name}
    return {name: agent for name, agent in agents.items() if name not in controls}


def _example(target: Target) -> str:
    how = "command: [python, agent.py]" if target.kind == "agent" else "python: my_tools:" + _identifier(target.name)
    return f"    {target.kind}s:\n      {target.name}:\n        {how}"


def _identifier(name: str) -> str:
    plain = "".join(character if character.isalnum() else "_" for character in name)
    return plain if plain.isidentifier() else "call"


def _blocks(cases: Sequence[Case]) -> Iterable[tuple[Target, list[Case]]]:
    blocks: dict[Target, list[Case]] = {}
    for case in cases:
        if case.target is not None:
            blocks.setdefault(case.target, []).append(case)
    return blocks.items()


def _with_target(case: Case, target: Target) -> Case:
    if case.target == target or case.target is None:
        return case
    written = f"::{case.target.kind}s.{case.target.name}#"
    return replace(case, id=case.id.replace(written, f"::{target.kind}s.{target.name}#", 1), target=target)


def _named(cases: Iterable[Case]) -> list[Case]:
    return [replace(case, name=f"{case.name} [{case.target.name}]") if case.target else case for case in cases]


def _framework_spec(found: FoundAgent, target: Target, root: str) -> AgentSpec:
    return AgentSpec(
        kind="framework" if target.kind == "agent" else "python_tool",
        target=found.reference,
        directory=root,
        options={
            "method": found.method,
            "prompt_argument": found.prompt_argument,
            "instantiate": found.instantiate,
        },
        where=found.place,
    )


def traces_to_score(suites: Iterable[tuple[Suite, Config]], settings: Settings) -> Mapping[str, Path]:
    """Return the file or folder of the traces that each suite scores, by the suite's path.

    These are the traces that the settings name. If no suite has inputs to ask, they are the recording of the replay
    agent of each suite: a suite with metrics for all answers needs no inputs to score a recording. If agents are
    asked, it is empty.
    """
    if settings.traces is not None:
        return {suite.path: shortened(settings.traces) for suite, _ in suites}
    found = {suite.path: _recording(suite, settings, config) for suite, config in suites}
    recordings = {path: recording for path, recording in found.items() if recording is not None}
    return recordings if len(recordings) == len(found) else {}


def _recording(suite: Suite, settings: Settings, config: Config) -> Path | None:
    if suite.cases or not suite.metrics:
        return None
    try:
        agent = resolve_agent(settings.agent or suite.agent, config, suite.path, suite.fallback_agent)
    except ConfigError:
        # Reported where the agents of cases are resolved.
        return None
    return shortened(Path(str(agent.target))) if agent.kind == REPLAY else None
