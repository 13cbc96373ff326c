"""FluxLoop's ``configs/evaluation.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.suite.formats.base import Format, Source
from agenteval.suite.formats.fluxloop.detection import is_fluxloop

if TYPE_CHECKING:
    from agenteval.suite.model import Suite


def _matches(source: Source) -> bool:
    return source.path.suffix in {".yaml", ".yml"} and is_fluxloop(source.path)


def _load(source: Source) -> Suite:
    from agenteval.suite.formats.fluxloop.suite import load_fluxloop

    return load_fluxloop(source.path, source.name)


def _schema() -> dict[str, Any]:
    from agenteval.suite.formats.fluxloop.published import published

    return published()


FORMAT = Format(
    name="fluxloop",
    title="FluxLoop's evaluation.yaml",
    patterns=("configs/evaluation.yaml", "configs/evaluation.yml"),
    matches=_matches,
    load=_load,
    schema=_schema,
    starter=Path(__file__).with_name("starter"),
)
