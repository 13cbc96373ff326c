"""FluxLoop's ``configs/evaluation.yaml``."""

from __future__ import annotations

import re
from pathlib import Path

from agenteval.core.files import LARGEST_TEXT, read_regular
from agenteval.suite.formats.base import Format, lazy, load_by

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


FORMAT = Format(
    name="fluxloop",
    title="FluxLoop's evaluation.yaml",
    patterns=("configs/evaluation.yaml", "configs/evaluation.yml"),
    matches=lambda source: source.path.suffix in {".yaml", ".yml"} and is_fluxloop(source.path),
    load=load_by("fluxloop.suite:load_fluxloop"),
    schema=lazy("fluxloop.schema:published"),
    starter=Path(__file__).with_name("starter"),
)
