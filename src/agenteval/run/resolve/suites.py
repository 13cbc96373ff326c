"""Reads suites with their configurations, and finds the agent of every case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from agenteval.core.documents.allowed import allowing
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.paths import place_of
from agenteval.core.runtime import gc_paused
from agenteval.core.secrets import naming_secrets
from agenteval.run.config.model import Config
from agenteval.run.resolve.agents import bind, discover_targets
from agenteval.run.resolve.checks import no_suite
from agenteval.run.resolve.configurations import Places, allowed_by, find_configurations
from agenteval.run.resolve.sources import Sources
from agenteval.suite.formats.registry import discover, suite_files
from agenteval.suite.formats.registry import load_suites as load_files
from agenteval.suite.model import AgentSpec, Suite


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of a ``ConfigError`` in the block to a list instead of raising it."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems


@dataclass(frozen=True)
class LoadedSuites:
    """The valid suites of a run.

    Attributes:
        suites: in the order of their files; then those that the caller has built.
        places: the configuration files.
        config_of: the configuration file of each suite, by the suite's path in results.
    """

    suites: Sequence[Suite]
    places: Places
    config_of: Mapping[str, Path | None]


def load_suites(sources: Sources, problems: list[Problem], given: Sequence[Suite] = ()) -> LoadedSuites:
    """Load every valid suite, each with the variables that its configuration lists.

    Args:
        sources: the locations of suites and configuration.
        problems: receives the errors of the others.
        given: suites that the caller has built. One whose path is a file's has the configuration of that file; the
            others have that of the working directory.

    Raises:
        ConfigError: no suite was found.
    """
    paths = sources.suites or (() if given else discover(sources.here))
    if not paths and not given:
        raise ConfigError([*problems, no_suite()])
    files = suite_files(paths, problems)
    built = {suite.path: place_of(suite.path) for suite in given}
    places = find_configurations(sources, [*files, *(file for file in built.values() if file is not None)])
    suites: list[Suite] = []
    config_of: dict[str, Path | None] = {
        path: places.of_run if file is None else places.of_suites[file] for path, file in built.items()
    }
    allowed = cache(allowed_by)
    with gc_paused():
        for file in files:
            # What a configuration lists as a secret does not decide which variables suites may use.
            with allowing(allowed(places.of_suites[file])), naming_secrets():
                for suite in load_files([file], problems):
                    suites.append(suite)
                    config_of[suite.path] = places.of_suites[file]
    return LoadedSuites([*suites, *given], places, config_of)


@dataclass(frozen=True)
class Bound:
    """Suites with every ``*`` expanded, and the agents of their cases by case id."""

    suites: Sequence[Suite]
    agents: Mapping[str, AgentSpec]


def bind_all(
    suites: Iterable[tuple[Suite, Config | None]], asked: AgentSpec | str | None, problems: list[Problem]
) -> Bound:
    """Find the agent of every case.

    Args:
        suites: the suites, each with the configuration that defines its agents and tools; ``None`` if it is not
            valid, so that the names in it are unknown.
        asked: the agent that replaces the agents of the suites.
        problems: receives every name that is not defined.
    """
    agents: dict[str, AgentSpec] = {}
    found: list[Suite] = []
    find = cache(discover_targets)
    asked_by: dict[int, AgentSpec | str | None] = {}
    for suite, config in suites:
        found.append(suite)
        if config is None:
            continue
        agent = asked_by.setdefault(id(config), _copied(asked))
        with collected(problems):
            bound = bind(suite, agent, config, find)
            found[-1] = bound.suite
            agents |= bound.agents
    return Bound(found, agents)


def _copied(asked: AgentSpec | str | None) -> AgentSpec | str | None:
    """Return a copy of a definition: processes of the same definition share the variables of one configuration."""
    return replace(asked) if isinstance(asked, AgentSpec) and asked.function is None else asked
