"""Finds the agent of each case: the suite's agent, or the agents and tools that its cases name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text.choices import choices
from agenteval.run.config.model import CONFIG_FILE, DEFAULT_AGENT, Config
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.suite.agents import is_inline_agent
from agenteval.suite.model import AgentSpec, Case, Suite, Target

if TYPE_CHECKING:
    from agenteval.agents.frameworks.scan import Discovered, Found


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


@dataclass(frozen=True)
class BoundSuite:
    """A suite with every ``*`` expanded, and the agent of each case by case id."""

    suite: Suite
    agents: Mapping[str, AgentSpec]


def bind(
    suite: Suite,
    asked: AgentSpec | str | None,
    config: Config,
    discover: Callable[[Path], Discovered] = discover_targets,
) -> BoundSuite:
    """Find the agents of the cases of a suite.

    Args:
        suite: the suite.
        asked: the agent that the caller requests; it replaces every agent, but no tool under test.
        config: defines agents and tools.
        discover: finds the agents and tools that the repository's source code defines.

    Raises:
        ConfigError: names are not defined; the error contains all of them.
    """
    if not any(case.target for case in suite.cases):
        spec = with_limit(resolve_agent(asked or suite.agent, config, suite.path, suite.fallback_agent), suite)
        return BoundSuite(suite, {case.id: spec for case in suite.cases})
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

    def bind(self) -> BoundSuite:
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
        return BoundSuite(replace(self.suite, cases=tuple(cases), warnings=tuple(warnings)), agents)

    def _names(self, target: Target, problems: list[Problem]) -> Sequence[str]:
        """Return the names that a target means: its name, or all known names for ``*``."""
        if not target.is_pattern:
            return (target.name,)
        if target.kind == "agent" and self.asked is not None:
            is_name = isinstance(self.asked, str) and not is_inline_agent(self.asked)
            return (str(self.asked) if is_name else DEFAULT_AGENT,)
        defined = self.config.agents if target.kind == "agent" else self.config.tools
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
        """The agents and tools in the repository's source code; scanned only if a name is not defined elsewhere."""
        return self.discover(Path(self.suite.root))

    @property
    def _left_out(self) -> Sequence[str]:
        """The files that the scan, if there was one, could not read."""
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
        """Return why no name is known, if the scan found a reason."""
        return f": {'; '.join(self._left_out)}" if self._left_out else ""


def _example(target: Target) -> str:
    """Return the YAML that defines a target."""
    how = "command: [python, agent.py]" if target.kind == "agent" else "python: my_tools:" + _identifier(target.name)
    return f"    {target.kind}s:\n      {target.name}:\n        {how}"


def _identifier(name: str) -> str:
    plain = "".join(character if character.isalnum() else "_" for character in name)
    return plain if plain.isidentifier() else "call"


def _blocks(cases: Sequence[Case]) -> Iterable[tuple[Target, list[Case]]]:
    """Return the cases grouped by target."""
    blocks: dict[Target, list[Case]] = {}
    for case in cases:
        if case.target is not None:
            blocks.setdefault(case.target, []).append(case)
    return blocks.items()


def _with_target(case: Case, target: Target) -> Case:
    """Return the case for one target; a ``*`` in its id is replaced by the target's name."""
    if case.target == target or case.target is None:
        return case
    written = f"::{case.target.kind}s.{case.target.name}#"
    return replace(case, id=case.id.replace(written, f"::{target.kind}s.{target.name}#", 1), target=target)


def _named(cases: Iterable[Case]) -> list[Case]:
    """Return the cases with the target added to their names."""
    return [replace(case, name=f"{case.name} [{case.target.name}]") if case.target else case for case in cases]


def _framework_spec(found: Found, target: Target, root: str) -> AgentSpec:
    """Return the specification of an agent or tool that the scan found."""
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
