"""Extensions that installed packages register as entry points.

Only the entry point that a suite or a configuration names is imported. Names of extensions contain a dot
(``acme.toxicity``); built-in names do not, so no extension replaces a built-in name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass

Group = Literal["agenteval.metrics", "agenteval.agents", "agenteval.formats", "agenteval.reporters"]
GROUPS: tuple[Group, ...] = ("agenteval.metrics", "agenteval.agents", "agenteval.formats", "agenteval.reporters")

#: Environment variable: the formats and reporters of other packages that may run in this process, comma-separated.
ALLOWED_VARIABLE = "AGENTEVAL_PLUGINS"


#: Groups whose extensions run in agenteval's own process. The others run in workers, with the user's interpreter.
_IN_PROCESS = frozenset({"agenteval.formats", "agenteval.reporters"})


@dataclass(frozen=True)
class Plugin:
    """One registered extension."""

    group: str
    name: str
    distribution: str
    version: str
    allowed: bool


def installed(environment: Mapping[str, str] = os.environ) -> Iterator[Plugin]:
    """Yield every extension of this environment, without importing it."""
    for group in GROUPS:
        for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
            distribution = entry.dist
            yield Plugin(
                group,
                entry.name,
                distribution.name if distribution else "",
                distribution.version if distribution else "",
                "." in entry.name and (group not in _IN_PROCESS or is_allowed(entry.name, environment)),
            )


def find(group: Group, name: str) -> Any | None:
    """Import one extension."""
    found = tuple(entry_points(group=group, name=name)) if "." in name else ()
    if not found:
        return None
    if len(found) > 1:
        names = ", ".join(_distribution(entry) for entry in found)
        raise ConfigError(
            Problem(f"{name}: several distributions register it ({names}); uninstall all but one", kind=Kind.PLUGIN)
        )
    try:
        return found[0].load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an extension can raise any exception on import
        problem = f"{name}: cannot be imported from {_distribution(found[0])}: {type(error).__name__}: {error}"
        raise ConfigError(Problem(problem, kind=Kind.PLUGIN)) from None


def find_allowed(group: Group, environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, Any]]:
    """Import the extensions of a group that ``AGENTEVAL_PLUGINS`` lists."""
    for name in _allowed(environment):
        found = find(group, name)
        if found is not None:
            yield name, found
        elif not any(entry_points(group=other, name=name) for other in GROUPS if "." in name):
            known = ", ".join(sorted(plugin.name for plugin in installed() if plugin.group in _IN_PROCESS))
            message = f"{ALLOWED_VARIABLE}: no installed distribution registers {name!r}; known: {known or 'none'}"
            raise ConfigError(Problem(message, kind=Kind.PLUGIN))


def is_allowed(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a format or reporter of another package may run in this process."""
    return name in _allowed(environment)


def distribution_of(group: Group, name: str) -> str:
    """Return the name and version of the package that registers an extension, for messages."""
    return ", ".join(_distribution(entry) for entry in entry_points(group=group, name=name))


def _allowed(environment: Mapping[str, str]) -> tuple[str, ...]:
    names = (item.strip() for item in environment.get(ALLOWED_VARIABLE, "").split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"
