"""Reads YAML files so that every value knows its line, its source text, and which secrets it holds.

``${VAR}`` and ``${VAR:-default}`` are replaced in parsed scalar values only: a value from the
environment stays one text and can never change the structure of a file. As in a shell, the default
also stands in for an empty variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import ConfigError, Problem

KeyPath = Sequence[str | int]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# While YAML is parsed, variables wear other braces: inside {…} and […] theirs would be YAML's.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SEALED = re.compile(_VARIABLE.pattern.replace(r"\{", _OPEN).replace(r"\}", _CLOSE).replace("[^}]", f"[^{_CLOSE}]"))
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_STRING_TAG = "tag:yaml.org,2002:str"
# What the parser says, and what people most often did.
_YAML_HINTS = (
    ("cannot start any token", "indent with blanks, not tabs; a text that begins with @, ` or % needs quotes"),
    ("tab character", "indent with blanks, not tabs"),
    ("mapping values are not allowed", "a text that contains ': ' needs quotes"),
    ("expected '-' indicator", "is a line indented too little?"),
    ("expected <block end>", "is a line indented too little or too much?"),
    ("expected key", "is a line indented too little or too much?"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
# Deeper files crash the parser itself.
_MAX_DEPTH = 100
# Aliases may repeat so many characters; a few lines of them can stand for terabytes.
_MAX_REPEATED = 5_000_000


def _value_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
    """A number or boolean; the text itself where it only looks like one (``0x_``, thousands of digits)."""
    kind = node.tag.rpartition(":")[2]
    try:
        return getattr(loader, f"construct_yaml_{kind}")(node)
    except (ValueError, LookupError, OverflowError):
        return node.value


_LOADER: type[Any] = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
for _kind in ("int", "float", "bool"):
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _value_or_text)
for _kind in ("timestamp", "value"):
    # No key of any suite is a date, and "=" is an answer like any other.
    _LOADER.add_constructor(f"tag:yaml.org,2002:{_kind}", _LOADER.construct_yaml_str)


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        file: the path as the user knows it, for messages.
        directory: where relative paths in the file start.
        data: plain Python values, variables replaced.
        secrets: values of secret-looking environment variables that were used.
        warnings: what is suspicious but no error.
    """

    file: str
    directory: Path
    data: Any
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()
    _root: Any = field(default=None, repr=False)

    def line(self, path: KeyPath) -> int | None:
        """The 1-based line of a key, or of the nearest parent that exists."""
        node = self._root
        line: int | None = None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line + 1
        return line

    def source_text(self, path: KeyPath) -> str | None:
        """How a scalar is written in the file (``60.940`` stays ``60.940``); ``None`` for anything else."""
        node = self._root
        for step in path:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, yaml.ScalarNode) else None

    def as_written(self, value: Any, path: KeyPath) -> Any:
        """A value at a path, with its numbers and booleans as the text that is written for them."""
        if isinstance(value, list):
            return [self.as_written(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.as_written(item, (*path, key)) for key, item in value.items()}
        text = None if value is None else self.source_text(path)
        return value if text is None else text

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at a key of this document."""
        return Problem(message, file=self.file, line=self.line(path), path=dotted(path))


def dotted(path: KeyPath) -> str:
    """``("test_cases", 0, "input")`` as ``test_cases[0].input``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


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
    text = _seal(read_text(path, name))
    try:
        _check_shape(name, text)
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            variables = _Variables(name, os.environ if environment is None else environment)
            duplicates: list[str] = []
            if root is not None:
                _prepare(root, variables.replace, lambda key, mark: duplicates.append(_duplicate(key, mark)))
            if unset is not None:
                unset.extend(variables.problems)
            elif variables.problems:
                raise ConfigError(variables.problems)
            data = loader.construct_document(root) if root is not None else None
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
        directory=path.resolve().parent,
        data=data,
        secrets=frozenset(variables.secrets),
        warnings=tuple(f"{name}{warning}" for warning in duplicates),
        _root=root,
    )


def read_text(path: Path, name: str) -> str:
    """The file as text.

    Raises:
        ConfigError: missing, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(Problem("no such file", file=name)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"not UTF-8 text (byte {error.start})", file=name)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=name)) from None


def _seal(text: str) -> str:
    """The text with the braces of variables replaced by characters that mean nothing to YAML."""
    if "${" not in text:
        return text
    plain = text.replace(_OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    return _VARIABLE.sub(lambda match: f"${_OPEN}{match.group()[2:-1]}{_CLOSE}", plain)


def _unseal(text: str) -> str:
    """The text as it was written."""
    return text.replace(_OPEN, "{").replace(_CLOSE, "}")


def looks_secret(variable: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret."""
    return _SECRET_NAME.search(variable) is not None


class _Variables:
    """Replaces variables and remembers what was missing and what was secret."""

    def __init__(self, file: str, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment
        self.problems: list[Problem] = []
        self.secrets: set[str] = set()

    def replace(self, node: yaml.ScalarNode) -> None:
        if _OPEN not in node.value:
            return
        line = node.start_mark.line + 1

        def value(match: re.Match[str]) -> str:
            variable, default = match.group(1), match.group(2)
            found = self._environment.get(variable)
            if not found and default is not None:
                return default
            if found is None:
                problem = f"is not set; set it, or write ${{{variable}:-default}}"
            elif _SURROGATE.search(found):
                problem = "is not UTF-8 text"
            else:
                problem = ""
            if found is None or problem:
                message = f"environment variable {variable} {problem}"
                self.problems.append(Problem(message, file=self._file, line=line))
                return _unseal(match.group())
            if found and looks_secret(variable):
                self.secrets.add(found)
            return found

        node.value = _SEALED.sub(value, node.value)
        node.tag = _STRING_TAG


def _check_shape(name: str, text: str) -> None:
    """Refuse what would crash or choke the parser: endless nesting, anchors inside themselves, alias bombs.

    Raises:
        ConfigError: with the line at which it is too much.
    """
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


def _prepare(
    root: Any, replace: Callable[[yaml.ScalarNode], None], duplicate: Callable[[str, yaml.Mark], None]
) -> None:
    """Visit every value once, in order (aliases share nodes): replace variables, notice repeated keys."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            replace(node)
        elif isinstance(node, yaml.SequenceNode):
            stack.extend(reversed(node.value))
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # Keys are never replaced.
                    key.value = _unseal(key.value)
                    if key.value in keys and key.value != "<<":
                        duplicate(key.value, key.start_mark)
                    keys.add(key.value)
            stack.extend(value for _, value in reversed(node.value))


def _duplicate(key: str, mark: yaml.Mark) -> str:
    return f":{mark.line + 1}: key {key!r} is given twice; the last one counts"


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
