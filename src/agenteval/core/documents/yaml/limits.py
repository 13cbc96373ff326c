"""Rejects YAML that would crash or overload its parser."""

from __future__ import annotations

import re
from typing import Any

import yaml

from agenteval.core.errors import ConfigError, Kind, Problem

# Deeper files crash the parser itself.
_MAX_DEPTH = 100
# Anchors, aliases and tags.
_MARKED = re.compile(r"(?<![^\s\[{,])[&*!](?=\S)")
# Characters that may precede a collection in a line.
_BEFORE_CONTENT = re.compile(r"^[ \t?:-]*", re.MULTILINE)
# Characters that aliases may repeat; without a limit, a few lines expand to terabytes.
_MAX_REPEATED = 5_000_000
#: Characters besides the line feed with which YAML ends lines.
OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


def check_shape(name: str, text: str, loader: type[Any]) -> None:
    """Reject excessive nesting, recursive anchors and aliases that expand to huge texts.

    Args:
        name: name of the file in messages.
        text: text of the file.
        loader: the YAML loader class that will read the text.

    Raises:
        ConfigError: a limit is exceeded; the error contains the line.
    """
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
    if is_tied(text) or OTHER_BREAKS.search(text):
        return False
    # A collection in block style is indented further than its parent, or equally if one of them is a list.
    column = max(map(len, _BEFORE_CONTENT.findall(text)))
    # A collection in brackets may contain another one without brackets: [a: b].
    brackets = text.count("[") + text.count("{")
    return 2 * (column + 1 + brackets) <= _MAX_DEPTH


def is_tied(text: str) -> bool:
    """Return whether a text may contain anchors, aliases or tags."""
    return any(mark in text for mark in "&*!") and _MARKED.search(text) is not None
