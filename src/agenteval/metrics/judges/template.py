"""Fills the prompt templates of judges with the fields of a trace, as FluxLoop does.

The text of the prompt is a part of the key of a judgement. If it has only placeholders that FluxLoop replaces, it is
FluxLoop's text, so judgements that FluxLoop cached are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agenteval.core.text.json_text import text_of
from agenteval.results.record.fields import Record, value_at
from agenteval.suite.prompt_template import pieces

# FluxLoop inserts the values of these fields as Python shows them, an empty value as an empty text.
_SHOWN = frozenset({"input", "output", "persona", "trace_id"})
# FluxLoop looks for these fields in the metadata too.
_IN_METADATA = frozenset({"guidelines", "policy_context", "requirements", "supporting_data", "knowledge_base"})

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
    if name == "observations":
        return text_of(_without_originals(value_at(record, name) or value_at(record, "timeline")))
    value = value_at(record, name)
    if name in _SHOWN:
        return str(value or "")
    if name == "iteration":
        return str(value)
    if name in _IN_METADATA and not value and isinstance(metadata := value_at(record, "metadata"), Mapping):
        value = metadata.get(name)
    return text_of(value)


def _without_originals(observations: Any) -> Any:
    """Return observations without ``raw``, which repeats them."""
    if not isinstance(observations, list):
        return observations
    return [
        {key: value for key, value in item.items() if key != "raw"} if isinstance(item, Mapping) else item
        for item in observations
    ]
