"""HoloDeck's ``agent.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.suite.formats.base import Format, Source

if TYPE_CHECKING:
    from agenteval.suite.agent_definitions import HolodeckProject
    from agenteval.suite.model import Suite


def _matches(source: Source) -> bool:
    # Every YAML file that no other format claims.
    return source.path.suffix in {".yaml", ".yml"}


def _load(source: Source) -> Suite:
    from agenteval.suite.formats.holodeck.suite import load_holodeck

    return load_holodeck(source.path, source.name)


def _project(source: Source) -> HolodeckProject:
    from agenteval.suite.formats.holodeck.project import read_project

    return read_project(source.path, source.name)


def _schema() -> dict[str, Any]:
    from agenteval.suite.formats.holodeck.tools_schema import published

    return published()


FORMAT = Format(
    name="holodeck",
    title="HoloDeck's agent.yaml",
    patterns=("agent.yaml", "agent.yml"),
    matches=_matches,
    load=_load,
    schema=_schema,
    starter=Path(__file__).with_name("starter"),
    project=_project,
)
