"""Replaces single texts in YAML and TOML files, and leaves every other byte of them as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import yaml

from agenteval.core.document import VARIABLE, KeyPath, dotted
from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass
from agenteval.core.toml import find_positions, parse_toml
from agenteval.core.yaml import STRING_TAG, check_shape, seal

#: The new text of each value, by its key path.
Replacements = Mapping[tuple[str | int, ...], str]


class NotReplaceableError(AgentEvalError):
    """A text cannot be replaced safely.

    Args:
        keys: its key path; empty if the file as a whole is the reason.
        why: continues "it".
        line: 1-based line of the value.
    """

    def __init__(self, keys: KeyPath, why: str, line: int | None = None) -> None:
        self.keys, self.why, self.line = keys, why, line
        super().__init__(f"{dotted(keys)} {why}".strip())


def double_quoted(text: str) -> str:
    """Return a text in double quotes, on one line, as YAML and TOML both read it."""
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def line_end(source: str) -> str:
    """Return how the lines of a text end: those of its first line."""
    found = re.search("\r?\n", source)
    return found.group() if found else "\n"


def without_variables(source: str, text: str, keys: KeyPath, line: int) -> None:
    """Check that neither the old nor the new text contains a variable, which the reader of the file would replace.

    Raises:
        NotReplaceableError: one of them does.
    """
    if VARIABLE.search(source):
        raise NotReplaceableError(keys, "contains a variable like ${NAME}", line)
    if (found := VARIABLE.search(text)) is not None:
        raise NotReplaceableError(keys, f"cannot take the answer, which contains the variable {found.group()}", line)


_BYTE_ORDER_MARK = "\ufeff"
_BACKSLASH = "\\"


def with_toml_texts(text: str, texts: Replacements) -> str:
    """Return a TOML text in which some values are other texts; styles of quotes, comments and order stay.

    Raises:
        NotReplaceableError: a value is not written as a text, or the file is not valid.
    """
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    body = text.removeprefix(_BYTE_ORDER_MARK)
    before = _parsed(body)
    positions = find_positions(body)
    spans: dict[tuple[int, int], str] = {}
    for keys, new in texts.items():
        span = positions.texts.get(keys)
        line = positions.line(keys)
        if span is None:
            raise NotReplaceableError(keys, "is not written here as one text", line)
        without_variables(body[slice(*span)], new, keys, line or 1)
        spans[span] = new
    changed = _toml_replaced(body, spans)
    if repr(_parsed(changed)) != repr(_with(before, texts)):
        raise NotReplaceableError((), "cannot be changed without a change of its other values")
    return mark + changed


def _parsed(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except (ValueError, RecursionError):
        raise NotReplaceableError((), "is not valid TOML") from None


def _with(data: Any, texts: Replacements) -> Any:
    """Return parsed data in which some values are other texts; the data themselves are changed."""
    for keys, new in texts.items():
        parent = data
        for step in keys[:-1]:
            parent = parent[step]
        parent[keys[-1]] = new
    return data


def _toml_replaced(text: str, spans: Mapping[tuple[int, int], str]) -> str:
    pieces, begin = [], 0
    for (start, end), new in sorted(spans.items()):
        pieces += [text[begin:start], _in_same_toml_style(text[start:end], new)]
        begin = end
    return "".join((*pieces, text[begin:]))


def _in_same_toml_style(written: str, text: str) -> str:
    """Return a text with the quotes of another one if they can contain it, else in double quotes."""
    lines = text.split("\n")
    is_plain = all(line.replace("\t", "").isprintable() for line in lines)
    is_literal = is_plain and "'" not in text
    end = line_end(written)
    # A line break after the opening quotes does not belong to the text.
    if written.startswith("'''") and is_literal:
        return f"'''{_first_break(written, text)}{end.join(lines)}'''"
    if written.startswith('"""') and is_plain and '"' not in text:
        return f'"""{_first_break(written, text)}{end.join(lines).replace(_BACKSLASH, _BACKSLASH * 2)}"""'
    if written.startswith("'") and is_literal and len(lines) == 1:
        return f"'{text}'"
    return double_quoted(text)


