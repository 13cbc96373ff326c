"""FluxLoop's ``configs/evaluation.yaml``."""

from __future__ import annotations

from pathlib import Path

from agenteval.suite.formats.base import Format, has_key, lazy, load_by

_FILES = frozenset({"evaluation.yaml", "evaluation.yml"})
_HOLODECK = ("test_cases", "test_cases_file", "evaluations")


def is_fluxloop(path: Path) -> bool:
    """Return whether a YAML file is an evaluation: by its evaluators, or by its name unless its keys differ."""
    return has_key(path, ["evaluators"]) or (path.name in _FILES and not has_key(path, _HOLODECK))


FORMAT = Format(
    name="fluxloop",
    title="FluxLoop's evaluation.yaml",
    patterns=("configs/evaluation.yaml", "configs/evaluation.yml"),
    keys=("evaluators", "evaluation_goal", "success_criteria", "additional_analysis", "efficiency"),
    matches=lambda source: source.path.suffix in {".yaml", ".yml"} and is_fluxloop(source.path),
    load=load_by("fluxloop.suite:load_fluxloop"),
    schema=lazy("fluxloop.schema:published"),
    starter=Path(__file__).with_name("starter"),
)
