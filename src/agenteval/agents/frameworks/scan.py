"""Finds the agents and tools in a repository's Python files by descriptions of frameworks."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from agenteval.agents.frameworks.outline import Definition, Modules, Outline
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass
from agenteval.core.text import display_path
from agenteval.core.toml import read_toml
from agenteval.core.validation import validate
from agenteval.suite.formats.base import frameworks

# Framework descriptions: what agents and tools look like in source code, and how they are called.
#
# Users write them to ``.agentci/frameworks/*.toml``; ``frameworks.toml`` beside this module describes
# common frameworks. Both use the format of AgentCI's framework configuration.


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


_Text = Annotated[str, AfterValidator(_not_blank)]


class _StrictTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExecutionArguments(_StrictTable):
    """``execution.args``: the parameter that takes the prompt."""

    prompt: _Text


class ExecutionMethod(_StrictTable):
    """``execution``: the method that is called."""

    method: _Text
    args: ExecutionArguments | None = None


class DiscoveryArguments(_StrictTable):
    """``args``: what the framework calls the parameters of an agent."""

    model: str | None = None
    prompt: str | None = None
    tools: str | None = None

    @model_validator(mode="after")
    def _needs_one(self) -> DiscoveryArguments:
        if not (self.model or self.prompt or self.tools):
            raise ValueError("needs at least one of model, prompt, tools")
        return self


class AgentPattern(_StrictTable):
    """``[[agents]]``: a variable that is assigned from a call of ``path`` is an agent."""

    path: _Text
    type: Literal["constructor", "class_method", "function"] | None = None
    args: DiscoveryArguments
    execution: ExecutionMethod

    @model_validator(mode="after")
    def _names_class_and_method(self) -> AgentPattern:
        if self.type == "class_method" and "." not in self.path:
            raise ValueError(f"type 'class_method' needs a path of the form Class.method, not {self.path!r}")
        return self

    @property
    def prompt_argument(self) -> str | None:
        """Return the parameter that takes the prompt; ``None`` for the first one."""
        return self.execution.args.prompt if self.execution.args else None


class ToolPattern(_StrictTable):
    """``[[tools]]``: how a tool is defined: by decorator, constructor or base class, or as any public function."""

    type: Literal["decorator", "constructor", "class", "function"]
    path: _Text | None = None
    execution: ExecutionMethod

    @model_validator(mode="after")
    def _names_what_makes_it(self) -> ToolPattern:
        if self.type != "function" and self.path is None:
            raise ValueError(f"type {self.type!r} needs a path")
        return self


class FrameworkMetadata(_StrictTable):
    """``[framework]``."""

    name: _Text
    dependencies: list[_Text] = Field(min_length=1)


class Framework(_StrictTable):
    """The description of a framework."""

    framework: FrameworkMetadata
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


def load_frameworks(root: Path, packages: frozenset[str] = frozenset()) -> tuple[Framework, ...]:
    """Read the user's descriptions in ``.agentci/frameworks``, and the built-in ones that they do not replace.

    A description with the same file stem or name replaces a built-in one.

    Args:
        packages: the repository's own; a framework of the same name is not what its modules import.
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
        if replaced.isdisjoint({_key(stem), _key(framework.name)}) and packages.isdisjoint(framework.packages)
    )
    return (*own.values(), *built_in)


def read_framework(path: Path) -> Framework:
    """Read a user's description."""
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


T = TypeVar("T")
Pattern = TypeVar("Pattern", AgentPattern, ToolPattern)


@dataclass(frozen=True)
class FoundAgent:
    """An agent or tool in the source code.

    Attributes:
        name: the name of the variable, function or class.
        reference: ``package.module:name``.
        line: 1-based.
        prompt_argument: the parameter that takes the prompt; ``None`` for the first one.
    """

    name: str
    reference: str
    file: str
    line: int
    method: str
    prompt_argument: str | None = None
    instantiate: bool = False

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Discovered:
    """The agents and tools of a repository.

    Attributes:
        agents: by name, or by reference if several share a name.
        warnings: skipped files, and that no framework is used.
    """

    agents: Mapping[str, FoundAgent]
    tools: Mapping[str, FoundAgent]
    warnings: tuple[str, ...] = ()


class AmbiguousNameError(ValueError):
    """Several definitions have the name; the message lists their places."""


def discover_targets(root: Path) -> Discovered:
    """Find the agents and tools of a repository."""
    modules = Modules(root)
    frameworks = load_frameworks(root, modules.packages)
    modules.read_mentioning({name.partition(".")[0] for framework in frameworks for name in _needed_names(framework)})
    classes = _subclasses(modules, frameworks)
    unused = () if modules.read else (f"no module imports {', '.join(framework.name for framework in frameworks)}",)
    return Discovered(
        agents=_by_name(_agents(modules.read, frameworks)),
        tools=_by_name(_tools(modules.read, frameworks, classes)),
        warnings=(*modules.warnings, *unused),
    )


