"""Finds one leaf in a JSON response for a metric: ``answer``, ``result.items[0].price``."""

from __future__ import annotations

import json
import re

from agenteval.suite.json_path import parse_path

_SEGMENT = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d+\])*)")


def check_response_path(path: str) -> str:
    """Return the path of a metric, whose grammar is HoloDeck's; those of agents have more steps.

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
    leaf = parse_path(path).find(value)
    if isinstance(leaf, dict | list):
        raise ValueError(f"response_path {path!r} ends at {'an object' if isinstance(leaf, dict) else 'a list'}")
    return str(leaf)
