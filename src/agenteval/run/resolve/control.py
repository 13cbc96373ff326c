"""The cases of the control: read from its files, or asked of a named deployment of its agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.masking import redactor
from agenteval.run.config.model import Config
from agenteval.run.resolve.checks import without_cases
from agenteval.run.resolve.configurations import find_configurations, read_configurations
from agenteval.run.resolve.defaults import with_config_defaults, with_metrics
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.suites import bind_all, collected, load_suites
from agenteval.suite.agent_kinds import TOOL_SUFFIX
from agenteval.suite.masking import masked_suite
from agenteval.suite.model import AgentSpec, Case, Suite


@dataclass(frozen=True)
class ControlCase:
    """A case of the control, with the agent that answers it."""

    suite: Suite
    case: Case
    agent: AgentSpec


@dataclass(frozen=True)
class ControlFiles:
    """The suites of the control, with masked secrets.

    Attributes:
        suites: the suites.
        agents: the agent of each case, by case id; empty if they were not read.
        config_of: the configuration of each suite, by the suite's path.
        of_run: decides the settings of the run as a whole.
    """

    suites: Sequence[Suite]
    agents: Mapping[str, AgentSpec]
    config_of: Mapping[str, Config]
    of_run: Config


def read_control_suites(sources: Sources) -> ControlFiles:
    """Read the suites and the configurations of the control, without its agents.

    Args:
        sources: the locations in the files of the control.

    Raises:
        ConfigError: suites or the configuration are invalid; the error contains every problem.
    """
    files, _ = _read(sources)
    return _masked(files)


def read_control_files(sources: Sources) -> ControlFiles:
    """Read the suites and the configurations of the control, with the agent of each case.

    Args:
        sources: the locations in the files of the control.

    Raises:
        ConfigError: suites or the configuration are invalid, or agents are not defined; the error contains every
            problem.
    """
    files, configured = _read(sources)
    problems: list[Problem] = []
    bound = bind_all(configured, sources.agent, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return _masked(replace(files, suites=bound.suites, agents=bound.agents))


def read_control_configuration(sources: Sources) -> ControlFiles:
    """Read the configuration of a control that has no suite.

    Args:
        sources: the locations in the files of the control.

    Raises:
        ConfigError: the configuration is invalid; the error contains every problem.
    """
    problems: list[Problem] = []
    configs = read_configurations(find_configurations(sources, ()), problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return ControlFiles(suites=(), agents={}, config_of={}, of_run=configs.of_run)


def _read(sources: Sources) -> tuple[ControlFiles, Sequence[tuple[Suite, Config | None]]]:
    """Return the files without agents, and each suite with its configuration."""
    problems: list[Problem] = []
    loaded = load_suites(sources, problems)
    configs = read_configurations(loaded.places, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    config_of = {suite.path: configs.by_file[loaded.config_of[suite.path]] for suite in loaded.suites}
    suites = [_complete(suite, config_of[suite.path], sources) for suite in loaded.suites]
    files = ControlFiles(suites=suites, agents={}, config_of=config_of, of_run=configs.of_run)
    return files, [(suite, config_of[suite.path]) for suite in suites]


def _masked(files: ControlFiles) -> ControlFiles:
    redact = redactor()
    return replace(
        files,
        suites=[masked_suite(suite, redact) for suite in files.suites],
        agents={redact(case_id): agent for case_id, agent in files.agents.items()},
        config_of={redact(path): config for path, config in files.config_of.items()},
    )


def read_control_cases(sources: Sources) -> Mapping[str, ControlCase]:
    """Read the suites and the configuration of the control; return its cases by id, with masked secrets.

    Args:
        sources: the locations in the files of the control.

    Raises:
        ConfigError: suites or the configuration are invalid; the error contains every problem.
    """
    files = read_control_files(sources)
    if problems := without_cases(files.suites):
        raise ConfigError(dict.fromkeys(problems))
    return {
        case.id: ControlCase(suite, case, files.agents[case.id]) for suite in files.suites for case in suite.cases
    }


def _complete(suite: Suite, config: Config, sources: Sources) -> Suite:
    return with_metrics(with_config_defaults(suite, config), sources.metrics)


def named_controls(
    asked: str | None,
    suites: Sequence[tuple[Suite, Config]],
    agents: Mapping[str, AgentSpec],
    problems: list[Problem],
) -> Mapping[str, AgentSpec]:
    """Return the deployments of the base commit's agents that the caller or the configuration names, by case id.

    Args:
        asked: the agent of ``--control``; it replaces those of the configuration, but no tool under test.
        suites: the suites, each with its configuration.
        agents: the agents under test by case id; ``control`` of an agent names the one to run beside it.
        problems: receives every name that is not defined.
    """
    of_caller = _of_caller(asked, [config for _, config in suites], problems)
    of_agents: dict[tuple[str, str, str], AgentSpec | None] = {}
    found: dict[str, AgentSpec] = {}
    for suite, config in suites:
        for case_id in (case.id for case in suite.cases if case.id in agents):
            agent = agents[case_id]
            control = None if _is_tool(agent) else of_caller.get(config.name)
            if control is None and agent.control is not None:
                key = (config.name, agent.control, agent.kind)
                if key not in of_agents:
                    of_agents[key] = _of_agent(agent, config, problems)
                control = of_agents[key]
            if control is not None:
                found[case_id] = control
    return found


def _of_caller(asked: str | None, configs: Iterable[Config], problems: list[Problem]) -> Mapping[str, AgentSpec]:
    """Return the agent of ``--control`` by the name of each configuration."""
    used = {config.name: config for config in configs} if asked else {}
    found: dict[str, AgentSpec] = {}
    for name, config in used.items():
        where = f" for {name or 'suites without a configuration'}" if len(used) > 1 else ""
        with collected(problems):
            found[name] = resolve_agent(asked, config, f"--control{where}")
    return found


def _of_agent(agent: AgentSpec, config: Config, problems: list[Problem]) -> AgentSpec | None:
    """Return the agent, or the tool under test, that ``control`` of another one names."""
    known = replace(config, agents=config.tools) if _is_tool(agent) else config
    with collected(problems):
        return resolve_agent(agent.control, known, f"{agent.where}: control")
    return None


def _is_tool(agent: AgentSpec) -> bool:
    return agent.kind.endswith(TOOL_SUFFIX)
