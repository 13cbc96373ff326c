"""The flat record of an answer, which rules and analyses read, and its token usage."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.core.records import dataclass
from agenteval.results.case import ToolCall, Usage

Record = Mapping[str, Any]

#: What a status or a level says of an error.
FAILED = frozenset({"error", "critical", "fatal", "fail", "failed", "failure"})
_NOTHING = frozenset({"", "none", "null"})
_YES = frozenset(
    {"true", "yes", "y", "on", "ok", "success", "successful", "succeeded", "pass", "passed", "completed", "done"}
)


def trace_of_reply(
    *,
    input: str,  # noqa: A002 - the field is called so
    output: str,
    duration_ms: float | None = None,
    success: bool = True,
    persona: str | None = None,
    iteration: int = 0,
    trace_id: str = "",
    metadata: Record | None = None,
    expected: Record | None = None,
    usage: Usage | None = None,
    tool_calls: Sequence[ToolCall] = (),
) -> dict[str, Any]:
    """Return the record of a live answer; the suite's expected metadata override those of the agent."""
    record: dict[str, Any] = {
        "trace_id": trace_id,
        "iteration": iteration,
        "persona": persona,
        "input": input,
        "output": output,
        "duration_ms": duration_ms,
        "success": success,
        "metadata": {**(metadata or {}), **(expected or {})},
        "timeline": [_observation(call) for call in tool_calls],
    }
    tokens = _token_usage(usage)
    return {**record, "token_usage": tokens} if tokens else record


def value_at(record: Record, path: str) -> Any:
    """Return the value of a field; ``None`` if it does not exist.

    The search order is: a key with the name of the whole path, the path through nested objects (also inside JSON
    texts), and both again in ``summary.raw``, where FluxLoop stores keys it does not define.
    """
    found = record[path] if path in record else _nested(record, path.split("."))
    if found is not None or "summary" not in record:
        return found
    unknown = _nested(record, ("summary", "raw"))
    if not isinstance(unknown, dict):
        return None
    return unknown[path] if path in unknown else _nested(unknown, path.split("."))


def observations_of(record: Record) -> list[Any]:
    """Return the observations of a trace: calls of models and tools, in order."""
    found = record.get("timeline") or record.get("observations")
    return found if isinstance(found, list) else []


def is_true(value: Any) -> bool:
    """Return whether a value of a trace means yes.

    ``true``, finite numbers other than 0, and texts that agree mean yes. Other texts, objects and lists mean no: what
    they contain could deny.
    """
    if isinstance(value, str):
        number = as_number(value)
        return value.strip().lower() in _YES if number is None else is_true(number)
    return isinstance(value, int | float) and bool(value) and is_finite(value)


