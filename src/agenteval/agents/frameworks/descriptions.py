"""Framework descriptions: what agents and tools look like in source code, and how they are called.

Users write them to ``.agentci/frameworks/*.toml``; ``frameworks.toml`` beside this module describes
common frameworks. Both use the format of AgentCI's framework configuration.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from agenteval.agents.frameworks.dependencies import normal_name
from agenteval.core.documents.toml.read import read_toml
from agenteval.core.documents.validation import validate
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.paths import display_path
from agenteval.suite.agentci_places import frameworks


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


_Text = Annotated[str, AfterValidator(_not_blank)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExecutionArguments(_Strict):
    """``execution.args``: the parameter that takes the prompt."""

    prompt: _Text


class Execution(_Strict):
    """``execution``: the method that is called."""

    method: _Text
    args: ExecutionArguments | None = None


class DiscoveryArguments(_Strict):
    """``args``: what the framework calls the parameters of an agent."""

    model: str | None = None
    prompt: str | None = None
    tools: str | None = None

    @model_validator(mode="after")
    def _needs_one(self) -> DiscoveryArguments:
        if not (self.model or self.prompt or self.tools):
            raise ValueError("needs at least one of model, prompt, tools")
        return self


class AgentPattern(_Strict):
    """``[[agents]]``: a variable that is assigned from a call of ``path`` is an agent."""

    path: _Text
    type: Literal["constructor", "class_method", "function"] | None = None
    args: DiscoveryArguments
    execution: Execution

    @model_validator(mode="after")
    def _names_class_and_method(self) -> AgentPattern:
        if self.type == "class_method" and "." not in self.path:
            raise ValueError(f"type 'class_method' needs a path of the form Class.method, not {self.path!r}")
        return self

    @property
    def prompt_argument(self) -> str | None:
        """Return the parameter that takes the prompt; ``None`` for the first one."""
        return self.execution.args.prompt if self.execution.args else None


class ToolPattern(_Strict):
    """``[[tools]]``: how a tool is defined: by decorator, constructor or base class, or as any public function."""

    type: Literal["decorator", "constructor", "class", "function"]
    path: _Text | None = None
    execution: Execution

    @model_validator(mode="after")
    def _names_what_makes_it(self) -> ToolPattern:
        if self.type != "function" and self.path is None:
            raise ValueError(f"type {self.type!r} needs a path")
        return self


class Metadata(_Strict):
    """``[framework]``."""

    name: _Text
    dependencies: list[_Text] = Field(min_length=1)


class Framework(_Strict):
    """The description of a framework."""

    framework: Metadata
    agents: list[AgentPattern] = []
    tools: list[ToolPattern] = []

    @model_validator(mode="after")
    def _describes_something(self) -> Framework:
        if not (self.agents or self.tools):
            raise ValueError("needs at least one [[agents]] or [[tools]]")
        return self

    @property
    def name(self) -> str:
        """``framework.name``."""
        return self.framework.name

    @property
    def packages(self) -> tuple[str, ...]:
        """The framework's import names: its dependencies as Python identifiers."""
        return tuple(dict.fromkeys(name.replace("-", "_") for name in self.framework.dependencies))

    def is_among(self, dependencies: Collection[str]) -> bool:
        """Return whether one of these dependencies (normalised names) belongs to the framework."""
        return any(normal_name(name) in dependencies for name in self.framework.dependencies)


def load_frameworks(root: Path, dependencies: Collection[str]) -> tuple[Framework, ...]:
    """Read the descriptions that apply to a repository, the user's first.

    Args:
        root: the repository; all user descriptions in its ``.agentci/frameworks`` apply.
        dependencies: normalised names of what the repository depends on; a built-in description applies
            if it belongs to one of them and no user description replaces it (same file stem or name).

    Raises:
        ConfigError: a file has problems; the message lists those of all files.
    """
    own: dict[str, Framework] = {}
    problems: list[Problem] = []
    for path in sorted(frameworks(root).glob("*.toml")):
        try:
            own[path.stem] = read_framework(path)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    replaced = {_key(name) for stem, framework in own.items() for name in (stem, framework.name)}
    built_in = (
        framework
        for stem, framework in built_in_frameworks().items()
        if framework.is_among(dependencies) and replaced.isdisjoint({_key(stem), _key(framework.name)})
    )
    return (*own.values(), *built_in)


def read_framework(path: Path) -> Framework:
    """Read a user's description.

    Raises:
        ConfigError: the file is not valid; the message lists all its problems.
    """
    document = read_toml(path, shown_as=display_path(path))
    framework, problems = validate(Framework, document.data, document)
    if framework is None:
        raise ConfigError(problems)
    return framework


@cache
def built_in_frameworks() -> dict[str, Framework]:
    """Return the built-in descriptions by the file stem that replaces each."""
    text = files("agenteval.agents.frameworks").joinpath("frameworks.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    return {stem: Framework.model_validate(table) for stem, table in tables.items()}


def _key(name: str) -> str:
    """Return the key for comparing names: ``llama_index``, ``llama-index`` and ``LlamaIndex`` are equal."""
    return re.sub(r"[-_.\s]", "", name).lower()
