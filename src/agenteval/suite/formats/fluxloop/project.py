"""Reads the parts of a FluxLoop project beside its ``evaluation.yaml`` that say what agents are asked.

They lie in ``configs``: ``project.yaml``, ``input.yaml`` and ``simulation.yaml``, later ones over earlier ones. Older
projects have one file instead: ``setting.yaml``, ``fluxloop.yaml`` or ``experiment.yaml``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agenteval.core.documents.document import Document
from agenteval.core.documents.validation import did_you_mean, validate
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.suite.formats.fluxloop.schema import Whole

CONFIGS = "configs"
_SECTIONS = ("project.yaml", "input.yaml", "simulation.yaml")
_WHOLE = ("setting.yaml", "fluxloop.yaml", "experiment.yaml")
# Keys of FluxLoop's that do not concern a run here.
_OTHER_KEYS = (
    "description",
    "version",
    "seed",
    "run_delay_seconds",
    "variation_strategies",
    "variation_count",
    "variation_temperature",
    "variation_model",
    "custom_variation_prompt",
    "input_generation",
    "runner",
    "replay_args",
    "evaluators",
    "output_directory",
    "save_traces",
    "save_aggregated_metrics",
    "collector_url",
    "collector_api_key",
    "tags",
    "metadata",
)


class PersonaEntry(BaseModel):
    """Someone who asks; what else is said of them is theirs."""

    name: str = Field(min_length=1)
    description: str = ""
    characteristics: list[str] = Field(default_factory=list)
    language: str = "en"
    expertise_level: str = "intermediate"
    goals: list[str] = Field(default_factory=list)
    constraints: list[str] = Field(default_factory=list)
    custom_attributes: dict[str, Any] = Field(default_factory=dict)


class MultiTurnEntry(BaseModel):
    """``multi_turn``"""

    enabled: bool = False


class ProjectEntry(BaseModel):
    """What concerns a run here; everything may be missing."""

    name: str | None = None
    iterations: Whole | None = Field(None, ge=1, le=1000)
    parallel_runs: Whole | None = Field(None, ge=1)
    personas: list[PersonaEntry] | None = None
    base_inputs: list[Any] | None = None
    inputs_file: str | None = None
    input_template: str | None = None
    multi_turn: MultiTurnEntry | None = None


@dataclass(frozen=True)
class Project:
    """A project as far as it was found.

    Attributes:
        root: where its relative paths start.
        entry: its settings.
        documents: key → the file that says so.
        warnings: what is odd.
        secrets: values of secret-looking environment variables that its files use.
    """

    root: Path
    entry: ProjectEntry = field(default_factory=ProjectEntry)
    documents: Mapping[str, Document] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def read_project(evaluation: Document, problems: list[Problem]) -> Project:
    """The project that an evaluation belongs to.

    Args:
        evaluation: the ``evaluation.yaml``.
        problems: receives what is wrong in the other files.
    """
    folder = evaluation.directory
    root = folder.parent if folder.name == CONFIGS else folder
    settings: dict[str, Any] = {}
    documents: dict[str, Document] = {}
    warnings: list[str] = []
    secrets: frozenset[str] = frozenset()
    for path in _files(folder, root):
        document = _read(path, evaluation, problems)
        if document is None:
            continue
        validated, wrong = validate(ProjectEntry, document.data, document)
        problems += wrong
        warnings += [*document.warnings, *_unknown_keys(document)]
        secrets |= document.secrets
        if validated is not None:
            settings |= {key: value for key, value in document.data.items() if value is not None}
            documents |= dict.fromkeys(document.data, document)
    entry = ProjectEntry.model_validate(settings)
    return Project(root, entry, documents, tuple(warnings), secrets)


def shown_beside(evaluation: Document, path: Path) -> str:
    """A file of the project as messages name it: beside the evaluation, as that one is named."""
    return os.path.normpath(Path(evaluation.file).parent / os.path.relpath(path, evaluation.directory))


def _files(folder: Path, root: Path) -> Sequence[Path]:
    sections = [folder / name for name in _SECTIONS if (folder / name).is_file()]
    if sections:
        return sections
    whole = (base / name for base in dict.fromkeys((folder, root)) for name in _WHOLE)
    return [path for path in whole if path.is_file()][:1]


def _read(path: Path, evaluation: Document, problems: list[Problem]) -> Document | None:
    try:
        document = read_yaml(path, shown_as=shown_beside(evaluation, path), unset=problems)
    except ConfigError as error:
        problems += error.problems
        return None
    if document.data is None:
        return None
    if not isinstance(document.data, dict):
        problems.append(document.problem((), "must be a mapping (key: value)"))
        return None
    return document


def _unknown_keys(document: Document) -> list[str]:
    """Keys that look like misspelt ones."""
    known = [*ProjectEntry.model_fields, *_OTHER_KEYS]
    hints = {key: did_you_mean(str(key), known) for key in document.data if key not in known}
    return [str(document.problem((key,), f"unknown key{hint}")) for key, hint in hints.items() if hint]
