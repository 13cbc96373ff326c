"""HoloDeck's ``config.yaml``: defaults for the projects of a directory or of a user.

A project's file is beside its ``agent.yaml``, the user's in ``~/.holodeck``. Values of the project precede those of
the user, and those of ``agent.yaml`` precede both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agenteval.core.documents.document import Document
from agenteval.core.documents.validation import validate
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.text.choices import did_you_mean
from agenteval.suite.files import is_file
from agenteval.suite.formats.holodeck.home import holodeck_home
from agenteval.suite.formats.holodeck.schema import Execution, ModelEntry

# HoloDeck prefers the first.
NAMES = ("config.yml", "config.yaml")

CREDENTIALS = (
    "providers.*.api_key",
    "vectorstores.**",
    "deployment.**",
    "mcp_servers.*.env.*",
    "mcp_servers.*.headers.*",
)


class GlobalConfigFile(BaseModel):
    """The keys of ``config.yaml``; each tool of ``mcp_servers`` is checked with the tools of the agent."""

    model_config = ConfigDict(extra="forbid")

    providers: dict[str, ModelEntry] | None = None
    vectorstores: dict[str, Any] | None = None
    execution: Execution | None = None
    deployment: Any = None
    mcp_servers: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class GlobalConfig:
    """The merged content of the configuration files.

    Attributes:
        content: their known keys; empty without files.
        problems: mistakes, and variables that are not set.
        warnings: keys that HoloDeck does not know.
        secrets: values of variables that are masked.
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


def read_global_config(directory: Path, shown_in: str) -> GlobalConfig:
    """Read the configuration files of a project.

    Args:
        directory: the directory of its ``agent.yaml``.
        shown_in: that directory in messages.
    """
    found = [_read(path, name) for path, name in _files(directory, shown_in)]
    content: dict[str, Any] = {}
    for config in found:
        _merge(content, config.content)
    return GlobalConfig(
        content=content,
        problems=tuple(problem for config in found for problem in config.problems),
        warnings=tuple(warning for config in found for warning in config.warnings),
        secrets=frozenset().union(*(config.secrets for config in found)),
    )


def _files(directory: Path, shown_in: str) -> Iterator[tuple[Path, str]]:
    """Yield the existing files, the user's first."""
    home = holodeck_home()
    places = [(home, "~/.holodeck")] if home is not None else []
    for folder, shown in (*places, (directory, shown_in)):
        name = next((name for name in NAMES if is_file(folder / name)), None)
        if name is not None:
            yield folder / name, str(Path(shown, name))


def _read(path: Path, name: str) -> GlobalConfig:
    unset: list[Problem] = []
    try:
        document = read_yaml(path, shown_as=name, unset=unset, credentials=CREDENTIALS)
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
