"""Fills the prompt templates of judges with the fields of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agenteval.core.text.json_text import text_of
from agenteval.results.record.fields import Record, value_at
from agenteval.suite.prompt_template import pieces

# Fields that replace a placeholder if the trace has no field of its name.
_ELSEWHERE = {
    "observations": ("timeline",),
    "history": ("conversation",),
    **{
        name: (f"metadata.{name}",)
        for name in ("guidelines", "policy_context", "requirements", "supporting_data", "knowledge_base")
    },
}

Quote = Callable[[str, str], str]


def render(template: str, record: Record, quote: Quote = lambda _name, text: text) -> str:
    """Return the template with its placeholders replaced by fields of a trace; missing fields are empty.

    Args:
        template: the prompt.
        record: the record of the trace.
        quote: returns the replacement for the name of a placeholder and its text.
    """
    return "".join(piece if name is None else quote(name, _text(record, name)) for piece, name in pieces(template))


def _text(record: Record, name: str) -> str:
    places = (name, *_ELSEWHERE.get(name, ()))
    found = next((value for place in places if (value := value_at(record, place)) not in (None, "", [], {})), None)
    return text_of(_without_originals(found) if name == "observations" else found)


def _without_originals(observations: Any) -> Any:
    """Return observations without ``raw``, which repeats them."""
    if not isinstance(observations, list):
        return observations
    return [
        {key: value for key, value in item.items() if key != "raw"} if isinstance(item, Mapping) else item
        for item in observations
    ]
