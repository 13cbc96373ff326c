"""Reads YAML files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import ConfigError, Problem
from agenteval.suite.document import VARIABLE, Document, KeyPath, Variables, read_text, substituted

# While YAML is parsed, variables wear other braces: inside {…} and […] theirs would be YAML's.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SEALED = re.compile(VARIABLE.pattern.replace(r"\{", _OPEN).replace(r"\}", _CLOSE).replace("[^}]", f"[^{_CLOSE}]"))
_STRING_TAG = "tag:yaml.org,2002:str"
_SEQUENCE_TAG = "tag:yaml.org,2002:seq"
_MAPPING_TAG = "tag:yaml.org,2002:map"
# What the parser says, and what people most often did.
_YAML_HINTS = (
    ("cannot start any token", "indent with blanks, not tabs; a text that begins with @, ` or % needs quotes"),
    ("tab character", "indent with blanks, not tabs"),
    ("mapping values are not allowed", "a text that contains ': ' needs quotes"),
    ("expected '-' indicator", "is a line indented too little?"),
    ("expected <block end>", "is a line indented too little or too much?"),
    ("expected key", "is a line indented too little or too much?"),
)
# Deeper files crash the parser itself.
_MAX_DEPTH = 100
# Anchors, aliases and tags.
_MARKED = re.compile(r"(?<![^\s\[{,])[&*!](?=\S)")
# What may stand in a line before a collection begins.
_BEFORE_CONTENT = re.compile(r"^[ \t?:-]*", re.MULTILINE)
# Aliases may repeat so many characters; a few lines of them can stand for terabytes.
_MAX_REPEATED = 5_000_000


def _value_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
    """A number or boolean; the text itself where it only looks like one (``0x_``, thousands of digits)."""
    kind = node.tag.rpartition(":")[2]
    try:
        return getattr(loader, f"construct_yaml_{kind}")(node)
    except (ValueError, LookupError, OverflowError):
        return node.value


_RESOLVER = yaml.resolver.Resolver()
# Longer ones are no keys of a suite.
_LONGEST_KEY = 50
_FAST: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _tag(loader: Any, kind: type[yaml.Node], value: Any, implicit: tuple[bool, bool]) -> Any:
    """The tag of a node; most scalars are texts, as their first character tells."""
    if kind is not yaml.ScalarNode:
        return _FAST.resolve(loader, kind, value, implicit)
    if not (implicit[0] and value[:1] in loader.yaml_implicit_resolvers):
        return _STRING_TAG
    return _plain_tag(value) if len(value) <= _LONGEST_KEY else _FAST.resolve(loader, kind, value, implicit)


@lru_cache(1024)
def _plain_tag(value: str) -> Any:
    """The tag of a scalar without quotes; keys come again and again."""
    return _RESOLVER.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]


_LOADER: type[Any] = type("_Loader", (_FAST,), {"resolve": _tag})
for _kind in ("int", "float", "bool"):
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _value_or_text)
for _kind in ("timestamp", "value"):
    # No key of any suite is a date, and "=" is an answer like any other.
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _LOADER.construct_yaml_str)


def read_yaml(
    path: Path,
    *,
    shown_as: str | None = None,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
) -> Document:
    """Read one YAML file.

    Args:
        path: the file.
        shown_as: its name in messages; the path itself if not given.
        environment: where ``${VAR}`` is looked up; the process environment if not given.
        unset: receives the problems with variables, so that others in the file can be named beside them.

    Raises:
        ConfigError: unreadable file, broken YAML, or unset variables (all of them at once).
    """
    name = shown_as or str(path)
    return parse_yaml(sealed_text(path, name), name, path.resolve().parent, environment=environment, unset=unset)


def sealed_text(path: Path, name: str) -> str:
    """The text of a file for ``parse_yaml``; its name is for messages.

    Raises:
        ConfigError: it cannot be read.
    """
    return _seal(read_text(path, name))


def parse_yaml(
    text: str,
    name: str,
    directory: Path,
    *,
    first_line: int = 0,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
) -> Document:
    """As ``read_yaml``, of a ``sealed_text`` or the part of it that begins at a line (from 0) of the file."""
    try:
        _check_shape(name, text)
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            variables = Variables(name, os.environ if environment is None else environment, _SEALED)
            values = _Values(loader, variables if _OPEN in text else None, first_line)
            data = values.of(root) if root is not None else None
            if unset is not None:
                unset.extend(variables.problems)
            elif variables.problems:
                raise ConfigError(variables.problems)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_yaml_problem(name, error)) from None
    except yaml.reader.ReaderError:
        raise ConfigError(_character_problem(name, text)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(Problem(f"not valid YAML: {error}", file=name)) from None
    return Document(
        file=name,
        directory=directory,
        data=data,
        secrets=frozenset(variables.secrets),
        warnings=tuple(f"{name}{warning}" for warning in values.duplicates),
        positions=_NodePositions(root, first_line),
    )


def _seal(text: str) -> str:
    """The text with the braces of variables replaced by characters that mean nothing to YAML."""
    if "${" not in text:
        return text
    plain = text.replace(_OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    return substituted(VARIABLE, lambda match: f"${_OPEN}{match.group()[2:-1]}{_CLOSE}", plain)


def _unseal(text: str) -> str:
    """The text as it was written."""
    return text.replace(_OPEN, "{").replace(_CLOSE, "}")


def _check_shape(name: str, text: str) -> None:
    """Refuse what would crash or choke the parser: endless nesting, anchors inside themselves, alias bombs.

    Raises:
        ConfigError: with the line at which it is too much.
    """
    if _is_shallow(text):
        return
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    characters = 0  # of the document with every alias written out
    for event in yaml.parse(text, Loader=_LOADER):
        problem = ""
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, characters))
            characters += 1
            problem = f"nested more than {_MAX_DEPTH} levels deep" if len(opened) > _MAX_DEPTH else ""
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = characters - before
        elif isinstance(event, yaml.ScalarEvent):
            characters += len(event.value) + 1
            sizes[event.anchor] = len(event.value) + 1
        elif isinstance(event, yaml.AliasEvent):
            characters += sizes.get(event.anchor, 0)
            if any(anchor == event.anchor for anchor, _ in opened):
                problem = f"the anchor &{event.anchor} contains itself"
        if characters > len(text) + _MAX_REPEATED:
            problem = "aliases repeat too much text"
        if problem:
            mark = event.start_mark
            raise ConfigError(Problem(problem, file=name, line=mark.line + 1 if mark else None))


def _is_shallow(text: str) -> bool:
    """Whether a text can be neither deep nor repeat itself, which is true of nearly all and seen at once."""
    if is_tied(text):
        return False
    # A collection in block style begins further right than the one around it, or beside it, if one of them is a list.
    column = max(map(len, _BEFORE_CONTENT.findall(text)))
    return 2 * (column + 1) + text.count("[") + text.count("{") <= _MAX_DEPTH


def is_tied(text: str) -> bool:
    """Whether anchors and aliases may tie parts of a text together; tags count as well."""
    return _MARKED.search(text) is not None


class _Values:
    """Makes Python values of nodes: the plain ones, which are nearly all, here; the others as PyYAML does.

    Args:
        loader: PyYAML's, which knows every tag.
        variables: replaces them; ``None`` where the text has none.
        first_line: of the file at which the text begins, from 0.

    Attributes:
        duplicates: what there is to say about keys that are given twice.
    """

    def __init__(self, loader: Any, variables: Variables | None, first_line: int) -> None:
        self._loader = loader
        self._first_line = first_line
        self._variables = variables
        # Aliases share nodes, and so their values.
        self._made: dict[int, Any] = {}
        self.duplicates: list[str] = []

    def of(self, node: yaml.Node) -> Any:
        """The value of a node; the depth was limited when the text was parsed."""
        if isinstance(node, yaml.ScalarNode):
            if self._variables is not None:
                self._replace(node, self._variables)
            return node.value if node.tag == _STRING_TAG else self._loader.construct_object(node, deep=True)
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._collection(node)
        return made

    def _replace(self, node: yaml.ScalarNode, variables: Variables) -> None:
        """Replace the variables in a scalar, which then is a text."""
        if _OPEN in node.value:
            # What could not be replaced is a problem by now, and wears its own braces again.
            node.value = _unseal(variables.replace(node.value, self._line(node.start_mark)))
            node.tag = _STRING_TAG

    def _line(self, mark: yaml.Mark) -> int:
        return self._first_line + int(mark.line) + 1

    def _collection(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE_TAG:
            return [self.of(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            self._look_at_keys(node)
            # Merge keys ("<<") and keys that are no texts have rules of their own.
            if node.tag == _MAPPING_TAG and all(map(_is_text, node.value)):
                return {key.value: self.of(value) for key, value in node.value}
        self._prepare(node)
        return self._loader.construct_object(node, deep=True)

    def _prepare(self, node: yaml.Node) -> None:
        """Replace variables and look at keys in all that PyYAML makes values of."""
        inner = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        for value in inner:
            if id(value) in self._made:
                continue
            # What it is made into is not needed: PyYAML makes it again.
            self.of(value)

    def _look_at_keys(self, node: yaml.MappingNode) -> None:
        if self._variables is not None:
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # Keys are never replaced.
                    key.value = _unseal(key.value)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            self._name_duplicates(node)

    def _name_duplicates(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    line = self._line(key.start_mark)
                    self.duplicates.append(f":{line}: key {key.value!r} is given twice; the last one counts")
                seen.add(key.value)


def _is_text(entry: tuple[yaml.Node, yaml.Node]) -> bool:
    key, _ = entry
    return key.tag == _STRING_TAG and isinstance(key, yaml.ScalarNode)


@dataclass(frozen=True)
class _NodePositions:
    """Positions by the nodes of PyYAML, whose text begins at a line of the file (from 0)."""

    root: Any
    first_line: int

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest parent that exists."""
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
        """How a scalar is written."""
        node = self.root
        for step in path:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, yaml.ScalarNode) else None


def _child(node: Any, step: str | int) -> tuple[yaml.Mark, Any] | None:
    if isinstance(node, yaml.MappingNode):
        # The last of repeated keys is the one that counts.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark, item
    return None


def _character_problem(name: str, text: str) -> Problem:
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    character = f"the character U+{ord(found.group()):04X}" if found else "a character"
    line = text.count("\n", 0, found.start()) + 1 if found else None
    return Problem(f"not valid YAML: {character} is not allowed", file=name, line=line)


def _yaml_problem(name: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    parts: Iterator[str] = (part for part in (error.context, error.problem) if part)
    said = ", ".join(parts)
    hint = next((hint for words, hint in _YAML_HINTS if words in said), None)
    if "quoted scalar" in said and error.context_mark:
        hint = f"the quote that opens in line {error.context_mark.line + 1} is never closed"
    return Problem(
        f"not valid YAML: {said}" + (f" ({hint})" if hint else ""),
        file=name,
        line=mark.line + 1 if mark else None,
    )
