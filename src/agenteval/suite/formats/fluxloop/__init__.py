"""FluxLoop's ``configs/evaluation.yaml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.files import LARGEST_TEXT, read_regular
from agenteval.suite.formats.base import Format, Source

if TYPE_CHECKING:
    from agenteval.suite.model import Suite


_FILES = frozenset({"evaluation.yaml", "evaluation.yml"})

# Top-level keys, found without parsing: if the file is not valid, its loader must report how.
_EVALUATORS = re.compile(r"""^(?:\{\s*)?["']?evaluators["']?\s*:""", re.MULTILINE)
_HOLODECK = re.compile(r"""^["']?(?:test_cases|test_cases_file|evaluations)["']?\s*:""", re.MULTILINE)


def is_fluxloop(path: Path) -> bool:
    """Return whether a YAML file is an evaluation: by its evaluators, or by its name unless its keys differ."""
    try:
        text = read_regular(path, limit=LARGEST_TEXT).decode("utf-8-sig", "replace")
    except OSError:
        return path.name in _FILES
    if _EVALUATORS.search(text):
        return True
    return path.name in _FILES and not _HOLODECK.search(text)


def _matches(source: Source) -> bool:
    return source.path.suffix in {".yaml", ".yml"} and is_fluxloop(source.path)


def _load(source: Source) -> Suite:
    from agenteval.suite.formats.fluxloop.suite import load_fluxloop

    return load_fluxloop(source.path, source.name)


def _schema() -> dict[str, Any]:
    from agenteval.suite.formats.fluxloop.schema import published

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
