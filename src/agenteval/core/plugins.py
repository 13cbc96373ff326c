"""Extensions that installed distributions register as entry points.

Only the entry point that a suite or a configuration names is imported. Names of extensions contain a dot
(``acme.toxicity``); built-in names do not, so no extension replaces a built-in name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from agenteval.core.errors import ConfigError, Problem

Group = Literal["agenteval.metrics", "agenteval.agents", "agenteval.formats", "agenteval.reporters"]
GROUPS: tuple[Group, ...] = ("agenteval.metrics", "agenteval.agents", "agenteval.formats", "agenteval.reporters")

#: Lists the formats and reporters of others that may run in agenteval's own process, separated by commas.
ALLOWED_VARIABLE = "AGENTEVAL_PLUGINS"


@dataclass(frozen=True)
class Plugin:
    """One registered extension.

    Attributes:
        name: as suites and configurations name it.
        distribution: the package that registers it.
        version: of that package.
    """

    group: str
    name: str
    distribution: str
    version: str


def installed() -> Iterator[Plugin]:
    """List every extension of this environment, without importing any."""
    for group in GROUPS:
        for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
            distribution = entry.dist
            yield Plugin(
                group,
                entry.name,
                distribution.name if distribution else "",
                distribution.version if distribution else "",
            )


def find(group: Group, name: str) -> Any | None:
    """Import one extension.

    Args:
        group: the entry point group.
        name: the name that was asked for.

    Returns:
        The registered object; ``None`` if no distribution registers the name.

    Raises:
        ConfigError: two distributions register the name, or the object cannot be imported.
    """
    found = tuple(entry_points(group=group, name=name)) if "." in name else ()
    if not found:
        return None
    if len({entry.value for entry in found}) > 1:
        names = ", ".join(_distribution(entry) for entry in found)
        raise ConfigError(Problem(f"{name}: several distributions register it ({names}); uninstall all but one"))
    try:
        return found[0].load()
    except Exception as error:  # noqa: BLE001 - whatever an extension raises while it is imported
        problem = f"{name}: cannot be imported from {_distribution(found[0])}: {type(error).__name__}: {error}"
        raise ConfigError(Problem(problem)) from None


def is_allowed(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a format or reporter of another distribution may run in this process."""
    return name in {item.strip() for item in environment.get(ALLOWED_VARIABLE, "").split(",")}


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"
