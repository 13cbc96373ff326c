"""Prompts and replies of judges: templates, schemas and scores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.records import dataclass
from agenteval.core.secrets import beginning, shortened
from agenteval.core.text import text_of
from agenteval.metrics.base import MetricError, shown
from agenteval.metrics.text import found
from agenteval.results.record import Record, value_at
from agenteval.suite.forms import pieces

# Fills the prompt templates of judges with the fields of a trace, as FluxLoop does.
#
# The text of the prompt is a part of the key of a judgement. If it has only placeholders that FluxLoop replaces, it
# is FluxLoop's text, so judgements that FluxLoop cached are found.


# FluxLoop inserts the values of these fields as Python shows them, an empty value as an empty text.
_SHOWN_FIELDS = frozenset({"input", "output", "persona", "trace_id"})
# FluxLoop looks for these fields in the metadata too.
_IN_METADATA = frozenset({"guidelines", "policy_context", "requirements", "supporting_data", "knowledge_base"})

Quote = Callable[[str, str], str]


def render(template: str, record: Record, quote: Quote = lambda _name, text: text) -> str:
    """Return the template with its placeholders replaced by fields of a trace; missing fields are empty."""
    return "".join(piece if name is None else quote(name, _text(record, name)) for piece, name in pieces(template))


def _text(record: Record, name: str) -> str:
    if name == "observations":
        return text_of(_without_originals(value_at(record, name) or value_at(record, "timeline")))
    value = value_at(record, name)
    if name in _SHOWN_FIELDS:
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


def first_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return where and why a value does not follow a schema; ``None`` if it does.

    Args:
        schema: a JSON Schema, version 2020-12.

    Raises:
        MetricError: a pattern takes too long, or a reference is not in the schema.
    """
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: the default one reads files and sends requests for references.
    validator = _validator_class()(schema, registry=Registry())
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except Unresolvable as missing:
        raise MetricError(f"output_schema: $ref {missing.ref!r} is not in the schema") from None
    return None if error is None else f"{error.json_path}: {error.message}"


@cache
def _validator_class() -> Any:
    import jsonschema

    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def _pattern(validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    import jsonschema

    if validator.is_type(value, "string") and not found(pattern, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


Reply = TypeVar("Reply", bound=BaseModel)

HIGHEST_SCORE = 10

_TRAILING_COMMA = re.compile(r",\s*([\]}])")
_SHOWN_CHARACTERS = 200


def read_reply(text: str, schema: type[Reply]) -> Reply:
    """Return a reply as an instance of its schema.

    Raises:
        MetricError: the reply is not JSON, or does not follow the schema.
    """
    return fitted(json_object(text), schema)


def fitted(value: dict[str, Any], schema: type[Reply]) -> Reply:
    """Return the JSON of a reply as an instance of its schema.

    Raises:
        MetricError: it does not follow the schema.
    """
    if isinstance(value.get("score"), bool):
        raise MetricError(f"the judge's score is {value['score']}, not a number")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise MetricError(f"the judge's reply does not fit {schema.__name__}: {place}: {first['msg']}") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a reply; code fences and text around it are ignored.

    Raises:
        MetricError: the reply contains no JSON object, or an object with two values of one key.
    """
    start, end = text.find("{"), text.rfind("}")
    inner = text[start : end + 1] if start != -1 and end > start else ""
    # Some models write a comma before a closing bracket. Tried last, because a text may contain one as well.
    for candidate in (inner, _TRAILING_COMMA.sub(r"\1", inner)):
        try:
            value = json.loads(candidate, object_pairs_hook=_with_one_value)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise MetricError(f"the judge's reply is not JSON: {shortened(text, _SHOWN_CHARACTERS)!r}")


def _with_one_value(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; with two scores, it is unknown which one the judge means."""
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise MetricError(f"the judge's reply has two values of {shortened(key, _SHOWN_CHARACTERS)!r}")
    return made


def check_scale(score: float, *, strict: bool) -> None:
    """Reject a score outside the judge's scale: 0 to 10, or 0 and 1 if strict.

    Raises:
        MetricError: the score is outside the scale, or not a number.
    """
    if strict and score not in {0, 1}:
        raise MetricError(f"the judge's score is {score:g}, but only 0 and 1 are allowed")
    if not 0 <= score <= HIGHEST_SCORE:
        raise MetricError(f"the judge's score is {score:g}, outside its scale of 0 to {HIGHEST_SCORE}")


def may_be_score(token: str) -> bool:
    """Return whether a token may be a score; tokens that are not numbers pass."""
    # As a float: Python refuses to parse integers with thousands of digits.
    return not token.isdecimal() or float(token) <= HIGHEST_SCORE


_HIGHEST = 10.0
_ROUNDING = 1e-9
_LONGEST_REASON = 500
_REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "feedback", "comment")
# A separate number: not part of a word (GPT-4), a longer number or a version (1.2.3).
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\w-)"
    r"(?P<sign>[-−+]?)"
    r"(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?!\.\d|\w|-[A-Za-z])"
)
_AFTER_PERCENT = re.compile(r"\s*(?:%|percent\b)")
_AFTER_HIGHEST = re.compile(r"\s*(?:/|out\s+of)\s*(?P<highest>\d+(?:\.\d+)?)", re.IGNORECASE)
# "1-10", "1 to 10", "between 1 and 10", "out of 10", "/10": the scale, not a score.
_SCALE = re.compile(
    r"(?:(?<![\w.])[01](?:\.0+)?\s*(?:-|–|—|\.\.\.?|…|\bto\b|\bthrough\b)|\bbetween\s+[01](?:\.0+)?\s+and\b|/|\bout\s+of\b)"
    r"\s*(?P<high>\d+(?:\.\d+)?)(?![\w%]|\.\d)",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^[^\S\n]*(?P<number>\d+)[.)]\s+", re.MULTILINE)
