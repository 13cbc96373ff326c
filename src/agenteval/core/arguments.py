"""Checks values of callers against the type hints of the public API.

The type hints are the only declaration: ``checked`` reads the signature of a function, and ``problems`` reads any
hint, down to the fields of dataclasses. Nothing is converted, so that ``"3"`` is not a number.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text import is_too_long

P = ParamSpec("P")
R = TypeVar("R")

_CONFIG = ConfigDict(
    strict=True, arbitrary_types_allowed=True, allow_inf_nan=False, revalidate_instances="always", defer_build=True
)
# Types that public dataclasses import for type checkers alone; suites that were loaded bring them along.
_UNCHECKED = ("Aggregate", "Document", "Evaluation", "HolodeckProject", "Problem", "Suite")
# Kind of an error → what is expected instead.
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "True or False",
    "none_required": "None",
    "callable_type": "a function",
    "tuple_type": "a tuple",
    "list_type": "a list",
    "set_type": "a set",
    "frozen_set_type": "a frozenset",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "finite_number": "a finite number",
}
_SHORT = 24
_LONE = re.compile(r"[\ud800-\udfff]")


def _path_problem(path: str | Path) -> str | Path:
    if "\0" in str(path):
        raise ValueError("must not contain a NUL character")
    if is_too_long(str(path)):
        raise ValueError("is too long for a path")
    return path


#: A text that is not empty.
Name = Annotated[str, Field(min_length=1)]
#: The path of a file or directory.
FilePath = Annotated[Name | Path, AfterValidator(_path_problem)]


def _as_json(value: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON cannot express a value: {error}") from None
    return value


#: Values that JSON can express.
JsonObject = Annotated[Mapping[str, Any], AfterValidator(_as_json)]


def _config_error(problems: Iterable[Problem]) -> Exception:
    return ConfigError(problems)


def checked(
    function: Callable[P, R], raises: Callable[[Iterable[Problem]], Exception] = _config_error
) -> Callable[P, R]:
    """Return a function that checks its arguments against its signature before it runs.

    An argument that is hinted as ``Iterable`` is read once and passed as a tuple.
    """
    signature = inspect.signature(function)

    def bind(args: tuple[Any, ...], given: dict[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*args, **given)
        except TypeError as error:
            raise raises([Problem(f"arguments: {error}", kind=Kind.OPTION)]) from None
        found: list[Problem] = []
        for name, hint in _hints(function).items():
            if name in bound.arguments:
                if get_origin(hint) is tuple:
                    bound.arguments[name] = _read_once(bound.arguments[name])
                value = bound.arguments[name]
                found += problems(value, hint, name) or surrogates(value, name)
        if found:
            raise raises(found)
        return bound

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def call_async(*args: P.args, **given: P.kwargs) -> Any:
            bound = bind(args, given)
            return await function(*bound.args, **bound.kwargs)

        return cast("Callable[P, R]", call_async)

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        bound = bind(args, given)
        return function(*bound.args, **bound.kwargs)

    return call


def problems(value: object, hint: Any, name: str) -> list[Problem]:
    """Return the problems of a value, each with the path of its wrong part.

    Messages contain the type of what was given, and short numbers, but no text: it may be a secret.
    """
    try:
        _adapter(hint).validate_python((value,), strict=True)
    except ValidationError as error:
        return _problems(error.errors(include_url=False), name)
    except RecursionError:
        return [Problem("is nested too deeply", path=name, kind=Kind.OPTION)]
    return []


def surrogates(value: object, name: str) -> list[Problem]:
    """Return a problem for each text with a lone surrogate, because files and requests cannot contain it.

    Args:
        value: texts, collections and dataclasses of agenteval; other objects are not inspected.
    """
    try:
        return [
            Problem("must not contain a lone surrogate", path=path, kind=Kind.OPTION)
            for path in _surrogates(value, name)
        ]
    except RecursionError:
        return [Problem("is nested too deeply", path=name, kind=Kind.OPTION)]


def _surrogates(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if not value.isascii() and _LONE.search(value):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _surrogates(key, path)
            yield from _surrogates(item, f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else path)
    elif isinstance(value, tuple | list | Set):
        for index, item in enumerate(value):
            yield from _surrogates(item, f"{path}[{index}]")
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith("agenteval."):
        for item in fields(value):
            yield from _surrogates(getattr(value, item.name), f"{path}.{item.name}")


@cache
def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    found = {}
    declared = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = declared[name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            hint = _several(hint)
        elif get_origin(hint) is Iterable:
            hint = _several(get_args(hint)[0])
        found[name] = hint
    return found


def _several(hint: Any) -> Any:
    return types.GenericAlias(tuple, (hint, ...))


def _read_once(value: object) -> object:
    is_many = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return tuple(cast("Iterable[Any]", value)) if is_many else value


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    # In a tuple, as pydantic takes no configuration beside a dataclass.
    alone: Any = types.GenericAlias(tuple, (hint,))
    adapter: TypeAdapter[Any] = TypeAdapter(alone, config=_CONFIG)
    adapter.rebuild(_types_namespace=dict.fromkeys(_UNCHECKED, Any))
    return adapter


def _problems(errors: Iterable[ErrorDetails], name: str) -> list[Problem]:
    """One problem for each wrong part; alternatives of a union that do not fit at all are left out."""
    by_path: dict[str, list[ErrorDetails]] = {}
    for detail in errors:
        by_path.setdefault(_path(name, detail["loc"][1:]), []).append(detail)
    wrong = [path for path in by_path if not any(other.startswith((f"{path}.", f"{path}[")) for other in by_path)]
    return [Problem(_message(by_path[path]), path=path, kind=Kind.OPTION) for path in wrong]


def _path(name: str, steps: Iterable[int | str]) -> str:
    """The path of a part. Pydantic's names of alternatives are no part of it: classes, ``str``, ``tuple[...]``."""
    for step in steps:
        if isinstance(step, int):
            name += f"[{step}]"
        elif step.isidentifier() and step.islower() and step not in _ALTERNATIVES:
            name += f".{step}"
    return name


_ALTERNATIVES = frozenset({"str", "int", "float", "bool", "none", "callable", "dict", "list", "tuple", "set"})


def _message(details: list[ErrorDetails]) -> str:
    special = [detail for detail in details if detail["type"] == "value_error"]
    if special:
        return str((special[0].get("ctx") or {}).get("error", special[0]["msg"]))
    expected = list(dict.fromkeys(map(_expected, details)))
    choices = " or ".join(filter(None, [", ".join(expected[:-1]), expected[-1]]))
    return f"must be {choices}, not {described(details[0]['input'])}"


def _expected(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind in {"is_instance_of", "dataclass_exact_type", "dataclass_type", "model_type"}:
        of = str(context.get("class_name") or context["class"])
        return f"a path ({of})" if of == "Path" else f"an instance of {of}"
    if kind in {"too_short", "string_too_short"}:
        return "a text that is not empty" if kind == "string_too_short" else "a collection that is not empty"
    return _EXPECTED.get(kind) or detail["msg"].removeprefix("Input should be ")


def described(value: object) -> str:
    """Return the type of a value for a message, with the value itself only if it cannot be a secret."""
    if value is None or isinstance(value, bool):
        return str(value)
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, int | float):
        text = repr(value) if not isinstance(value, int) or value.bit_length() < 64 else ""
        return text if text and len(text) <= _SHORT else kind
    if isinstance(value, str) and not value:
        return "an empty text"
    module = type(value).__module__
    return "a text" if isinstance(value, str) else f"{kind if module == 'builtins' else f'{module}.{kind}'}"
