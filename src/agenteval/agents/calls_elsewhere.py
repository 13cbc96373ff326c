"""Looks for tool calls in replies in which the configuration finds none."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agenteval.agents.tool_calls import ARGUMENTS, NAMES, RESULTS, is_call
from agenteval.core.masking import shortened
from agenteval.suite.json_path import JsonPath, Step

# Limits of a search, for replies of any size.
_MOST_REPLIES = 50
_MOST_VALUES = 5000
_MOST_ITEMS = 20
_SHOWN = 300
_SINGLE = re.compile("tool|call|function", re.IGNORECASE)


@dataclass
class CallsElsewhere:
    """The mapping that would have found the tool calls of replies.

    Attributes:
        mapping: YAML for the agent's definition; ``None`` if no reply contained calls elsewhere.
    """

    mapping: str | None = None
    _looked: int = 0

    def look_in(self, documents: Sequence[Any]) -> None:
        """Look for calls in a reply without any, unless a mapping is known."""
        if self.mapping is None and self._looked < _MOST_REPLIES:
            self._looked += 1
            self.mapping = find_mapping(documents)


def find_mapping(documents: Sequence[Any]) -> str | None:
    """Return the mapping, as YAML, that finds the tool calls in a reply; ``None`` if it contains none."""
    waiting: deque[tuple[Any, tuple[Step, ...]]] = deque((document, ()) for document in documents[:_MOST_ITEMS])
    for _ in range(_MOST_VALUES):
        if not waiting:
            break
        value, steps = waiting.popleft()
        found = _mapping_at(value, steps)
        if found is not None:
            return shortened(f"response: {{tool_calls: {found}}}", _SHOWN)
        if isinstance(value, dict):
            waiting.extend((item, (*steps, key)) for key, item in islice(value.items(), _MOST_VALUES))
        elif isinstance(value, list):
            waiting.extend((item, (*steps, None)) for item in value[:_MOST_ITEMS])
    return None


def _mapping_at(value: Any, steps: tuple[Step, ...]) -> str | None:
    """Return what leads to the calls in a value, if the value consists of calls."""
    if isinstance(value, dict):
        is_named = bool(steps) and isinstance(steps[-1], str) and _SINGLE.search(steps[-1])
        return _written(steps) if is_named and is_call(value) else None
    if not isinstance(value, list):
        return None
    for item in value[:_MOST_ITEMS]:
        if is_call(item):
            return _written(steps)
        parts = _parts(item)
        if parts is not None:
            return f"{{{', '.join([f'path: {_written(steps)}', *parts])}}}"
    return None


def _parts(item: Any) -> list[str] | None:
    """Return the paths of the parts of a call that is one level below an item of a list."""
    for key, inner in item.items() if isinstance(item, dict) else ():
        name = _known(inner, NAMES)
        arguments = _known(inner, ARGUMENTS)
        if name is None or arguments is None or not isinstance(inner[name], str):
            continue
        result = _known(inner, RESULTS)
        outer = _known(item, RESULTS)
        found: dict[str, tuple[Step, ...]] = {"name": (key, name), "args": (key, arguments)}
        if result is not None or outer is not None:
            found["result"] = (key, result) if result is not None else (str(outer),)
        return [f"{part}: {_written(path)}" for part, path in found.items()]
    return None


def _known(value: Any, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in value), None) if isinstance(value, dict) else None


def _written(steps: tuple[Step, ...]) -> str:
    """Return a path as YAML writes it inside braces."""
    text = str(JsonPath(steps))
    return f'"{text}"' if "[" in text and '"' not in text else f"'{text}'" if "[" in text else text
