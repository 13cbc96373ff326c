"""Finds the agents and tools in a repository's Python files by framework descriptions, without running them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agenteval.agents.frameworks.dependencies import project_dependencies
from agenteval.agents.frameworks.descriptions import AgentPattern, Framework, ToolPattern, load_frameworks
from agenteval.agents.frameworks.modules import Module, Modules
from agenteval.agents.frameworks.outline import Definition, Outline

T = TypeVar("T")
Pattern = TypeVar("Pattern", AgentPattern, ToolPattern)


@dataclass(frozen=True)
class Found:
    """An agent or tool in the source code.

    Attributes:
        name: the name of the variable, function or class.
        reference: ``package.module:name``.
        file: relative to the repository.
        line: 1-based.
        method: the method to call.
        prompt_argument: the parameter that takes the prompt; ``None`` for the first one.
        instantiate: whether it is a class to instantiate without arguments first.
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
        tools: likewise.
        warnings: skipped files, and the reason if the search was not possible.
    """

    agents: Mapping[str, Found]
    tools: Mapping[str, Found]
    warnings: tuple[str, ...] = ()


class AmbiguousNameError(ValueError):
    """Several definitions have the name; the message lists their places."""


def discover_targets(root: Path) -> Discovered:
    """Find the agents and tools of a repository.

    Args:
        root: the repository.

    Raises:
        ConfigError: a description in ``.agentci/frameworks`` is not valid.
    """
    dependencies = project_dependencies(root)
    frameworks = load_frameworks(root, dependencies.names)
    if not frameworks:
        nothing = "no known framework is among the project's dependencies, and .agentci/frameworks describes none"
        return Discovered({}, {}, (*dependencies.warnings, nothing))
    modules = Modules(root)
    modules.read_mentioning({name.partition(".")[0] for framework in frameworks for name in _needed_names(framework)})
    classes = _subclasses(modules, frameworks)
    return Discovered(
        agents=_by_name(_agents(modules.read, frameworks)),
        tools=_by_name(_tools(modules.read, frameworks, classes)),
        warnings=(*dependencies.warnings, *modules.warnings),
    )


def lookup(found: Mapping[str, Found], name: str) -> Found | None:
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
            for item in module.outline.classes
            if f"{module.name}.{item.name}" not in known
            and (pattern := _first(map(known.get, item.origins)) or _pattern(item, patterns))
        }
        if not more:
            return known
        known.update(more)
        # Other files may use these classes without mentioning the framework.
        modules.read_mentioning({name.rpartition(".")[2] for name in more})


def _found(
    module: Module, item: Definition, method: str, prompt: str | None = None, *, instantiate: bool = False
) -> Found:
    return Found(item.name, f"{module.name}:{item.name}", module.file, item.line, method, prompt, instantiate)


def _agents(modules: Iterable[Module], frameworks: Sequence[Framework]) -> Iterator[Found]:
    patterns = [agent for framework in frameworks for agent in framework.agents]
    for module in modules:
        for item in module.outline.variables:
            pattern = _pattern(item, patterns)
            if pattern:
                yield _found(module, item, pattern.execution.method, pattern.prompt_argument)


def _tools(
    modules: Sequence[Module], frameworks: Sequence[Framework], classes: Mapping[str, ToolPattern]
) -> Iterator[Found]:
    """Yield the tools: first those with a specific pattern, then plain functions."""
    tools = [tool for framework in frameworks for tool in framework.tools]
    for module in modules:
        yield from _made_tools(module, tools, classes)
    for framework in frameworks:
        for tool in framework.tools:
            if tool.type == "function":
                yield from _plain_functions(modules, framework.packages, tool)


def _made_tools(module: Module, tools: Iterable[ToolPattern], classes: Mapping[str, ToolPattern]) -> Iterator[Found]:
    constructors = [tool for tool in tools if tool.type == "constructor"]
    decorators = [tool for tool in tools if tool.type == "decorator"]
    for item in module.outline.variables:
        made = _first(classes.get(origin) for origin in item.origins) or _pattern(item, constructors)
        if made:
            yield _found(module, item, made.execution.method)
    for item in module.outline.functions:
        made = _pattern(item, decorators)
        if made:
            yield _found(module, item, made.execution.method)
    for item in module.outline.classes:
        made = classes.get(f"{module.name}.{item.name}")
        if made and not item.name.startswith("_"):
            yield _found(module, item, made.execution.method, instantiate=True)


def _plain_functions(modules: Iterable[Module], packages: Sequence[str], tool: ToolPattern) -> Iterator[Found]:
    """Yield the public functions of the modules that import one of the packages."""
    for module in modules:
        if _imports_any(module.outline, packages):
            for item in module.outline.functions:
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


def _by_name(items: Iterable[Found]) -> dict[str, Found]:
    by_reference: dict[str, Found] = {}
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
