"""AgentCI's ``.agentci/evals/*.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.suite.formats.base import Format, Source, patterns

if TYPE_CHECKING:
    from agenteval.suite.model import Suite


def _matches(source: Source) -> bool:
    return source.path.suffix == ".toml"


def _load(source: Source) -> Suite:
    from agenteval.suite.formats.agentci.suite import load_agentci

    return load_agentci(source.path, source.name)


def _schema() -> dict[str, Any]:
    from agenteval.suite.formats.agentci.schema import published

    return published()


FORMAT = Format(
    name="agentci",
    title="AgentCI's .agentci/evals/NAME.toml",
    patterns=(".agentci/evals/*.toml",),
    matches=_matches,
    load=_load,
    schema=_schema,
    starter=Path(__file__).with_name("starter"),
    places=patterns,
)
