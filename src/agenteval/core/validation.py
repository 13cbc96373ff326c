"""Turns validation errors of pydantic into problems with line, key and allowed values."""

from __future__ import annotations

import re
import reprlib
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import Kind, Problem
from agenteval.core.text import choices

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PATTERN = r"\d+(\.\d+)? ?(ms|s|m|min|h)?"
_TEXT = re.compile(rf"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>{'|'.join(_UNITS)})")


def seconds(value: Any) -> Any:
    """Return a duration in seconds; values other than text are returned unchanged."""
    if not isinstance(value, str):
        return value
    match = _TEXT.fullmatch(value.strip())
    if match is not None:
        return float(match["number"]) * _UNITS[match["unit"]]
    try:
        return float(value)
    except ValueError:
        example = "write seconds as a number, or a unit as in 500ms, 2s, 5m or 1h"
        raise ValueError(f"{value!r} is not a duration; {example}") from None


#: The type of a key that takes a duration above 0.
Duration = Annotated[
    float,
    BeforeValidator(seconds),
    Field(gt=0),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": f"^{_PATTERN}$"}]}
    ),
]

ModelT = TypeVar("ModelT", bound=BaseModel)

# Shortens values in messages.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxlevel = 2


def validate(
    model: type[ModelT], value: Any, document: Document, at: KeyPath = ()
) -> tuple[ModelT | None, list[Problem]]:
    """Validate a part of a document.

    Returns:
        The validated model (``None`` if invalid) and every problem.
    """
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, [_problem(detail, model, document, at) for detail in error.errors()]


def _problem(detail: ErrorDetails, model: type[BaseModel], document: Document, at: KeyPath) -> Problem:
    path, _ = _walk(model, detail["loc"])
    if detail["type"] == "union_tag_invalid":
        path.append("type")
    message, kind = _message(detail, model), _KINDS.get(detail["type"], Kind.VALUE)
    if _is_score(detail):
        message, kind = score_message(detail["input"]), Kind.THRESHOLD
    given = detail["input"]
    mark = str(given) if kind is not Kind.UNKNOWN_KEY and isinstance(given, str | int | float) else ""
    return document.problem([*at, *path], message, kind, mark)


# The type of pydantic's error → the kind of problem.
_KINDS = {
    "extra_forbidden": Kind.UNKNOWN_KEY,
    "missing": Kind.MISSING_KEY,
    "union_tag_not_found": Kind.MISSING_KEY,
    "literal_error": Kind.UNKNOWN_NAME,
    "enum": Kind.UNKNOWN_NAME,
    "union_tag_invalid": Kind.UNKNOWN_NAME,
}
_SCORES = ("threshold", "score")


def _is_score(detail: ErrorDetails) -> bool:
    limits = detail.get("ctx") or {}
    key = next((str(step) for step in reversed(detail["loc"]) if isinstance(step, str)), "")
    is_outside = limits.get("le") == 1 or (limits.get("ge") == 0 and detail["type"] == "greater_than_equal")
    required = key.endswith(_SCORES) or "quality" in detail["loc"]
    return is_outside and required and isinstance(detail["input"], int | float | str)


def score_message(value: float | str) -> str:
    """Return the message about a required score outside of 0 to 1."""
    text = f"{value:g}" if isinstance(value, int | float) else value
    message = f"{text} is out of range: scores go from 0 to 1"
    try:
        percent = float(value)
    except ValueError:
        return message
    return f"{message}; did you mean {percent / 100:.2f}?" if _TEN <= percent <= _HUNDRED else message


# Smaller numbers are rather on another scale than in percent.
_TEN, _HUNDRED = 10, 100


