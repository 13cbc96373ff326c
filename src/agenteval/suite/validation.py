"""Turns what pydantic says about a file into problems with a line, a key and what is allowed."""

from __future__ import annotations

import difflib
import reprlib
import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agenteval.errors import Problem
from agenteval.suite.document import Document, KeyPath

ModelT = TypeVar("ModelT", bound=BaseModel)

# Values are named in messages, not reproduced.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxlevel = 2


def validate(
    model: type[ModelT], value: Any, document: Document, at: KeyPath = ()
) -> tuple[ModelT | None, list[Problem]]:
    """Validate a part of a document.

    Args:
        model: what the part must be.
        value: the part.
        document: where it came from, for lines.
        at: its place in the document.

    Returns:
        The validated model (``None`` if it is wrong) and every problem found.
    """
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, [_problem(detail, model, value, document, at) for detail in error.errors()]


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where something close is allowed, else an empty text."""
    close = difflib.get_close_matches(str(name), list(allowed), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def one_of(names: Iterable[str]) -> str:
    """A list of allowed names for a message."""
    return ", ".join(names)


def _problem(detail: ErrorDetails, model: type[BaseModel], value: Any, document: Document, at: KeyPath) -> Problem:
    path = [*at, *_path_in_value(detail, value)]
    if detail["type"] == "union_tag_invalid":
        path.append("type")
    return document.problem(path, _message(detail, model))


def _path_in_value(detail: ErrorDetails, value: Any) -> list[int | str]:
    """Pydantic's location without the names of union members, which stand in no file."""
    path: list[int | str] = []
    for step in detail["loc"]:
        if _holds(value, step):
            value = value[step]
            path.append(step)
    # The one key that is rightly named although nobody wrote it.
    return [*path, detail["loc"][-1]] if detail["type"] == "missing" else path


def _holds(value: Any, step: int | str) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "extra_forbidden":
        allowed = _fields_at(model, detail["loc"][:-1])
        return f"unknown key{did_you_mean(str(detail['loc'][-1]), allowed)}; allowed: {one_of(allowed)}"
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


def _not_allowed(given: Any, expected: str) -> str:
    allowed = [part.strip().strip("'") for part in expected.split(",")]
    close = did_you_mean(given, allowed) if isinstance(given, str) else ""
    return f"{_named(given)} is not allowed{close}; allowed: {one_of(allowed)}"


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
    message = detail["msg"].removeprefix("Input should be ")
    return message if message == detail["msg"] else f"must be {message}"


def _named(value: Any) -> str:
    if value is None:
        return "empty"
    names = {dict: "a mapping", list: "a list", bool: "a boolean"}
    return names.get(type(value)) or _SHORT.repr(value)


def _fields_at(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """The keys allowed where pydantic points to."""
    annotation: Any = model
    for step in loc:
        annotation = _descend(annotation, step)
    members = [item for item in _members(annotation) if isinstance(item, type) and issubclass(item, BaseModel)]
    names: list[str] = []
    for member in members:
        names.extend(info.alias or name for name, info in member.model_fields.items())
    return list(dict.fromkeys(names))


def _descend(annotation: Any, step: int | str) -> Any:
    for member in _members(annotation):
        origin = get_origin(member)
        if isinstance(step, int):
            if origin in {list, tuple, Sequence}:
                return get_args(member)[0]
        elif isinstance(member, type) and issubclass(member, BaseModel):
            by_name = {info.alias or name: info for name, info in member.model_fields.items()}
            if step in by_name:
                return by_name[step].annotation
        elif origin is dict:
            return get_args(member)[1]
    return _tagged(annotation, str(step))


def _tagged(annotation: Any, tag: str) -> Any:
    """The member of a union that pydantic calls ``tag``: by class name or by its literal discriminator."""
    for member in _members(annotation):
        if not (isinstance(member, type) and issubclass(member, BaseModel)):
            continue
        literals = {
            value
            for info in member.model_fields.values()
            if get_origin(info.annotation) is Literal
            for value in get_args(info.annotation)
        }
        if member.__name__ == tag or tag in literals:
            return member
    return annotation


def _members(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, without ``Annotated`` and ``None``."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin is Union or origin is types.UnionType:
        return [item for part in get_args(annotation) if part is not type(None) for item in _members(part)]
    return [annotation]