def lookup(found: Mapping[str, FoundAgent], name: str) -> FoundAgent | None:
    """Find what a suite refers to; ``-`` equals ``_``, and ``package.module:name`` is accepted.

    Raises:
        AmbiguousNameError: several have the name.
    """
    referred = _first(item for item in found.values() if item.reference == name)
    if referred:
        return referred
    same = [item for item in found.values() if _plain(item.name) == _plain(name)]
    exact = [item for item in same if item.name == name] or same
    if len(exact) > 1:
        places = ", ".join(f"{item.place} ({item.reference})" for item in exact)
        raise AmbiguousNameError(f"{name!r} is ambiguous: {places}; rename one, or write module:name for it")
    return exact[0] if exact else None


def _subclasses(modules: Modules, frameworks: Sequence[Framework]) -> dict[str, ToolPattern]:
    """Return the classes that inherit, directly or not, from a description's base class, by full name."""
    patterns = [tool for framework in frameworks for tool in framework.tools if tool.type == "class"]
    known: dict[str, ToolPattern] = {}
    while True:
        more = {
            f"{module.name}.{item.name}": pattern
            for module in modules.read
            for item in module.classes
            if f"{module.name}.{item.name}" not in known
            and (pattern := _first(map(known.get, item.origins)) or _pattern(item, patterns))
        }
        if not more:
            return known
        known.update(more)
        # Other files may use these classes without mentioning the framework.
        modules.read_mentioning({name.rpartition(".")[2] for name in more})


def _found(
    module: Outline, item: Definition, method: str, prompt: str | None = None, *, instantiate: bool = False
) -> FoundAgent:
    return FoundAgent(item.name, f"{module.name}:{item.name}", module.file, item.line, method, prompt, instantiate)


def _agents(modules: Iterable[Outline], frameworks: Sequence[Framework]) -> Iterator[FoundAgent]:
    patterns = [agent for framework in frameworks for agent in framework.agents]
    for module in modules:
        for item in module.variables:
            pattern = _pattern(item, patterns)
            if pattern:
                yield _found(module, item, pattern.execution.method, pattern.prompt_argument)


def _tools(
    modules: Sequence[Outline], frameworks: Sequence[Framework], classes: Mapping[str, ToolPattern]
) -> Iterator[FoundAgent]:
    """Yield the tools: first those with a specific pattern, then plain functions."""
    tools = [tool for framework in frameworks for tool in framework.tools]
    for module in modules:
        yield from _made_tools(module, tools, classes)
    for framework in frameworks:
        for tool in framework.tools:
            if tool.type == "function":
                yield from _plain_functions(modules, framework.packages, tool)


def _made_tools(
    module: Outline, tools: Iterable[ToolPattern], classes: Mapping[str, ToolPattern]
) -> Iterator[FoundAgent]:
    constructors = [tool for tool in tools if tool.type == "constructor"]
    decorators = [tool for tool in tools if tool.type == "decorator"]
    for item in module.variables:
        made = _first(classes.get(origin) for origin in item.origins) or _pattern(item, constructors)
        if made:
            yield _found(module, item, made.execution.method)
    for item in module.functions:
        made = _pattern(item, decorators)
        if made:
            yield _found(module, item, made.execution.method)
    for item in module.classes:
        made = classes.get(f"{module.name}.{item.name}")
        if made and not item.name.startswith("_"):
            yield _found(module, item, made.execution.method, instantiate=True)


def _plain_functions(modules: Iterable[Outline], packages: Sequence[str], tool: ToolPattern) -> Iterator[FoundAgent]:
    for module in modules:
        if _imports_any(module, packages):
            for item in module.functions:
                if not item.name.startswith("_"):
                    yield _found(module, item, tool.execution.method)


def _imports_any(found: Outline, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages for name in found.imports)


def _pattern(item: Definition, patterns: Sequence[Pattern]) -> Pattern | None:
    """Return the pattern that a definition matches; an equal path precedes a re-export of it."""
    return _first(tool for tool in patterns for origin in item.origins if tool.path == origin) or _first(
        tool for tool in patterns for origin in item.origins if _is_reexport(origin, tool.path or "")
    )


def _is_reexport(one: str, other: str) -> bool:
    """Return whether two names end in the same symbol and one's module contains the other's."""
    module, symbol = _split(one)
    other_module, other_symbol = _split(other)
    inner, outer = sorted((module, other_module), key=len, reverse=True)
    return symbol == other_symbol and outer != [] and inner[: len(outer)] == outer


def _split(path: str) -> tuple[list[str], list[str]]:
    """Return module and symbol; the symbol of a method begins with its class."""
    parts = path.split(".")
    start = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return parts[:start], parts[start:]


def _first(items: Iterable[T | None]) -> T | None:
    return next((item for item in items if item), None)


def _by_name(items: Iterable[FoundAgent]) -> dict[str, FoundAgent]:
    by_reference: dict[str, FoundAgent] = {}
    for item in items:
        by_reference.setdefault(item.reference, item)
    count = Counter(item.name for item in by_reference.values())
    return {
        item.name if count[item.name] == 1 else item.reference: item
        for item in sorted(by_reference.values(), key=lambda item: (item.file, item.line))
    }


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _needed_names(framework: Framework) -> Iterator[str]:
    """Return names of which a file must contain at least one to use the framework."""
    yield from (agent.path for agent in framework.agents)
    yield from (tool.path or "" for tool in framework.tools if tool.path)
    if any(tool.type == "function" for tool in framework.tools):
        yield from framework.packages