def _walk(model: type[BaseModel], loc: Sequence[int | str]) -> tuple[list[int | str], Any]:
    path: list[int | str] = []
    annotation: Any = model
    for step in loc:
        members = _members(annotation)
        if len(members) > 1:
            # The name of a union member is not part of the path in the file.
            annotation = _tagged(members, str(step))
        elif step != "[key]":
            path.append(step)
            annotation = _descend(members[0], step)
    return path, annotation


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "extra_forbidden":
        allowed = _fields_at(model, detail["loc"][:-1])
        return f"unknown key{choices(str(detail['loc'][-1]), allowed)}"
    if kind == "missing":
        return "this key is required"
    if kind in {"literal_error", "enum"}:
        return _not_allowed(detail["input"], str(context.get("expected", "")).replace(" or ", ", "))
    if kind == "union_tag_invalid":
        return f"type {_not_allowed(context.get('tag'), str(context.get('expected_tags', '')))}"
    if kind == "value_error":
        return str(context.get("error", detail["msg"]))
    if kind in {"too_short", "too_long"}:
        limit = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        return f"must have {limit} {'entry' if limit.endswith(' 1') else 'entries'}, not {context['actual_length']}"
    return _wrong_type(detail)


def not_a_mapping(data: Any, key: str) -> str:
    """Return the message about a file that is not a mapping with a key."""
    kind = "a list" if isinstance(data, list) else "one value"
    what = "the file is empty" if data is None else f"the file is {kind} instead of a mapping"
    return f"{what}; write keys with values, at least `{key}`"


def value_message(detail: ErrorDetails) -> str:
    """Return the message about a value that is wrong as a whole, for values outside of models."""
    if detail["type"] in {"literal_error", "enum"}:
        expected = str((detail.get("ctx") or {}).get("expected", ""))
        return _not_allowed(detail["input"], expected.replace(" or ", ", "))
    return _wrong_type(detail)


def _not_allowed(given: Any, expected: str) -> str:
    allowed = [part.strip().strip("'") for part in expected.split(",")]
    return f"{_named(given)} is not allowed{choices(given if isinstance(given, str) else '', allowed)}"


def _wrong_type(detail: ErrorDetails) -> str:
    kind, given = detail["type"], detail["input"]
    if kind == "invalid_key" or detail["loc"][-1:] == ("[key]",):
        return "a key must be text; put it in quotes"
    if kind == "string_type":
        return f"must be text, not {_named(given)}"
    if kind == "union_tag_not_found" and isinstance(given, dict):
        return "the key 'type' is required"
    if kind in {"model_type", "dict_type", "model_attributes_type", "union_tag_not_found"}:
        return f"must be a mapping (key: value), not {_named(given)}"
    if kind in {"list_type", "tuple_type"}:
        return f"must be a list, not {_named(given)}"
    for kinds, expected in _NUMBERS.items():
        if kind in kinds:
            return f"must be {expected}, not {_named(given)}"
    message = detail["msg"].removeprefix("Input should be ")
    return message if message == detail["msg"] else f"must be {message}"


_NUMBERS = {
    ("float_type", "float_parsing", "decimal_type", "decimal_parsing"): "a number",
    ("int_type", "int_parsing", "int_from_float"): "a whole number",
    ("bool_type", "bool_parsing"): "true or false",
}


def _named(value: Any) -> str:
    if value is None:
        return "empty"
    names = {dict: "a mapping", list: "a list", bool: "a boolean"}
    return names.get(type(value)) or _SHORT.repr(value)


def _fields_at(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    _, annotation = _walk(model, loc)
    return [info.alias or name for member in _members(annotation) for name, info in _fields(member).items()]


def _fields(annotation: Any) -> Mapping[str, FieldInfo]:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation.model_fields if is_model else {}


def _descend(annotation: Any, step: int | str) -> Any:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in {list, tuple, Sequence}:
        return parts[0]
    if origin is dict:
        return parts[1]
    by_name = {info.alias or name: info.annotation for name, info in _fields(annotation).items()}
    return by_name.get(str(step), Any)


def _tagged(members: Sequence[Any], tag: str) -> Any:
    """Return the union member with a tag: its class name or its literal discriminator."""
    for member in members:
        literals = {
            value
            for info in _fields(member).values()
            if get_origin(info.annotation) is Literal
            for value in get_args(info.annotation)
        }
        if tag in literals or tag == getattr(member, "__name__", None):
            return member
    return Any


def _members(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin is Union or origin is types.UnionType:
        return [item for part in get_args(annotation) if part is not type(None) for item in _members(part)]
    return [annotation]
