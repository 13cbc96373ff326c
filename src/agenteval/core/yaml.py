"""Reads YAML files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from agenteval.core.document import (
    VARIABLE,
    Document,
    KeyPath,
    KeyPatterns,
    TextPlace,
    Variables,
    read_text,
    substituted,
)
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field

# Deeper files crash the parser itself.
_MAX_DEPTH = 100
# Anchors, aliases and tags.
_MARKED = re.compile(r"(?<![^\s\[{,])[&*!](?=\S)")
# Characters that may precede a collection in a line.
_BEFORE_CONTENT = re.compile(r"^[ \t?:-]*", re.MULTILINE)
# Characters that aliases may repeat; without a limit, a few lines expand to terabytes.
_MAX_REPEATED = 5_000_000
# Characters besides the line feed with which YAML ends lines.
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


def check_shape(name: str, text: str, loader: type[Any]) -> None:
    """Reject excessive nesting, recursive anchors and aliases that expand to huge texts."""
    if _is_shallow(text):
        return
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    characters = 0  # Characters of the document with all aliases expanded.
    for event in yaml.parse(text, Loader=loader):
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
            raise ConfigError(Problem(problem, file=name, line=mark.line + 1 if mark else None, kind=Kind.SYNTAX))


def _is_shallow(text: str) -> bool:
    """Return whether a text is certainly shallow and without aliases. Most texts are, and the check is fast."""
    if _is_tied(text) or _OTHER_BREAKS.search(text):
        return False
    # A collection in block style is indented further than its parent, or equally if one of them is a list.
    column = max(map(len, _BEFORE_CONTENT.findall(text)))
    # A collection in brackets may contain another one without brackets: [a: b].
    brackets = text.count("[") + text.count("{")
    return 2 * (column + 1 + brackets) <= _MAX_DEPTH


def _is_tied(text: str) -> bool:
    """Return whether a text may contain anchors, aliases or tags."""
    return any(mark in text for mark in "&*!") and _MARKED.search(text) is not None


# These characters replace the braces of variables while YAML is parsed.
OPEN, _CLOSE = "\ue000", "\ue001"

SEALED = re.compile(VARIABLE.pattern.replace(r"\{", OPEN).replace(r"\}", _CLOSE).replace("[^}]", f"[^{_CLOSE}]"))


def seal(text: str) -> str:
    """Replace the braces of variables with characters that have no meaning in YAML."""
    if "${" not in text:
        return text
    plain = text.replace(OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    return substituted(VARIABLE, lambda match: f"${OPEN}{match.group()[2:-1]}{_CLOSE}", plain)


def unseal(text: str) -> str:
    """Restore the original text."""
    return text.replace(OPEN, "{").replace(_CLOSE, "}")


STRING_TAG = "tag:yaml.org,2002:str"

_SEQUENCE_TAG = "tag:yaml.org,2002:seq"

_MAPPING_TAG = "tag:yaml.org,2002:map"


class Values:
    """Builds Python values from nodes. PyYAML builds the values of special nodes only.

    Args:
        variables: replaces variables; ``None`` if the text has none.
        places: the place of every scalar with variables, by the id of its node.

    Attributes:
        duplicates: keys that are given again, with the lines of the first time and of this one.
    """

    def __init__(
        self, loader: Any, variables: Variables | None, places: Mapping[int, TextPlace] | None = None
    ) -> None:
        self._loader = loader
        self._variables = variables
        self._places = places or {}
        # Aliases share nodes and therefore values.
        self._made: dict[int, Any] = {}
        self.duplicates: list[tuple[str, int, int]] = []

    def of(self, node: yaml.Node) -> Any:
        """Return the value of a node. The parser has limited the nesting, so the recursion is safe."""
        if isinstance(node, yaml.ScalarNode):
            if self._variables is not None:
                self._replace(node, self._variables)
            return node.value if node.tag == STRING_TAG else self._loader.construct_object(node, deep=True)
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._collection(node)
        return made

    def _replace(self, node: yaml.ScalarNode, variables: Variables) -> None:
        if OPEN in node.value:
            # An unset variable is recorded as a problem and gets its braces back.
            node.value = unseal(
                variables.replace(
                    node.value, int(node.start_mark.line) + 1, self._places.get(id(node), TextPlace(()))
                )
            )
            node.tag = STRING_TAG

    def _collection(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE_TAG:
            return [self.of(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            self._look_at_keys(node)
            # PyYAML handles merge keys ("<<") and keys that are not texts.
            if node.tag == _MAPPING_TAG and all(map(_is_text, node.value)):
                return {key.value: self.of(value) for key, value in node.value}
        self._prepare(node)
        return self._loader.construct_object(node, deep=True)

    def _prepare(self, node: yaml.Node) -> None:
        """Replace variables and check keys in nodes that PyYAML converts."""
        inner = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        for value in inner:
            if id(value) not in self._made:
                # The value is discarded: PyYAML builds it again.
                self.of(value)

    def _look_at_keys(self, node: yaml.MappingNode) -> None:
        if self._variables is not None:
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # Keys are never replaced.
                    key.value = unseal(key.value)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            self._name_duplicates(node)

    def _name_duplicates(self, node: yaml.MappingNode) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = int(key.start_mark.line) + 1
                if key.value in first and key.value != "<<":
                    self.duplicates.append((key.value, first[key.value], line))
                first.setdefault(key.value, line)


def _is_text(entry: tuple[yaml.Node, yaml.Node]) -> bool:
    key, _ = entry
    return key.tag == STRING_TAG and isinstance(key, yaml.ScalarNode)


_MERGE_TAG = "tag:yaml.org,2002:merge"


def find_places(root: yaml.Node | None, credentials: KeyPatterns) -> dict[int, TextPlace]:
    """Return the place of every scalar with variables, by the id of its node.

    A node that aliases put at several paths takes credentials only if all of these paths do.
    """
    search = _PlaceSearch()
    if root is not None:
        search.visit(root, (), credentials)
    return search.found


@dataclass
class _PlaceSearch:
    found: dict[int, TextPlace] = field(default_factory=dict)
    # A node with the patterns that are left there; aliases lead to the same pair on many paths.
    seen: set[tuple[int, KeyPatterns]] = field(default_factory=set)

    def visit(self, node: yaml.Node, path: tuple[str | int, ...], credentials: KeyPatterns) -> None:
        """Record the texts with variables below a node."""
        if isinstance(node, yaml.ScalarNode):
            known = self.found.get(id(node))
            if OPEN in node.value and (known is None or (known.takes_credentials and not credentials.match)):
                self.found[id(node)] = TextPlace(path, credentials.match)
            return
        if (id(node), credentials) in self.seen:
            return
        self.seen.add((id(node), credentials))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*path, index), credentials.after(index))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.tag == _MERGE_TAG:
                    # The mappings that a merge key copies here.
                    for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                        self.visit(merged, path, credentials)
                else:
                    step = key.value if isinstance(key, yaml.ScalarNode) else "?"
                    self.visit(value, (*path, step), credentials.after(step))


@dataclass(frozen=True)
class NodePositions:
    """Positions from PyYAML's nodes."""

    root: Any
    _keys: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest parent that exists."""
        node = self.root
        line: int | None = None
        for step in path:
            found = self._child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line + 1
        return line

    def source_text(self, path: KeyPath) -> str | None:
        """Return the source text of a scalar."""
        node = self.root
        for step in path:
            found = self._child(node, step)
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, yaml.ScalarNode) else None

    def _child(self, node: Any, step: str | int) -> tuple[yaml.Mark, Any] | None:
        if isinstance(node, yaml.MappingNode):
            keys = self._keys.get(id(node))
            if keys is None:
                # Of repeated keys, the last one is used.
                keys = {key.value: (key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
                self._keys[id(node)] = keys
            key, value = keys.get(str(step), (None, None))
            return None if key is None else (key.start_mark, value)
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
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
_LONGEST_KEY = 50  # no suite has longer ones
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
        shown_as: its name in messages; the path itself if not given.
        environment: the variables for ``${VAR}``; default: the process environment.
        unset: receives problems with variables, so that they are reported together with other problems.
        credentials: patterns of the keys that take credentials.
        unique: whether a key that is given twice is an error; otherwise the last one counts, with a warning.
    """
    name = shown_as or str(path)
    text = seal(read_text(path, name))
    return parse_yaml(
        text,
        name,
        path.resolve().parent,
        environment=environment,
        unset=unset,
        credentials=credentials,
        unique=unique,
    )


def parse_yaml(
    text: str,
    name: str,
    directory: Path,
    *,
    environment: Mapping[str, str] | None = None,
    unset: list[Problem] | None = None,
    credentials: Iterable[str] = (),
    unique: bool = False,
) -> Document:
    """Parse a text, like ``read_yaml``; only in a text of ``seal`` are variables replaced."""
    try:
        check_shape(name, text, _LOADER)
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            variables = Variables(name, environment, SEALED)
            if OPEN in text:
                values = Values(loader, variables, find_places(root, KeyPatterns.of(credentials)))
            else:
                values = Values(loader, None)
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
        positions=NodePositions(root),
    )


def _character_problem(name: str, text: str) -> Problem:
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    character = f"the character U+{ord(found.group()):04X}" if found else "a character"
    line = text.count("\n", 0, found.start()) + 1 if found else None
    return Problem(f"not valid YAML: {character} is not allowed", file=name, line=line, kind=Kind.SYNTAX)


def _yaml_problem(name: str, error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = ", ".join(filter(None, (error.context, error.problem)))
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
