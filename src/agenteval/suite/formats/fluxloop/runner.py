"""The ``runner`` of a FluxLoop project: the agent that its simulation runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, field_validator

from agenteval.core.documents.document import Document
from agenteval.core.masking import add_secrets
from agenteval.core.paths import repository_of
from agenteval.core.secrets import secrets_in
from agenteval.core.text.choices import did_you_mean
from agenteval.suite.fluxloop_agent import KIND, FluxLoopAgentSpec
from agenteval.suite.formats.fluxloop.env_files import EnvFiles
from agenteval.suite.formats.fluxloop.schema import Entry, Number, one_as_list
from agenteval.suite.model import AgentSpec

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


@dataclass(frozen=True)
class RunnerAgent:
    """The agent of a project.

    Attributes:
        spec: its definition; ``None`` if the project names none.
        warnings: warnings of the loader.
        secrets: values of its environment that are masked.
    """

    spec: AgentSpec | None = None
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def runner_agent(entry: RunnerEntry | None, document: Document | None, root: Path, env: EnvFiles) -> RunnerAgent:
    """Return the agent that a project's ``runner`` names.

    Args:
        entry: the ``runner``.
        document: the file that contains it.
        root: directory of the project.
        env: its ``.env`` files.
    """
    if entry is None or document is None or entry.reference is None:
        return RunnerAgent()
    secrets = set(env.secrets)
    own = {
        name: value if isinstance(value, str) else document.as_written(value, ("runner", "environment_vars", name))
        for name, value in entry.environment_vars.items()
    }
    secrets |= {secret for name, value in own.items() for secret in secrets_in(name, value)}
    add_secrets(secrets)
    line = document.line(("runner",))
    spec = AgentSpec(
        kind=KIND,
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
        where=f"{document.file}:{line}" if line else document.file,
    )
    return RunnerAgent(spec, tuple(_unknown_keys(document)), frozenset(secrets))


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


def _unknown_keys(document: Document) -> list[str]:
    """Return a warning for every key that FluxLoop does not use either."""
    written: Mapping[str, Any] = document.data["runner"]
    known = (*RunnerEntry.model_fields, *IGNORED)
    unused = [str(key) for key in written if key not in known]
    hints = {key: "" if key == _ARGUMENTS else did_you_mean(key, known) for key in unused}
    return [
        str(document.problem(("runner", key), f"is not used, as in FluxLoop{hint}")) for key, hint in hints.items()
    ]
