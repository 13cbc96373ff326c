"""Reads YAML files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from agenteval.core.documents.allowed import KeyPatterns
from agenteval.core.documents.document import Document, KeyPath, Variables, read_text
from agenteval.core.documents.yaml.limits import check_shape
from agenteval.core.documents.yaml.places import find_places
from agenteval.core.documents.yaml.values import OPEN, SEALED, STRING_TAG, Values, seal
from agenteval.core.errors import ConfigError, Kind, Problem


@dataclass(frozen=True)
class NodePositions:
    """Positions from PyYAML's nodes; ``first_line`` is the line of the file at which their text begins (from 0)."""

    root: Any
    first_line: int

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest parent that exists."""
        node = self.root
        line: int | None = None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = self.first_line + mark.line + 1
        return line

    def source_text(self, path: KeyPath) -> str | None:
        """Return the source text of a scalar."""
        node = self.root
        for step in path:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, yaml.ScalarNode) else None


def _child(node: Any, step: str | int) -> tuple[yaml.Mark, Any] | None:
    if isinstance(node, yaml.MappingNode):
        # Of repeated keys, the last one is used.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark, item
    return None


# Message of the parser, and a hint for the most frequent mistake.
_NO_TABS = "indent with blanks, not tabs"
_YAML_HINTS = (
    ("cannot start any token", "a text that begins with @, ` or % needs quotes"),
    ("tab character", _NO_TABS),
    ("mapping values are not allowed", "a text that contains ': ' needs quotes"),
    ("expected '-' indicator", "is a line indented too little?"),
    ("expected <block end>", "is a line indented too little or too much?"),
    ("expected key", "is a line indented too little or too much?"),
)


def _value_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
    """Return a number or boolean, or the text if it only looks like one (``0x_``, thousands of digits)."""
    kind = node.tag.rpartition(":")[2]
    try:
        return getattr(loader, f"construct_yaml_{kind}")(node)
    except (ValueError, LookupError, OverflowError):
        return node.value


_RESOLVER = yaml.resolver.Resolver()

_NO_KEYS = KeyPatterns()

# No suite has longer keys.
_LONGEST_KEY = 50

_FAST: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _tag(loader: Any, kind: type[yaml.Node], value: Any, implicit: tuple[bool, bool]) -> Any:
    """Return the tag of a node; for most scalars the first character is enough to see that they are texts."""
    if kind is not yaml.ScalarNode:
        return _FAST.resolve(loader, kind, value, implicit)
    if not (implicit[0] and value[:1] in loader.yaml_implicit_resolvers):
        return STRING_TAG
    return _plain_tag(value) if len(value) <= _LONGEST_KEY else _FAST.resolve(loader, kind, value, implicit)


@lru_cache(1024)
def _plain_tag(value: str) -> Any:
    """Return the tag of a scalar without quotes, cached because keys repeat."""
    return _RESOLVER.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]


_LOADER: type[Any] = type("_Loader", (_FAST,), {"resolve": _tag})

for _kind in ("int", "float", "bool"):
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _value_or_text)

for _kind in ("timestamp", "value"):
    # Suites contain no dates, and "=" is an ordinary answer.
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _LOADER.construct_yaml_str)


def read_yaml(
    path: Path,
    *,
    shown_as: str | None = None,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
    credentials: Iterable[str] = (),
    unique: bool = False,
) -> Document:
    """Read one YAML file.

    Args:
        path: the file.
        shown_as: its name in messages; the path itself if not given.
        environment: the variables for ``${VAR}``; default: the process environment.
        unset: receives problems with variables, so that they are reported together with other problems.
        credentials: patterns of the keys that take credentials.
        unique: whether a key that is given twice is an error; otherwise the last one counts, with a warning.

    Raises:
        ConfigError: the file is unreadable, not YAML, or uses unset variables (all are reported).
    """
    name = shown_as or str(path)
    text = sealed_text(path, name)
    keys = KeyPatterns.of(credentials)
    folder = path.resolve().parent
    return parse_yaml(text, name, folder, environment=environment, unset=unset, credentials=keys, unique=unique)


def sealed_text(path: Path, name: str) -> str:
    """Return the text of a file for ``parse_yaml``.

    Raises:
        ConfigError: it cannot be read.
    """
    return seal(read_text(path, name))


def parse_yaml(
    text: str,
    name: str,
    directory: Path,
    *,
    first_line: int = 0,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
    credentials: KeyPatterns = _NO_KEYS,
    at: KeyPath = (),
    first_item: int = 0,
    unique: bool = False,
) -> Document:
    """Parse a ``sealed_text``, or a part of it, like ``read_yaml``.

    Args:
        text: the text.
        name: the file's name in messages.
        directory: base of relative paths in the file.
        first_line: line of the file at which the text begins, from 0.
        environment: the variables; default: the process environment.
        unset: receives problems with variables.
        credentials: patterns of the keys of the file that take credentials.
        at: path of the part in the file.
        first_item: index of the part's first item in the list of the file.
        unique: whether a key that is given twice is an error.
    """
    try:
        check_shape(name, text, _LOADER)
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            variables = Variables(name, environment, SEALED)
            if OPEN in text:
                places = find_places(root, credentials.below(at), at, first_item)
                values = Values(loader, variables, first_line, places)
            else:
                values = Values(loader, None, first_line)
            data = values.of(root) if root is not None else None
            variables.report(unset)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_yaml_problem(name, error, text)) from None
    except yaml.reader.ReaderError:
        raise ConfigError(_character_problem(name, text)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(Problem(f"not valid YAML: {error}", file=name, kind=Kind.SYNTAX)) from None
    if unique and values.duplicates:
        raise ConfigError(
            Problem(
                f"the key {key!r} is given twice, first in line {first}; remove one of them",
                file=name,
                line=line,
                kind=Kind.NOT_UNIQUE,
                mark=key,
            )
            for key, first, line in values.duplicates
        )
    return Document(
        file=name,
        directory=directory,
        data=data,
        secrets=frozenset(variables.secrets),
        warnings=tuple(
            f"{name}:{line}: the key {key!r} is given twice, first in line {first}; the last one counts"
            for key, first, line in values.duplicates
        ),
        positions=NodePositions(root, first_line),
    )


def _character_problem(name: str, text: str) -> Problem:
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    character = f"the character U+{ord(found.group()):04X}" if found else "a character"
    line = text.count("\n", 0, found.start()) + 1 if found else None
    return Problem(f"not valid YAML: {character} is not allowed", file=name, line=line, kind=Kind.SYNTAX)


def _yaml_problem(name: str, error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    parts: Iterator[str] = (part for part in (error.context, error.problem) if part)
    said = ", ".join(parts)
    hint = next((hint for words, hint in _YAML_HINTS if words in said), None)
    if "quoted scalar" in said and "end of stream" in said and error.context_mark:
        # The end of the file is where this was found, not where the mistake is.
        mark, said, hint = error.context_mark, "the quote that opens here is not closed", None
    elif "cannot start any token" in said and mark and _is_tab(text, mark):
        said, hint = "a tab cannot indent a line", _NO_TABS
    return Problem(
        f"not valid YAML: {said}" + (f"; {hint}" if hint else ""),
        file=name,
        line=mark.line + 1 if mark else None,
        kind=Kind.SYNTAX,
    )


def _is_tab(text: str, mark: yaml.Mark) -> bool:
    lines = text.splitlines()
    return mark.line < len(lines) and lines[mark.line][: mark.column + 1].endswith("\t")
