"""Finds one leaf in a JSON response: ``answer``, ``result.items[0].price``."""

from __future__ import annotations

import json
import re
from typing import Any

_SEGMENT = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d+\])*)")


def check_response_path(path: str) -> str:
    """Return the path.

    Raises:
        ValueError: the path does not follow the grammar ``name([index])*(.name([index])*)*``.
    """
    if not path or not all(_SEGMENT.fullmatch(segment) for segment in path.split(".")):
        raise ValueError(f"{path!r} is not a path like answer or result.items[0].price")
    return path


def text_at_path(response: str, path: str) -> str:
    """Return the leaf as text, as Python prints it (``null`` is ``None``, ``true`` is ``True``).

    Raises:
        ValueError: the response is not JSON, the path is missing, or it ends at an object or list.
    """
    try:
        value = json.loads(response)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the response is not JSON, so response_path {path!r} cannot be read: {error}") from None
    leaf = value_at(value, path)
    if isinstance(leaf, dict | list):
        raise ValueError(f"response_path {path!r} ends at {'an object' if isinstance(leaf, dict) else 'a list'}")
    return str(leaf)


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path.

    Raises:
        ValueError: the path does not exist; the message names the step.
    """
    for segment in path.split("."):
        match = _SEGMENT.fullmatch(segment)
        if match is None:
            raise ValueError(f"{path!r} is not a path like answer or result.items[0].price")
        name = match.group(1)
        if not isinstance(value, dict) or name not in value:
            raise ValueError(f"the response has no {name!r} (response_path {path!r})")
        value = value[name]
        for index in re.findall(r"\d+", match.group(2)):
            if not isinstance(value, list) or int(index) >= len(value):
                raise ValueError(f"the response has no item [{index}] in {name!r} (response_path {path!r})")
            value = value[int(index)]
    return value
