"""Masks and shortens results before they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from agenteval.core.redact import Redactor
from agenteval.results.case import CaseResult, IterationResult, Score, Shortened, ToolCall, TurnResult, Usage

ResultT = TypeVar("ResultT", CaseResult, IterationResult)

# Fields with any value, which the agent or a grader chooses.
_ANY = frozenset({"args", "result", "details"})


def redacted(result: ResultT, redact: Redactor) -> tuple[ResultT, str]:
    """Return the result with masked secrets, and the same result as JSON."""
    text = result.model_dump_json()
    if not redact.finds(text):
        return result, text
    masked: ResultT = _masked(result, redact)
    return masked, masked.model_dump_json()


def _masked(value: Any, redact: Redactor) -> Any:
    if isinstance(value, BaseModel):
        update = {name: _field(value, name, item, redact) for name, item in value}
        return value.model_copy(update=update)
    if isinstance(value, list):
        return [_masked(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def _field(model: BaseModel, name: str, value: Any, redact: Redactor) -> Any:
    if name in _fixed(type(model)):
        return value
    if name in _ANY:
        return redact.data(value)
    if isinstance(model, (Usage, ToolCall)) and type(value) in {int, float} and redact.number(value) != value:
        # These fields are numbers, and may be unknown.
        return None
    return _masked(value, redact)


@cache
def _fixed(model: type[BaseModel]) -> frozenset[str]:
    """The fields with words of agenteval, and the ids of metrics: suites are refused if these contain a secret."""
    words = {name for name, field in model.model_fields.items() if _is_literal(field.annotation)}
    return frozenset(words | {"id"} if model is Score else words)


def _is_literal(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return True
    parts = [part for part in get_args(hint) if part is not type(None)]
    return bool(parts) and all(map(_is_literal, parts))


# Shortens the large values of a result before it is kept.
#
# Agents, suites and judges control the size of these values: the answer, the question, the expected answer, the
# error, the passages, the tool calls, and the reasons of metrics. Metrics read the whole values. Results, the journal
# and reports keep the beginning, with the size and the hash of the whole.


#: Bytes of one value that results keep.
MAX_ANSWER_BYTES: Final = 262_144
#: What a replayed answer consists of; metrics of a recording would read the beginning as the whole.
ANSWER_FIELDS: Final = ("response", "tool_calls", "retrieval_context")

_TEXTS = ("input", "ground_truth", "response", "error")
_SCORE_TEXTS = ("reason", "error")
# An element of a list or mapping counts as this many bytes besides its texts, so that their number is limited too.
_ELEMENT = 16
# UTF-8 needs at most this many bytes for one character.
_WIDEST = 4


def shortened(result: ResultT, text: str, limit: int) -> tuple[ResultT, str]:
    """Return the result with every value cut to a number of bytes, and the same result as JSON.

    Secrets are masked before: one that is cut in two cannot be found any more.
    """
    if _fits(text, limit):
        return result, text
    small: ResultT = (
        result.model_copy(update={"iterations": [_iteration(iteration, limit) for iteration in result.iterations]})
        if isinstance(result, CaseResult)
        else _iteration(result, limit)
    )
    return small, small.model_dump_json()


def shortened_values(result: CaseResult | IterationResult, fields: Sequence[str] = ANSWER_FIELDS) -> bool:
    """Return whether a result contains only the beginning of one of these fields of a turn."""
    iterations = result.iterations if isinstance(result, CaseResult) else [result]
    return any(field in turn.shortened for iteration in iterations for turn in iteration.turns for field in fields)


def whole_answer(turn: TurnResult) -> Shortened | None:
    """Return size and hash of the whole answer of a turn; ``None`` without an answer."""
    if turn.response is None:
        return None
    return turn.shortened.get("response") or _whole(turn.response)


def shortened_note(whole: Shortened | None) -> str:
    """Return ``shortened, 31,457,280 characters, sha256 …`` for reports; empty for a value that is whole."""
    return f"shortened, {whole.characters:,} characters, sha256 {whole.sha256}" if whole else ""


def _iteration(iteration: IterationResult, limit: int) -> IterationResult:
    return iteration.model_copy(update={"turns": [_turn(turn, limit) for turn in iteration.turns]})


def _turn(turn: TurnResult, limit: int) -> TurnResult:
    changed: dict[str, Any] = {}
    found: dict[str, Shortened] = {}
    for name in _TEXTS:
        value = getattr(turn, name)
        if value is not None and not _fits(value, limit):
            changed[name], found[name] = _beginning(value, limit), _whole(value)
    if _size(turn.retrieval_context) > limit:
        changed["retrieval_context"] = _passages(turn.retrieval_context, limit)
        found["retrieval_context"] = _whole(_json(turn.retrieval_context))
    if sum(map(_call_size, turn.tool_calls)) > limit:
        changed["tool_calls"] = _calls(turn.tool_calls, limit)
        found["tool_calls"] = _whole(_json([call.model_dump(mode="json") for call in turn.tool_calls]))
    scores = [_score(score, f"scores.{number}", limit, found) for number, score in enumerate(turn.scores)]
    if not found:
        return turn
    # What an earlier run has shortened keeps the size and hash of its whole.
    return turn.model_copy(update={**changed, "scores": scores, "shortened": {**found, **turn.shortened}})


def _score(score: Score, place: str, limit: int, found: dict[str, Shortened]) -> Score:
    changed: dict[str, Any] = {}
    for name in _SCORE_TEXTS:
        value = getattr(score, name)
        if value is not None and not _fits(value, limit):
            changed[name], found[f"{place}.{name}"] = _beginning(value, limit), _whole(value)
    if score.details is not None and _size(score.details) > limit:
        changed["details"], found[f"{place}.details"] = None, _whole(_json(score.details))
    return score.model_copy(update=changed) if changed else score


def _passages(passages: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for passage in passages:
        room -= _ELEMENT
        if room <= 0:
            break
        kept.append(_beginning(passage, room))
        room -= len(_bytes(kept[-1]))
    return kept


def _calls(calls: Sequence[ToolCall], room: int) -> list[ToolCall]:
    kept: list[ToolCall] = []
    for call in calls:
        room -= _call_size(ToolCall(name=""))
        if room <= 0:
            break
        small: dict[str, Any] = {}
        for name in ("name", "error", "args", "result"):
            value = getattr(call, name)
            if value is not None:
                small[name] = value if _size(value) <= room else _beginning(_text(value), max(0, room - _ELEMENT))
                room -= _size(small[name])
        kept.append(call.model_copy(update=small))
    return kept


def _call_size(call: ToolCall) -> int:
    return _ELEMENT + sum(_size(value) for value in (call.name, call.error, call.args, call.result))


def _size(value: Any) -> int:
    if isinstance(value, str):
        return _ELEMENT + len(_bytes(value))
    if isinstance(value, Mapping):
        return _ELEMENT + sum(_size(str(key)) + _size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return _ELEMENT + sum(map(_size, value))
    # Whole numbers may have many digits.
    return _ELEMENT + (value.bit_length() // 3 if isinstance(value, int) else 0)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _fits(text: str, limit: int) -> bool:
    if len(text) * _WIDEST <= limit:
        return True
    return len(text) <= limit and len(_bytes(text)) <= limit


def _beginning(text: str, limit: int) -> str:
    return text if _fits(text, limit) else _bytes(text[:limit])[:limit].decode("utf-8", "ignore")


def _whole(text: str) -> Shortened:
    data = _bytes(text)
    return Shortened(characters=len(text), bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _bytes(text: str) -> bytes:
    # Texts of results contain no lone surrogates; one that got there all the same must not end the run.
    return text.encode("utf-8", "replace")
