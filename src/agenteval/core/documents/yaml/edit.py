"""Replaces single texts in a YAML file, and leaves every other byte of it as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from agenteval.core.documents.document import KeyPath
from agenteval.core.documents.edit import (
    NotReplaceableError,
    Replacements,
    double_quoted,
    line_end,
    without_variables,
)
from agenteval.core.documents.yaml.limits import check_shape
from agenteval.core.documents.yaml.values import STRING_TAG, seal

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = yaml.resolver.Resolver()
_BYTE_ORDER_MARK = "\ufeff"
_HEADER = re.compile(r"[|>][0-9+-]*")
_PLAIN_TAGS = (True, False)
_BLOCKS = frozenset({"|", ">"})

_Render = Callable[[str, yaml.ScalarEvent, str], str]


def with_texts(text: str, name: str, texts: Replacements) -> str:
    """Return a YAML text in which some values are other texts; styles of quotes, comments and order stay.

    Args:
        text: the content of the file.
        name: its name in messages.
        texts: the new texts.

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
    for render in (_in_same_style, _in_double_quotes):
        changed = _replaced(body, scalars, render)
        if _same_but(before, changed, scalars):
            return mark + changed
    raise NotReplaceableError((), "cannot be changed without a change of its other values")


def _events(text: str) -> list[yaml.Event]:
    """Return the events of a text; variables have the same length in it as in the file.

    Raises:
        NotReplaceableError: it is not valid YAML.
    """
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
    """Return the event of a value that is written as one separate text.

    Raises:
        NotReplaceableError: it is not.
    """
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


def _replaced(text: str, scalars: Mapping[int, tuple[yaml.ScalarEvent, str]], render: _Render) -> str:
    """Return the text with other scalars: each with its event and its new text."""
    pieces, begin = [], 0
    for _, (event, new) in sorted(scalars.items()):
        span = _span(event)
        pieces += [text[begin : span.start], render(text, event, new)]
        begin = span.stop
    return "".join((*pieces, text[begin:]))


def _same_but(
    before: Sequence[yaml.Event], changed: str, scalars: Mapping[int, tuple[yaml.ScalarEvent, str]]
) -> bool:
    """Return whether a text has the same events as before, but for the texts of some scalars."""
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
    """Return a text in double quotes, which can contain everything."""
    written = source[_span(event)]
    if event.style not in _BLOCKS:
        return double_quoted(text)
    comment = _HEADER.sub("", written.splitlines()[0], count=1).rstrip()
    return double_quoted(text) + comment + _end_of_block(written)


def _in_same_style(source: str, event: yaml.ScalarEvent, text: str) -> str:
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
