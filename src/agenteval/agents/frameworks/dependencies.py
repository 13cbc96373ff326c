"""The declared dependencies of a Python project, read without running its code."""

from __future__ import annotations

import ast
import configparser
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.agents.frameworks.outline import LARGEST_MODULE
from agenteval.core.documents.toml.read import parse_toml
from agenteval.core.files.reading import read_regular

# A requirement begins with its name (PEP 508); the fragment of a bare URL may contain it.
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
# Bytes of a file that declares dependencies.
_LARGEST = 10_000_000
_EGG = re.compile(r"#egg=([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class Dependencies:
    """The dependencies of a project.

    Attributes:
        names: normalised (PEP 503), optional and development dependencies included.
        warnings: files that could not be read.
    """

    names: frozenset[str]
    warnings: tuple[str, ...] = ()


def project_dependencies(root: Path) -> Dependencies:
    """Read a folder's ``pyproject.toml``, ``requirements*.txt``, ``setup.cfg`` and ``setup.py``."""
    names: set[str] = set()
    warnings: list[str] = []
    readers: tuple[tuple[str, Callable[[str], Iterable[str]]], ...] = (
        ("pyproject.toml", _pyproject),
        ("requirements*.txt", str.splitlines),
        ("requirements/*.txt", str.splitlines),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
    )
    for pattern, read in readers:
        for path in sorted(root.glob(pattern)):
            try:
                requirements = list(read(read_regular(path, limit=_LARGEST).decode("utf-8-sig")))
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError, configparser.Error) as error:
                shown = path.relative_to(root).as_posix()
                warnings.append(f"{shown}: its dependencies cannot be read: {' '.join(str(error).split())}")
            else:
                names.update(name for item in requirements if (name := requirement_name(item)))
    return Dependencies(frozenset(names), tuple(warnings))


def normal_name(name: str) -> str:
    """Return a package name normalised as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str | None:
    """Return the normalised package name of a requirement line; ``None`` for comments and options."""
    address = re.match(r"\s*(?:-e\s|--editable[\s=]|[a-z+]+://)", requirement)
    found = _EGG.search(requirement) if address else _NAME.match(requirement)
    return normal_name(found.group(1)) if found else None


def _pyproject(text: str) -> Iterator[str]:
    data = parse_toml(text)
    project, tools = _table(data, "project"), _table(data, "tool")
    yield from _texts(project.get("dependencies"))
    for group in (*_table(project, "optional-dependencies").values(), *_table(data, "dependency-groups").values()):
        yield from _texts(group)
    yield from _texts(_table(tools, "uv").get("dev-dependencies"))
    poetry = _table(tools, "poetry")
    yield from _table(poetry, "dependencies")
    yield from _table(poetry, "dev-dependencies")
    for name in _table(poetry, "group"):
        yield from _table(_table(_table(poetry, "group"), name), "dependencies")


def _setup_cfg(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    yield from parser.get("options", "install_requires", fallback="").splitlines()
    if parser.has_section("options.extras_require"):
        for _, lines in parser.items("options.extras_require"):
            yield from lines.splitlines()


def _setup_py(text: str) -> Iterator[str]:
    """Yield the requirements in ``setup(...)`` that are literals or variables with a literal value."""
    if len(text) > LARGEST_MODULE:
        raise ValueError(f"it has more than {LARGEST_MODULE:,} characters")
    with warnings.catch_warnings():
        # Warnings about invalid escapes in user code are not reported.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    keywords = (keyword for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords)
    for keyword in keywords:
        if keyword.arg in {"install_requires", "extras_require"}:
            value = keyword.value
            found = values.get(value.id, value) if isinstance(value, ast.Name) else value
            lists = found.values if isinstance(found, ast.Dict) else [found]
            constants = (item.value for part in lists for item in ast.walk(part) if isinstance(item, ast.Constant))
            yield from (value for value in constants if isinstance(value, str))


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
