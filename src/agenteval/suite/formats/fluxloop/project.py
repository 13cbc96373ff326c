"""Reads the settings of a FluxLoop project beside its ``evaluation.yaml``: ``.env`` files and ``runner``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from agenteval.core.document import Document
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import add_secrets, secrets_in
from agenteval.core.text import did_you_mean, repository_of
from agenteval.core.validation import validate
from agenteval.core.yaml import read_yaml
from agenteval.suite.agent_definitions import FLUXLOOP_AGENT, FluxLoopAgentSpec
from agenteval.suite.cases import is_file
from agenteval.suite.formats.base import EnvFiles
from agenteval.suite.formats.fluxloop.schema import Entry, Number, Whole, one_as_list
from agenteval.suite.model import MOST, AgentSpec

# The ``.env`` files of a FluxLoop project: variables of its agent, and API keys of its judges.
#
# They never replace a variable of the environment, and the process of agenteval does not get them.


_NAME = ".env"


def read_env_files(root: Path) -> EnvFiles:
    """Read the files of the folder above a project and of the project, which precedes, as in FluxLoop."""
    folders = (*(() if repository_of(root) == root else (root.parent,)), root)
    files = [(path, os.path.relpath(path, root)) for folder in folders if is_file(path := folder / _NAME)]
    return EnvFiles.read(files, first_counts=False)


_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
# FluxLoop's examples have this key, which no version of FluxLoop reads.
_ARGUMENTS = "args"
#: Keys of ``runner`` that FluxLoop accepts and does not use.
IGNORED = (
    "requirements_file",
    "setup_commands",
    "max_retries",
    "retry_delay",
    "use_docker",
    "docker_image",
    "docker_build_context",
    "docker_volumes",
)


def _reference(value: str | None) -> str | None:
    if value is not None and not _REFERENCE.fullmatch(value):
        raise ValueError(f"{value!r} is not of the form module:name, for instance my_agent.main:run")
    return value


class RunnerEntry(Entry):
    """``runner``: the function to call, and the environment in which it is imported."""

    model_config = ConfigDict(extra="ignore")

    target: str | None = None
    module_path: str | None = None
    function_name: str = "run"
    factory: str | None = None
    factory_kwargs: dict[str, Any] = Field(default_factory=dict)
    stream_output_path: str | None = None
    working_directory: str | None = None
    python_path: Annotated[list[str], BeforeValidator(one_as_list)] = Field(default_factory=list)
    environment_vars: dict[str, str | int | float | bool] = Field(default_factory=dict)
    timeout_seconds: Number | None = Field(None, gt=0)

    _check = field_validator("target", "factory")(_reference)

    @property
    def reference(self) -> str | None:
        """The object to call; ``None`` if the project names none."""
        return self.target or (f"{self.module_path}:{self.function_name}" if self.module_path else None)


def runner_agent(
    entry: RunnerEntry | None, document: Document | None, root: Path, env: EnvFiles
) -> tuple[AgentSpec | None, Iterable[str], frozenset[str]]:
    """Return the agent that a ``runner`` names, if it does, warnings, and the secrets of its environment."""
    if entry is None or document is None or entry.reference is None:
        return None, (), frozenset()
    secrets = set(env.secrets)
    own = {
        name: value if isinstance(value, str) else document.as_written(value, ("runner", "environment_vars", name))
        for name, value in entry.environment_vars.items()
    }
    secrets |= {secret for name, value in own.items() for secret in secrets_in(name, value)}
    add_secrets(secrets)
    spec = AgentSpec(
        kind=FLUXLOOP_AGENT,
        target=entry.reference,
        directory=str(root),
        timeout_s=entry.timeout_seconds,
        env={**env.variables, **own},
        options={
            "agent": FluxLoopAgentSpec(
                target=entry.reference,
                paths=tuple(_paths(entry, root)),
                factory=entry.factory,
                factory_kwargs=entry.factory_kwargs,
                stream_path=entry.stream_output_path,
            )
        },
        where=document.place(("runner",)),
    )
    return spec, _unknown_runner_keys(document), frozenset(secrets)


def _paths(entry: RunnerEntry, root: Path) -> Iterator[str]:
    """Yield the directories of modules, in the order of FluxLoop.

    A directory that the project does not have is searched in the folders above it, up to the repository: projects are
    often in a subfolder of the agent's repository.
    """
    top = repository_of(root) or root
    folders = [root, *(folder for folder in root.parents if folder.is_relative_to(top))]
    for written in (*reversed(entry.python_path), *([entry.working_directory] if entry.working_directory else [])):
        found = next((path for folder in folders if (path := folder / written).is_dir()), None)
        if found is not None:
            yield os.path.normpath(found)


def _unknown_runner_keys(document: Document) -> list[str]:
    """Return a warning for every key that FluxLoop does not use either."""
    written: Mapping[str, Any] = document.data["runner"]
    known = (*RunnerEntry.model_fields, *IGNORED)
    unused = [str(key) for key in written if key not in known]
    hints = {key: "" if key == _ARGUMENTS else did_you_mean(key, known) for key in unused}
    return [
        str(document.problem(("runner", key), f"is not used, as in FluxLoop{hint}")) for key, hint in hints.items()
    ]


# Reads the settings of a FluxLoop project beside its ``evaluation.yaml``.
#
# The settings are in ``configs``: ``project.yaml``, ``input.yaml`` and ``simulation.yaml``. Later files override
# earlier ones. Older projects have one file instead: ``setting.yaml``, ``fluxloop.yaml`` or ``experiment.yaml``.


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
    """A project, as far as its files exist."""

    root: Path
    entry: ProjectEntry = field(default_factory=ProjectEntry)
    documents: Mapping[str, Document] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def read_project(evaluation: Document, problems: list[Problem]) -> Project:
    """Return the project of an evaluation."""
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
        warnings += [*document.warnings, *_unknown_project_keys(document)]
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


def _unknown_project_keys(document: Document) -> list[str]:
    known = [*ProjectEntry.model_fields, *_OTHER_KEYS]
    hints = {key: did_you_mean(str(key), known) for key in document.data if key not in known}
    return [str(document.problem((key,), f"unknown key{hint}")) for key, hint in hints.items() if hint]
