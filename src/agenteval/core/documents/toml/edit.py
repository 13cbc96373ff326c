"""Replaces single texts in a TOML file, and leaves every other byte of it as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.core.documents.edit import (
    NotReplaceableError,
    Replacements,
    double_quoted,
    line_end,
    without_variables,
)
from agenteval.core.documents.toml.positions import find_positions
from agenteval.core.documents.toml.read import parse_toml

_BYTE_ORDER_MARK = "\ufeff"
_BACKSLASH = "\\"


def with_texts(text: str, texts: Replacements) -> str:
    """Return a TOML text in which some values are other texts; styles of quotes, comments and order stay.

    Args:
        text: the content of the file.
        texts: the new texts.

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
    changed = _replaced(body, spans)
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


def _replaced(text: str, spans: Mapping[tuple[int, int], str]) -> str:
    pieces, begin = [], 0
    for (start, end), new in sorted(spans.items()):
        pieces += [text[begin:start], _in_same_style(text[start:end], new)]
        begin = end
    return "".join((*pieces, text[begin:]))


def _in_same_style(written: str, text: str) -> str:
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
