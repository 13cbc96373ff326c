"""What surrounds a HoloDeck ``agent.yaml``: ``.env`` files and ``config.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agenteval.core.document import Document, environment_with
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import boundary
from agenteval.core.records import dataclass, field
from agenteval.core.text import did_you_mean, working_directory_beside
from agenteval.core.validation import validate
from agenteval.core.yaml import read_yaml
from agenteval.suite.cases import is_file
from agenteval.suite.formats.base import EnvFiles
from agenteval.suite.formats.holodeck.schema import Execution, HoloDeckModel


def holodeck_home() -> Path | None:
    """Return ``~/.holodeck``; ``None`` without a home directory, or if only files of the workspace are read."""
    if boundary().roots:
        return None
    try:
        return Path.home() / ".holodeck"
    except RuntimeError:
        return None


# The ``.env`` files of a HoloDeck project: variables that the environment does not have.
#
# They are for ``${VAR}`` in the files of the project and for the processes of its agent and its graders. The process
# of agenteval does not get them, so that a change cannot configure it, and they never replace a variable of the
# environment.


NAME = ".env"


def read_env_files(directory: Path, shown_in: str) -> EnvFiles:
    """Read the files of the working directory, of a project and of the user, in this order; the first value counts.

    Args:
        directory: the directory of ``agent.yaml``.
    """
    return EnvFiles.read(_env_files(directory.resolve(), Path(shown_in)), first_counts=True)


def _env_files(directory: Path, shown_in: Path) -> Iterator[tuple[Path, str]]:
    home = holodeck_home()
    # Not the working directory itself: for the base commit's files, it belongs to the change.
    here = working_directory_beside(directory, str(shown_in / NAME))
    places = {
        **({} if here is None else {here.resolve(): Path()}),
        directory: shown_in,
        **({} if home is None else {home: Path("~/.holodeck")}),
    }
    for folder, shown in places.items():
        if is_file(folder / NAME):
            yield folder / NAME, str(shown / NAME)


# HoloDeck's ``config.yaml``: defaults for the projects of a directory or of a user.
#
# A project's file is beside its ``agent.yaml``, the user's in ``~/.holodeck``. Values of the project precede those of
# the user, and those of ``agent.yaml`` precede both.


# HoloDeck prefers the first.
NAMES = ("config.yml", "config.yaml")

CREDENTIALS = (
    "providers.**",
    "vectorstores.**",
    "deployment.**",
    "mcp_servers.*.env.*",
    "mcp_servers.*.headers.*",
)


class GlobalConfigFile(BaseModel):
    """The keys of ``config.yaml``; each tool of ``mcp_servers`` is checked with the tools of the agent."""

    model_config = ConfigDict(extra="forbid")

    providers: dict[str, HoloDeckModel] | None = None
    vectorstores: dict[str, Any] | None = None
    execution: Execution | None = None
    deployment: Any = None
    mcp_servers: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class GlobalConfig:
    """The merged content of the configuration files.

    Attributes:
        content: their known keys; empty without files.
        warnings: keys that HoloDeck does not know.
    """

    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def provider_key(self, provider: Any) -> str | None:
        """Return the key of a provider's entry: the key with its name, else the first entry for it."""
        entries = self.content.get("providers") or {}
        if provider in entries:
            return str(provider)
        return next((key for key, entry in entries.items() if entry.get("provider") == provider), None)

    def filled(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of an ``agent.yaml`` with the defaults of this configuration."""
        if not self.content:
            return dict(data)
        result = {**data, **self._with_model(data)}
        if isinstance(evaluations := data.get("evaluations"), dict):
            result["evaluations"] = {**evaluations, **self._with_model(evaluations)}
        execution = {**(self.content.get("execution") or {}), **_present(data.get("execution"))}
        if execution and isinstance(data.get("execution", {}), dict | None):
            result["execution"] = execution
        servers = self.content.get("mcp_servers") or []
        if servers and isinstance(tools := data.get("tools") or [], list):
            names = {tool.get("name") for tool in tools if isinstance(tool, dict)}
            result["tools"] = [*tools, *(server for server in servers if server.get("name") not in names)]
        return result

    def _with_model(self, holder: Mapping[str, Any]) -> dict[str, Any]:
        model = holder.get("model")
        key = self.provider_key(model.get("provider")) if isinstance(model, dict) else None
        if key is None or not isinstance(model, dict):
            return {}
        return {"model": {**self.content["providers"][key], **model}}


def read_global_config(directory: Path, shown_in: str, variables: Mapping[str, str]) -> GlobalConfig:
    """Read the configuration files of a project.

    Args:
        directory: the directory of its ``agent.yaml``.
        variables: of the files of the project.
    """
    found = [_read(path, name, variables) for path, name in _config_files(directory, shown_in)]
    content: dict[str, Any] = {}
    for config in found:
        _merge(content, config.content)
    return GlobalConfig(
        content=content,
        problems=tuple(problem for config in found for problem in config.problems),
        warnings=tuple(warning for config in found for warning in config.warnings),
        secrets=frozenset().union(*(config.secrets for config in found)),
    )


def _config_files(directory: Path, shown_in: str) -> Iterator[tuple[Path, str]]:
    home = holodeck_home()
    places = [(home, "~/.holodeck")] if home is not None else []
    for folder, shown in (*places, (directory, shown_in)):
        name = next((name for name in NAMES if is_file(folder / name)), None)
        if name is not None:
            yield folder / name, str(Path(shown, name))


def _read(path: Path, name: str, variables: Mapping[str, str]) -> GlobalConfig:
    unset: list[Problem] = []
    try:
        environment = environment_with(variables)
        document = read_yaml(path, shown_as=name, environment=environment, unset=unset, credentials=CREDENTIALS)
    except ConfigError as error:
        return GlobalConfig(problems=tuple(error.problems))
    data, allowed = document.data, GlobalConfigFile.model_fields
    if not isinstance(data, dict) or allowed.keys().isdisjoint(data):
        # Another program's file.
        return GlobalConfig()
    known = {key: value for key, value in data.items() if key in allowed and value is not None}
    entry, problems = validate(GlobalConfigFile, known, document)
    return GlobalConfig(
        content={} if entry is None else known,
        problems=(*unset, *problems),
        warnings=(*document.warnings, *_unknown(data, allowed, document)),
        secrets=document.secrets,
    )


def _unknown(data: Mapping[Any, Any], allowed: Iterable[str], document: Document) -> Iterator[str]:
    for key in data:
        if key not in allowed:
            message = f"HoloDeck has no such key; it is not used{did_you_mean(str(key), allowed)}"
            yield str(document.problem((key,), message))


def _present(section: Any) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None} if isinstance(section, dict) else {}


def _merge(base: dict[str, Any], override: Mapping[str, Any]) -> None:
    """Merge mappings key by key; other values replace each other."""
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = dict(base[key])
            _merge(base[key], value)
        else:
            base[key] = value
