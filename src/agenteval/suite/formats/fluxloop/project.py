"""Reads the settings of a FluxLoop project beside its ``evaluation.yaml``.

The settings are in ``configs``: ``project.yaml``, ``input.yaml`` and ``simulation.yaml``. Later files override
earlier ones. Older projects have one file instead: ``setting.yaml``, ``fluxloop.yaml`` or ``experiment.yaml``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agenteval.core.documents.document import Document
from agenteval.core.documents.validation import validate
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.text.choices import did_you_mean
from agenteval.suite.formats.fluxloop.runner import RunnerEntry
from agenteval.suite.formats.fluxloop.schema import Whole
from agenteval.suite.model import MOST

CONFIGS = "configs"
_SECTIONS = ("project.yaml", "input.yaml", "simulation.yaml")
_WHOLE = ("setting.yaml", "fluxloop.yaml", "experiment.yaml")
# Keys of FluxLoop that agenteval does not use.
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
    "evaluators",
    "output_directory",
    "save_traces",
    "save_aggregated_metrics",
    "collector_url",
    "collector_api_key",
    "tags",
    "metadata",
)

# Keys with credentials.
_CREDENTIALS = ("collector_url", "collector_api_key", "input_generation.**", "runner.**")


class PersonaEntry(BaseModel):
    """A persona; additional keys are its attributes."""

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


class ReplayArgsEntry(BaseModel):
    """``replay_args``"""

    enabled: bool = False


class ProjectEntry(BaseModel):
    """Settings that agenteval uses; all are optional."""

    name: str | None = None
    iterations: Whole | None = Field(None, ge=1, le=1000)
    parallel_runs: Whole | None = Field(None, ge=1, le=MOST)
    personas: list[PersonaEntry] | None = None
    base_inputs: list[Any] | None = None
    inputs_file: str | None = None
    input_template: str | None = None
    multi_turn: MultiTurnEntry | None = None
    runner: RunnerEntry | None = None
    replay_args: ReplayArgsEntry | None = None


@dataclass(frozen=True)
class Project:
    """A project, as far as its files exist.

    Attributes:
        root: directory of relative paths.
        entry: settings of the project.
        documents: key → file that contains it.
        warnings: warnings of the loader.
        secrets: values of secret-like environment variables in its files.
    """

    root: Path
    entry: ProjectEntry = field(default_factory=ProjectEntry)
    documents: Mapping[str, Document] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def read_project(evaluation: Document, problems: list[Problem]) -> Project:
    """Return the project of an evaluation.

    Args:
        evaluation: the ``evaluation.yaml``.
        problems: receives the problems of the other files.
    """
    folder, root = evaluation.directory, root_of(evaluation)
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


def root_of(evaluation: Document) -> Path:
    """Return the directory of the project of an evaluation."""
    folder = evaluation.directory
    return folder.parent if folder.name == CONFIGS else folder


def shown_beside(evaluation: Document, path: Path) -> str:
    """Return the name of a project file in messages, relative like the evaluation's."""
    return os.path.normpath(Path(evaluation.file).parent / os.path.relpath(path, evaluation.directory))


def _files(folder: Path, root: Path) -> Sequence[Path]:
    sections = [folder / name for name in _SECTIONS if (folder / name).is_file()]
    if sections:
        return sections
    whole = (base / name for base in dict.fromkeys((folder, root)) for name in _WHOLE)
    return [path for path in whole if path.is_file()][:1]


def _read(path: Path, evaluation: Document, problems: list[Problem]) -> Document | None:
    try:
        document = read_yaml(path, shown_as=shown_beside(evaluation, path), unset=problems, credentials=_CREDENTIALS)
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
    """Return keys that may be misspelt."""
    known = [*ProjectEntry.model_fields, *_OTHER_KEYS]
    hints = {key: did_you_mean(str(key), known) for key in document.data if key not in known}
    return [str(document.problem((key,), f"unknown key{hint}")) for key, hint in hints.items() if hint]