def _first_break(written: str, text: str) -> str:
    """Return the line break after the opening quotes, which a text that begins with an empty line needs."""
    begins_below = written[3:].startswith(("\n", "\r\n"))
    return line_end(written) if begins_below or text.startswith("\n") else ""


_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = yaml.resolver.Resolver()
_HEADER = re.compile(r"[|>][0-9+-]*")
_PLAIN_TAGS = (True, False)
_BLOCKS = frozenset({"|", ">"})

_Render = Callable[[str, yaml.ScalarEvent, str], str]


def with_yaml_texts(text: str, name: str, texts: Replacements) -> str:
    """Return a YAML text in which some values are other texts; styles of quotes, comments and order stay.

    Raises:
        ConfigError: the file has too deep or too large structures.
        NotReplaceableError: a value is not written as one separate text, or the file is not valid.
    """
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    body = text.removeprefix(_BYTE_ORDER_MARK)
    check_shape(name, seal(body), _LOADER)
    before = _events(body)
    places = _Walk(before, texts.keys()).places()
    scalars: dict[int, tuple[yaml.ScalarEvent, str]] = {}
    for keys, new in texts.items():
        event = _replaceable(before, places, keys)
        without_variables(body[_span(event)], new, keys, _line(event))
        scalars[places[keys]] = (event, new)
    for render in (_in_same_yaml_style, _in_double_quotes):
        changed = _yaml_replaced(body, scalars, render)
        if _same_but(before, changed, scalars):
            return mark + changed
    raise NotReplaceableError((), "cannot be changed without a change of its other values")


def _events(text: str) -> list[yaml.Event]:
    """Return the events of a text; variables have the same length in it as in the file."""
    try:
        return list(yaml.parse(seal(text), Loader=_LOADER))
    except yaml.YAMLError:
        raise NotReplaceableError((), "is not valid YAML") from None


def _span(event: yaml.Event) -> slice:
    begin, end = event.start_mark, event.end_mark
    if begin is None or end is None:
        raise ValueError("the parser gave no positions")
    return slice(begin.index, end.index)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


@dataclass
class _Walk:
    """Finds the events of key paths; of a key that is given twice, the last one counts."""

    events: Sequence[yaml.Event]
    wanted: Collection[KeyPath]

    def places(self) -> dict[tuple[str | int, ...], int]:
        """Return the index of the first event of each wanted value that is written in the file."""
        self._found: dict[tuple[str | int, ...], int] = {}
        self._beginnings = {keys[:end] for keys in map(tuple, self.wanted) for end in range(len(keys) + 1)}
        self._at = next((at for at, event in enumerate(self.events) if isinstance(event, yaml.NodeEvent)), 0)
        if len(self.events) > self._at and isinstance(self.events[self._at], yaml.NodeEvent):
            self._value(())
        return self._found

    def _value(self, path: tuple[str | int, ...] | None) -> None:
        """Pass one value; ``None`` for a path that leads to nothing wanted."""
        event = self.events[self._at]
        path = path if path in self._beginnings else None
        if path is not None:
            self._found = {keys: at for keys, at in self._found.items() if keys[: len(path)] != path}
            self._found[path] = self._at
        self._at += 1
        if isinstance(event, yaml.MappingStartEvent):
            self._mapping(path)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._sequence(path)

    def _mapping(self, path: tuple[str | int, ...] | None) -> None:
        while not isinstance(self.events[self._at], yaml.MappingEndEvent):
            key = self.events[self._at]
            self._value(None)
            inner = (*path, key.value) if path is not None and isinstance(key, yaml.ScalarEvent) else None
            self._value(inner)
        self._at += 1

    def _sequence(self, path: tuple[str | int, ...] | None) -> None:
        index = 0
        while not isinstance(self.events[self._at], yaml.SequenceEndEvent):
            self._value((*path, index) if path is not None else None)
            index += 1
        self._at += 1


