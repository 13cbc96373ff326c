"""Finds the token usage of an answer in its record, and counts no token twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.results.record.fields import Record, value_at

# The names that providers and frameworks use.
_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_TOTAL = ("total_tokens",)
# Keys with the figures of a whole trace; the first key with figures counts.
_PLACES = ("token_usage", "usage", "summary.token_usage", "summary.usage", "metadata.token_usage", "metadata.usage")
# Keys with the figures of one observation, at any depth.
_INSIDE = (
    "token_usage",
    "usage",
    "usage_metadata",
    "output",
    "message",
    "messages",
    "response_metadata",
    "llm_output",
    "raw",
    "metadata",
)
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts; ``None`` if only the total is known."""

    total: float
    prompt: float | None = None
    completion: float | None = None


def token_usage(record: Record) -> TokenUsage | None:
    """Return the token usage of an answer; ``None`` if the record has none.

    Figures for the whole trace come first. Without them, the figures of the timeline are added. A repeated
    observation counts once. An observation does not count if nested observations have figures, because it contains
    their sum.

    Args:
        record: the record of the trace.
    """
    for place in _PLACES:
        found = _counts(value_at(record, place))
        if found is not None:
            return found
    observations = record.get("timeline") or record.get("observations")
    return _sum(list(_observed(observations))) if isinstance(observations, list) else None


def _observed(observations: Sequence[Any]) -> Iterator[TokenUsage]:
    found: dict[Any, TokenUsage] = {}
    for index, observation in enumerate(observations):
        usage = _search(observation, _DEPTH)
        if usage is not None:
            identity = _field(observation, "id")
            found[index if identity is None else identity] = usage
    parents = {_field(item, "id"): _field(item, "parent_observation_id") for item in observations}
    above: set[Any] = set()
    for identity in found:
        parent = parents.get(identity)
        while parent is not None and parent not in above and parent != identity:
            above.add(parent)
            parent = parents.get(parent)
    for identity, usage in found.items():
        if identity not in above:
            yield usage


def _field(observation: Any, name: str) -> str | None:
    """Return a field of an observation; FluxLoop stores fields that it does not define below ``raw``."""
    if not isinstance(observation, Mapping):
        return None
    raw = observation.get("raw")
    value = observation.get(name) or (raw.get(name) if isinstance(raw, Mapping) else None)
    return value if isinstance(value, str) else None


def _search(value: Any, depth: int) -> TokenUsage | None:
    """Return the figures of an observation: direct ones, else the first nested ones."""
    if not isinstance(value, Mapping) or not depth:
        return None
    found = _counts(value)
    if found is not None:
        return found
    return next((inner for key in _INSIDE if (inner := _search(value.get(key), depth - 1)) is not None), None)


def _counts(value: Any) -> TokenUsage | None:
    if not isinstance(value, Mapping):
        return None
    prompt, completion, total = (_first(value, names) for names in (_PROMPT, _COMPLETION, _TOTAL))
    if total is None and prompt is None and completion is None:
        return None
    if not total:
        total = (prompt or 0.0) + (completion or 0.0)
    return TokenUsage(total, prompt, completion)


def _first(value: Mapping[str, Any], names: Sequence[str]) -> float | None:
    for name in names:
        count = value.get(name)
        if isinstance(count, int | float) and not isinstance(count, bool) and math.isfinite(count) and count >= 0:
            return float(count)
    return None


def _sum(parts: Sequence[TokenUsage]) -> TokenUsage | None:
    if not parts:
        return None
    prompts, completions = [part.prompt for part in parts], [part.completion for part in parts]
    return TokenUsage(math.fsum(part.total for part in parts), _known_sum(prompts), _known_sum(completions))


def _known_sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; ``None`` if any value is unknown."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