def as_number(text: str) -> float | None:
    """Return a text as a number; ``None`` if it is not one."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def is_finite(number: float) -> bool:
    """Return whether a number is finite; integers may exceed the range of floats."""
    return isinstance(number, int) or math.isfinite(number)


def reported_success(record: Record) -> bool | None:
    """Return the success that a trace reports, by ``success`` or else by ``status``; ``None`` if it reports none.

    A status that tells of a failure contradicts a success, and counts.
    """
    said, status = value_at(record, "success"), value_at(record, "status")
    if said is None and isinstance(status, bool):
        return status
    word = status.strip().lower().removeprefix("status_code_") if isinstance(status, str) else None
    if said is not None:
        return is_true(said) and word not in FAILED
    return None if word is None or word == "unset" else word in _YES


def reported_error(record: Record) -> Any:
    """Return the error that a trace contains; ``None`` without one, also if it is only called none."""
    error = value_at(record, "error")
    if isinstance(error, str):
        return None if error.strip().lower() in _NOTHING else error
    if isinstance(error, Mapping):
        return error if any(error.values()) else None
    return error or None


def was_successful(record: Record) -> bool | None:
    """Return whether an answer succeeded. An answer with an error did not, even if its trace reports success."""
    return False if reported_error(record) is not None else reported_success(record)


def _nested(record: Record, path: Sequence[str]) -> Any:
    value: Any = record if isinstance(record, dict) else dict(record)
    for step in path:
        if isinstance(value, str):
            value = _object(value)
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def _object(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _observation(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool",
        "name": call.name,
        "input": call.args,
        "output": call.result,
        "error": call.error,
        "duration_ms": call.duration_ms,
    }


def _token_usage(usage: Usage | None) -> dict[str, int]:
    if usage is None:
        return {}
    parts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    known = {name: count for name, count in parts.items() if count is not None}
    return {**known, "total_tokens": sum(known.values())} if len(known) == len(parts) else known


# The names that providers and frameworks use: OpenAI, Anthropic, Bedrock, and Gemini in Python and in JSON.
_PROMPT = ("prompt_tokens", "input_tokens", "inputTokens", "prompt_token_count", "promptTokenCount")
_COMPLETION = ("completion_tokens", "output_tokens", "outputTokens", "candidates_token_count", "candidatesTokenCount")
_TOTAL = ("total_tokens", "totalTokens", "total_token_count", "totalTokenCount")
# Tokens of the prompt that Anthropic and Bedrock count apart.
_CACHED = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cacheWriteInputTokens",
    "cacheReadInputTokens",
)
_USAGE = ("token_usage", "usage", "usage_metadata", "usageMetadata")
# Keys with the figures of a whole trace; the first key with figures counts.
_PLACES = tuple(
    f"{parent}{name}"
    for parent in ("", "summary.", "metadata.", "response_metadata.", "llm_output.")
    for name in _USAGE
)
# Keys with the figures of one observation, at any depth.
_INSIDE = (
    *_USAGE,
    "output",
    "message",
    "messages",
    "response_metadata",
    "llm_output",
    "raw",
    "metadata",
)
_DEPTH = 6


@dataclass(frozen=True)
class TokenUsage:
    """Token counts.

    Attributes:
        total: the sum of all counts that are known.
        prompt: ``None`` if it is not known.
        completion: ``None`` if it is not known.
        unusable: a count that is not a number of tokens, as ``total_tokens: 'many'``; empty for none.
    """

    total: float
    prompt: float | None = None
    completion: float | None = None
    is_complete: bool = True
    unusable: str = ""


def token_usage(record: Record) -> TokenUsage | None:
    """Return the token usage of an answer; ``None`` if the record has none.

    Figures for the whole trace come first. Without them, or if they are 0, the figures of the timeline are added. A
    repeated observation counts once. An observation does not count if nested observations have figures, because it
    contains their sum.
    """
    first = None
    for usage in _found(record):
        # Writers that do not know the number write 0.
        if usage.total or usage.unusable:
            return usage
        first = first or usage
    return first


def _found(record: Record) -> Iterator[TokenUsage]:
    for place in _PLACES:
        parent, inside, _ = place.partition(".")
        # Most traces have few of these keys, and each look takes time.
        if not inside or parent in record or "summary" in record:
            usage = _usage_of(value_at(record, place))
            if usage is not None:
                yield usage
    usage = _sum(list(_observed(observations_of(record))))
    if usage is not None:
        yield usage


def _observed(observations: Sequence[Any]) -> Iterator[TokenUsage]:
    found: dict[Any, TokenUsage] = {}
    is_silent = False
    for index, observation in enumerate(observations):
        usage = _search(observation, _DEPTH)
        if usage is None:
            is_silent = is_silent or _is_call(observation)
        else:
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
    if found and is_silent:
        # A call of a model that does not tell its tokens, such as a stream.
        yield TokenUsage(0.0, is_complete=False)


def _is_call(observation: Any) -> bool:
    return _field(observation, "type") in {"generation", "GENERATION", "llm"}


def _field(observation: Any, name: str) -> str | None:
    if not isinstance(observation, Mapping):
        return None
    raw = observation.get("raw")
    value = observation.get(name) or (raw.get(name) if isinstance(raw, Mapping) else None)
    return value if isinstance(value, str) else None


def _search(value: Any, depth: int) -> TokenUsage | None:
    if depth <= 0:
        return None
    if isinstance(value, list):
        return _sum([found for item in value if (found := _search(item, depth - 1)) is not None])
    if not isinstance(value, Mapping):
        return None
    found = _counts(value)
    if found is not None:
        return found
    for key in _INSIDE:
        inside = value.get(key)
        found = (_usage_of(inside) if key in _USAGE else None) or _search(inside, depth - 1)
        if found is not None:
            return found
    return None


def _usage_of(value: Any) -> TokenUsage | None:
    found = _counts(value)
    if found is not None or not isinstance(value, Mapping):
        return found
    plain = {f"{name}_tokens": value[name] for name in ("input", "output", "total") if name in value}
    numbers = [count for count in plain.values() if count is not None]
    return _counts(plain) if numbers and all(isinstance(count, int | float) for count in numbers) else None


def _counts(value: Any) -> TokenUsage | None:
    if not isinstance(value, Mapping):
        return None
    counts = [_first(value, names) for names in (_PROMPT, _COMPLETION, _TOTAL)]
    if all(count is None for count in counts):
        return None
    counts += [_first(value, (name,)) for name in _CACHED]
    unusable = next((count for count in counts if isinstance(count, str)), "")
    prompt, completion, total, *cached = (count if isinstance(count, float) else None for count in counts)
    if prompt is not None:
        prompt = math.fsum([prompt, *(count or 0.0 for count in cached)])
    known = (prompt or 0.0) + (completion or 0.0)
    # A request without tokens does not exist.
    is_complete = bool(total) or (bool(prompt) and completion is not None)
    return TokenUsage(max(total or 0.0, known), prompt, completion, is_complete, unusable)


def _first(value: Mapping[str, Any], names: Sequence[str]) -> float | str | None:
    found = None
    for name in names:
        count = value.get(name)
        if count is None:
            continue
        number = as_number(count) if isinstance(count, str) else count
        if isinstance(number, bool) or not isinstance(number, int | float) or not is_finite(number) or number < 0:
            return f"{name}: {count!r:.40}"
        if number:
            return float(number)
        found = 0.0
    return found


def _sum(parts: Sequence[TokenUsage]) -> TokenUsage | None:
    if not parts:
        return None
    prompts, completions = [part.prompt for part in parts], [part.completion for part in parts]
    return TokenUsage(
        math.fsum(part.total for part in parts),
        _known_sum(prompts),
        _known_sum(completions),
        is_complete=all(part.is_complete for part in parts),
        unusable=next((part.unusable for part in parts if part.unusable), ""),
    )


def _known_sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