def _replaceable(
    events: Sequence[yaml.Event], places: dict[tuple[str | int, ...], int], keys: tuple[str | int, ...]
) -> yaml.ScalarEvent:
    """Return the event of a value that is written as one separate text."""
    line = None
    for end in range(len(keys) + 1):
        place = places.get(keys[:end])
        if place is None:
            raise NotReplaceableError(keys, "is not written here as one text", line)
        event = events[place]
        line = _line(event)
        if getattr(event, "anchor", None):
            raise NotReplaceableError(keys, f"depends on the anchor {event.anchor!r}", line)  # type: ignore[attr-defined]
        if getattr(event, "tag", None):
            raise NotReplaceableError(keys, f"has the tag {event.tag}", line)  # type: ignore[attr-defined]
    if not isinstance(event, yaml.ScalarEvent) or (not event.value and not event.style):
        raise NotReplaceableError(keys, "is not written here as one text", line)
    return event


def _yaml_replaced(text: str, scalars: Mapping[int, tuple[yaml.ScalarEvent, str]], render: _Render) -> str:
    pieces, begin = [], 0
    for _, (event, new) in sorted(scalars.items()):
        span = _span(event)
        pieces += [text[begin : span.start], render(text, event, new)]
        begin = span.stop
    return "".join((*pieces, text[begin:]))


def _same_but(
    before: Sequence[yaml.Event], changed: str, scalars: Mapping[int, tuple[yaml.ScalarEvent, str]]
) -> bool:
    try:
        after = _events(changed)
    except NotReplaceableError:
        return False
    if len(before) != len(after):
        return False
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if place not in scalars:
            if _content(old) != _content(new):
                return False
        elif not _is_text(new, scalars[place][1]):
            return False
    return True


def _content(event: yaml.Event) -> list[Any]:
    names = ("anchor", "tag", "implicit", "value", "style", "flow_style", "explicit", "version", "tags")
    return [type(event), *(getattr(event, name, None) for name in names)]


def _is_text(event: yaml.Event, text: str) -> bool:
    if not isinstance(event, yaml.ScalarEvent) or event.value != seal(text) or event.anchor or event.tag:
        return False
    return bool(event.style) or _RESOLVER.resolve(yaml.ScalarNode, text, _PLAIN_TAGS) == STRING_TAG  # type: ignore[no-untyped-call]


def _in_double_quotes(source: str, event: yaml.ScalarEvent, text: str) -> str:
    written = source[_span(event)]
    if event.style not in _BLOCKS:
        return double_quoted(text)
    comment = _HEADER.sub("", written.splitlines()[0], count=1).rstrip()
    return double_quoted(text) + comment + _end_of_block(written)


def _in_same_yaml_style(source: str, event: yaml.ScalarEvent, text: str) -> str:
    """Return a text in the style of another one if that can contain it, else in double quotes."""
    found: str | None = None
    if event.style in _BLOCKS:
        found = _block(source[_span(event)], text)
    elif text.isprintable() and event.style == "'":
        found = "'{}'".format(text.replace("'", "''"))
    elif not event.style and text.isprintable() and _is_plain(text):
        found = text
    return _in_double_quotes(source, event, text) if found is None else found


def _is_plain(text: str) -> bool:
    """Return whether a text needs no quotes, on a separate line and in brackets."""
    try:
        found = [
            event for event in yaml.parse(f"[{seal(text)}]", Loader=_LOADER) if isinstance(event, yaml.NodeEvent)
        ]
    except yaml.YAMLError:
        return False
    return len(found) == 2 and _is_text(found[1], text)


def _block(written: str, text: str) -> str | None:
    """Return a text as a literal block that is indented like another block; ``None`` if it cannot be one.

    A folded block would break the lines of a text elsewhere, so it becomes literal too.
    """
    header, _, rest = written.partition("\n")
    indent = next((line[: len(line) - len(line.lstrip(" "))] for line in rest.split("\n") if line.strip()), "")
    content = text.removesuffix("\n").split("\n")
    if not indent or not all(line.replace("\t", "").isprintable() for line in content):
        return None
    # Without an explicit number, the first line shows the indentation.
    if not content[0].strip() or content[0][0] in " \t" or not content[-1].strip():
        return None
    first = _HEADER.sub("|" if text.endswith("\n") else "|-", header.rstrip("\r"), count=1)
    lines = (first, *(indent + line if line else "" for line in content))
    return line_end(written).join(lines) + _end_of_block(written)


def _end_of_block(written: str) -> str:
    """Return the line breaks and empty lines after a block, which belong to its source text."""
    return written[len(written.rstrip(" \t\r\n")) :]
