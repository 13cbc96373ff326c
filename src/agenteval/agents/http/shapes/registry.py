"""All shapes by name; ``suite/http_keys.py`` lists the same names for configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.agents.http.shapes import ag_ui, anthropic_messages, langserve, openai_chat, openai_responses
from agenteval.agents.http.shapes.base import Shape

SHAPES: Mapping[str, Shape] = {
    module.SHAPE.name: module.SHAPE
    for module in (openai_chat, openai_responses, anthropic_messages, langserve, ag_ui)
}


def probable_shape(document: Any) -> str | None:
    """Return the name of the shape that a reply, or an event of its stream, probably has."""
    if not isinstance(document, dict):
        return None
    return next((name for name, shape in SHAPES.items() if shape.matches(document)), None)
