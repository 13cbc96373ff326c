"""Reads suites and configuration, and finds the agent of every case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.run.config.model import Config
from agenteval.run.config.read import find_config
from agenteval.run.config.read import read_config as read_config_file
from agenteval.run.resolve.agents import bind, discover_targets
from agenteval.run.resolve.checks import no_suite, without_cases
from agenteval.run.resolve.sources import Sources
from agenteval.suite.formats.registry import discover, load_suites
from agenteval.suite.model import AgentSpec, Suite


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of a ``ConfigError`` in the block to a list instead of raising it."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems


def suite_paths(sources: Sources) -> Sequence[Path]:
    """Return the suite files and directories that are named, or else those in conventional places."""
    return sources.suites or discover(sources.here)


def config_path(sources: Sources, suites: Sequence[Path]) -> Path | None:
    """Return the configuration that is named, or else the nearest one.

    Args:
        sources: may name it.
        suites: files or directories; it is looked for beside them, too.
    """
    beside = (suite if suite.is_dir() else suite.parent for suite in suites)
    return find_config(sources.config, [sources.here, *beside])


def bind_all(
    suites: Sequence[Suite], asked: AgentSpec | str | None, config: Config, problems: list[Problem]
) -> tuple[list[Suite], dict[str, AgentSpec]]:
    """Find the agent of every case.

    Args:
        suites: the suites.
        asked: the agent that answers instead of those that suites name.
        config: defines agents and tools.
        problems: receives every name that is not defined.

    Returns:
        The suites with every ``*`` written out, and the agents by case id.
    """
    agents: dict[str, AgentSpec] = {}
    bound_suites = list(suites)
    find = cache(discover_targets)
    for index, suite in enumerate(suites):
        with collected(problems):
            bound = bind(suite, asked, config, find)
            bound_suites[index] = bound.suite
            agents |= bound.agents
    return bound_suites, agents


def read_agents(sources: Sources) -> Mapping[str, AgentSpec]:
    """Return the agent of every case, by its id.

    Raises:
        ConfigError: with every problem of suites and configuration.
    """
    problems: list[Problem] = []
    paths = suite_paths(sources)
    if not paths:
        raise ConfigError(no_suite())
    suites = load_suites(paths, problems)
    agents: Mapping[str, AgentSpec] = {}
    with collected(problems):
        config = read_config_file(config_path(sources, paths))
        suites, agents = bind_all(suites, sources.agent, config, problems)
    problems += without_cases(suites)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return agents
