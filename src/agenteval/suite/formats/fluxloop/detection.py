"""Distinguishes a FluxLoop evaluation from other YAML files, without parsing it."""

from __future__ import annotations

import re
from pathlib import Path

from agenteval.core.files.reading import LARGEST_TEXT, read_regular

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
