"""Templates of requests: JSON with placeholders such as ``{input}``, filled for every turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agenteval.core.text.choices import choices
from agenteval.core.text.json_text import text_of

#: Placeholders, and what they insert.
PLACEHOLDERS: Mapping[str, str] = {
    "input": "the text of the turn, after the texts of its files",
    "messages": "the conversation with this turn: a list of `role` and `content`",
    "history": "the conversation before this turn: a list of `role` and `content`",
    "session": "id of the conversation",
    "case": "name of the case",
    "turn": "number of the turn, from 0",
    "files": "absolute paths of the turn's files",
    "config": "the agent's `config`; `{config.key}` is one value of it",
    "context": "the `context` of the case; `{context.key}` is one value of it",
}
_MAPPINGS = ("config", "context")
# Doubled braces keep a placeholder as it is written.
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")


def check_template(template: Any) -> None:
    """Check the placeholders of a template, and that JSON can express it.

    Raises:
        ValueError: a placeholder does not exist, or JSON cannot express a value.
    """
    for name in placeholders(template):
        first, _, rest = name.partition(".")
        if first not in PLACEHOLDERS or (rest and first not in _MAPPINGS):
            known = [*PLACEHOLDERS, *(f"{key}.KEY" for key in _MAPPINGS)]
            literal = f"{{{{{name}}}}} is sent as {{{name}}}"
            raise ValueError(f"{{{name}}} is not a placeholder{choices(name, known, 'known')}; {literal}")
    try:
        json.dumps(template, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON cannot express it: {error}") from None


def missing_config(template: Any, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the placeholders ``config.key`` whose key is not in the configuration of the agent."""
    for name in placeholders(template):
        if name.startswith("config."):
            try:
                value_of(name, {"config": config})
            except KeyError:
                yield name


def placeholders(template: Any) -> Iterator[str]:
    """Yield the names of the placeholders in a template."""
    if isinstance(template, str):
        yield from (match[2] for match in _PLACEHOLDER.finditer(template) if match[2])
    elif isinstance(template, Mapping):
        for item in template.values():
            yield from placeholders(item)
    elif isinstance(template, list | tuple):
        for item in template:
            yield from placeholders(item)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders replaced.

    A text that is one placeholder becomes its value, of whatever type; in a longer text, values become text.

    Raises:
        KeyError: a key of ``config`` or ``context`` does not exist.
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole[2]:
            return value_of(whole[2], values)
        return filled_text(template, values, text_of)
    if isinstance(template, Mapping):
        return {str(key): filled(item, values) for key, item in template.items()}
    if isinstance(template, list | tuple):
        return [filled(item, values) for item in template]
    return template


def filled_text(template: str, values: Mapping[str, Any], written: Callable[[Any], str]) -> str:
    """Return a text with its placeholders replaced.

    Args:
        template: the text.
        values: the values by placeholder.
        written: converts a value to text.

    Raises:
        KeyError: a key of ``config`` or ``context`` does not exist.
    """
    return _PLACEHOLDER.sub(
        lambda match: f"{{{match[1]}}}" if match[1] else written(value_of(match[2], values)), template
    )


def value_of(name: str, values: Mapping[str, Any]) -> Any:
    """Return the value of a placeholder.

    Raises:
        KeyError: a key of ``config`` or ``context`` does not exist.
    """
    value: Any = values
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise KeyError(name)
        value = value[step]
    return value
