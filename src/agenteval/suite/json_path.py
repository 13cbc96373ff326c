"""Paths of values in JSON: ``data.answer``, ``choices[0].message``, ``sources[*].text``, ``["odd key"].x``.

The syntax is a part of JSONPath (RFC 9535): names of members, indices from both ends, and ``[*]`` for every item; the
``$`` at the beginning can be omitted. The libraries for JSONPath and JMESPath return nothing for a path without a
value, and not the step at which it ends; the messages here name that step and the keys that exist there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agenteval.core.masking import shortened

#: A name of a member, an index, or ``None`` for every item.
Step = str | int | None

_NAME = r"[^\W\d][\w-]*"
_STEP = re.compile(
    rf"""\.({_NAME}) | \[(-?\d{{1,9}})\] | \[(\*)\] | \["([^"]+)"\] | \['([^']+)'\]""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(_NAME)
_LONGEST = 500
_MOST_KEYS = 20
_SHOWN = 300


class PathError(ValueError):
    """A path without a value; the message names the step, and the keys that exist there."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path in JSON documents."""

    steps: tuple[Step, ...]

    @property
    def is_list(self) -> bool:
        """Whether the path finds a list of values: it contains ``[*]``."""
        return None in self.steps

    def find(self, document: Any, key: str = "response_path") -> Any:
        """Return the value at the path; with ``[*]`` a list of all values, without the items that lack one.

        Args:
            document: JSON.
            key: the key of the path in the configuration, for messages.

        Raises:
            PathError: the path has no value.
        """
        found = _find(document, self.steps, 0)
        if isinstance(found, _Missing):
            raise PathError(self._why(found, key))
        return found

    def get(self, document: Any, default: Any = None) -> Any:
        """Return the value at the path, or a default if the path has none."""
        found = _find(document, self.steps, 0)
        return default if isinstance(found, _Missing) else found

    def __str__(self) -> str:
        return _text(self.steps) or "$"

    def _why(self, missing: _Missing, key: str) -> str:
        step = self.steps[missing.at]
        before = _text(self.steps[: missing.at])
        if isinstance(step, str):
            what = f"{step!r}"
        else:
            what = "list" if step is None else f"item [{step}]"
            what += f" in {_last_name(self.steps[: missing.at])!r}" if before else ""
        where = f"{before!r}" if before else "the response"
        return f"the response has no {what} ({key} {str(self)!r}); {where} is {described(missing.value)}"


@dataclass(frozen=True, slots=True)
class _Missing:
    """The value without the next step, and the number of that step."""

    value: Any
    at: int


def parse_path(text: str) -> JsonPath:
    """Return the path in a text.

    Raises:
        ValueError: the text is not a path.
    """
    rest = text[1:] if text.startswith("$") else text if text.startswith("[") else f".{text}"
    steps: list[Step] = []
    at = 0
    while at < len(rest) and len(text) <= _LONGEST:
        match = _STEP.match(rest, at)
        if match is None:
            break
        name, index, each, *quoted = match.groups()
        steps.append(None if each else int(index) if index else name or quoted[0] or quoted[1])
        at = match.end()
    if at < len(rest) or not text or len(text) > _LONGEST:
        raise ValueError(
            f"{shortened(text, _SHOWN)!r} is not a path like answer, result.items[0].price or steps[*].name"
        )
    return JsonPath(tuple(steps))


def described(value: Any) -> str:
    """Return what a JSON value is, with the keys of an object; for messages."""
    if isinstance(value, dict):
        if not value:
            return "an object without keys"
        return f"an object with the keys {keys_of(value)}"
    if isinstance(value, list):
        return "an empty list" if not value else f"a list of {len(value)} item{'s' if len(value) > 1 else ''}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return {str: "a text", type(None): "null"}.get(type(value), "a number")


def keys_of(value: Mapping[Any, Any]) -> str:
    """Return the first keys of an object, for messages."""
    keys = ", ".join(map(str, islice(value, _MOST_KEYS)))
    more = f", … ({len(value)} keys)" if len(value) > _MOST_KEYS else ""
    return f"{shortened(keys, _SHOWN)}{more}"


def _find(value: Any, steps: tuple[Step, ...], at: int) -> Any:
    """Return the value at the remaining steps, or where they end."""
    for number in range(at, len(steps)):
        step = steps[number]
        if step is None:
            return _find_in_items(value, steps, number)
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return _Missing(value, number)
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return _Missing(value, number)
        value = value[step]
    return value


def _find_in_items(items: Any, steps: tuple[Step, ...], at: int) -> Any:
    if not isinstance(items, list):
        return _Missing(items, at)
    is_nested = None in steps[at + 1 :]
    found: list[Any] = []
    missing: _Missing | None = None
    for item in items:
        value = _find(item, steps, at + 1)
        if isinstance(value, _Missing):
            missing = missing or value
        elif is_nested:
            found.extend(value)
        else:
            found.append(value)
    return missing if missing is not None and not found else found


def _text(steps: Iterable[Step]) -> str:
    text = ""
    for step in steps:
        if step is None:
            text += "[*]"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_NAME.fullmatch(step):
            text += f".{step}"
        else:
            text += f"['{step}']" if '"' in step else f'["{step}"]'
    return text.removeprefix(".")


def _last_name(steps: tuple[Step, ...]) -> str:
    return next((step for step in reversed(steps) if isinstance(step, str)), _text(steps))