_REASON = re.compile(r"\breason(?:ing)?\b[^\w\n]*?[:\-–—][^\w\n\"'(\[]*(?P<reason>\S.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Judgement:
    """A score on the judge's scale, and its reason."""

    raw: float
    reason: str


Parser = Callable[[str, float], Judgement]


def first_number_1_10(text: str, max_score: float) -> Judgement:
    """Return the first number, which must be 0 to 10 and at most ``max_score``.

    Mentions of the scale (``1-10``, ``out of 10``), numbers of a list, and numbers inside words are not scores.
    A score on another scale (``4/5``, ``80%``) is rejected.

    Raises:
        MetricError: there is no number, or it is on another scale.
    """
    return _first(text, min(_HIGHEST, max_score), {_HIGHEST, max_score})


def first_float(text: str, max_score: float) -> Judgement:
    """Return the first number from 0 to ``max_score``, decimals allowed; otherwise like ``first_number_1_10``.

    Raises:
        MetricError: there is no number, or it is on another scale.
    """
    return _first(text, max_score, {max_score})


def json_score(text: str, max_score: float) -> Judgement:
    """Return ``score`` of the JSON object in the reply, from 0 to ``max_score``.

    Raises:
        MetricError: there is no such object, or its score is not a number on the scale.
    """
    reply = json_object(text)
    reason = next((reply[name] for name in _REASONS if isinstance(reply.get(name), str)), "")
    return Judgement(_checked(_json_number(reply.get("score"), text), max_score), _short(reason or text))


PARSERS: Mapping[str, Parser] = {
    "first_number_1_10": first_number_1_10,
    "json_score": json_score,
    "first_float": first_float,
}


def _first(text: str, highest: float, scales: set[float]) -> Judgement:
    readable = _without_scales(_without_list_marks(text), scales)
    number = next(_numbers(readable, scales), None)
    if number is None:
        raise MetricError(f"the judge's reply has no score: {shown(text)}")
    return Judgement(_checked(number, highest), _reason(text))


def _numbers(text: str, scales: set[float]) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        value = float(match["value"].replace(",", ""))
        if _AFTER_PERCENT.match(text, match.end()):
            raise MetricError(f"the judge's score is a percentage: {shown(text.strip())}")
        of = _AFTER_HIGHEST.match(text, match.end())
        if of and float(of["highest"]) not in scales:
            raise MetricError(f"the judge's score is on another scale: {shown(text[match.start() : of.end()])}")
        yield -value if match["sign"] in {"-", "−"} else value


def _without_scales(text: str, scales: set[float]) -> str:
    return _SCALE.sub(lambda match: " " if float(match["high"]) in scales else match.group(), text)


def _without_list_marks(text: str) -> str:
    """Remove the numbers of a list that starts at 1; a single ``8.`` may be the score."""
    marks = [float(match["number"]) for match in _LIST_MARK.finditer(text)]
    return _LIST_MARK.sub("", text) if marks[:2] == [1, 2] else text


def _json_number(value: Any, text: str) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            value = None
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise MetricError(f"the judge gave no number as score: {shown(text)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _checked(score: float, highest: float) -> float:
    if not -_ROUNDING <= score <= highest + _ROUNDING:
        raise MetricError(f"the judge's score is {score:g}, outside its scale of 0 to {highest:g}")
    return min(max(score, 0.0), highest)


def _reason(text: str) -> str:
    found = _REASON.search(text)
    return _short(found["reason"] if found else text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{beginning(line, _LONGEST_REASON - 1)}…"
