"""Checks that an answer is JSON that follows a schema; lists every mismatch."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass
from agenteval.core.text import json_in
from agenteval.metrics.base import Observation, Outcome, literal_equal, shown
from agenteval.metrics.resources import Resources
from agenteval.metrics.similarity import similarity
from agenteval.metrics.text import mismatch
from agenteval.suite.forms import FieldSpec, FieldType, TextMatch

# Number of mismatches that a message lists; the others are counted.
_NAMED = 5

_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*")

_ROUNDING = 1e-9

_LISTS = frozenset({"list", "set"})

_ANY = FieldType("any")


@dataclass(frozen=True)
class Schema:
    """1 if the answer is JSON that follows the schema, else 0; text around the JSON is ignored.

    Args:
        model: the embedding model for fields with a reference text; default: the model of the run.
    """

    schema: FieldSpec
    resources: Resources
    model: ModelSpec | None = None
    requires: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if has_reference_texts(self.schema):
            self.resources.embeddings.check(self.model)

    @property
    def has_patterns(self) -> bool:
        """Whether the metric searches for a pattern of the suite, which may take long."""
        return any(text.strategy == "match" for text in _texts(self.schema))

    def measure(self, observation: Observation) -> Outcome | Awaitable[Outcome]:
        """Check the answer; only fields with a reference text need a model."""
        try:
            value = parsed(observation.response)
        except ValueError as error:
            return Outcome(0.0, passed=False, reason=str(error))
        try:
            problems, alike = check(self.schema, value)
        except RecursionError:
            return Outcome(0.0, passed=False, reason="the answer is nested too deeply")
        return self._with_similar(problems, alike) if alike else _outcome(problems)

    async def _with_similar(self, problems: list[str], alike: list[SimilarText]) -> Outcome:
        found = await asyncio.gather(*(self._unlike(item) for item in alike))
        return _outcome(problems + [problem for problem in found if problem is not None])

    async def _unlike(self, alike: SimilarText) -> str | None:
        score = await similarity(alike.expected, alike.text, self.resources, self.model)
        if score >= alike.threshold - _ROUNDING:
            return None
        wanted = f"expected a text like {shown(alike.expected)} (at least {alike.threshold:g})"
        return f"{alike.path}: {wanted}, got {shown(alike.text)} ({score:.3f})"


@dataclass(frozen=True)
class SimilarText:
    """A text inside an answer that must be similar to a reference."""

    path: str
    text: str
    expected: str
    threshold: float


def parsed(text: str) -> Any:
    """Parse the JSON of an answer."""
    try:
        return json_in(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is not JSON ({error}): {shown(text)}") from None


def check(spec: FieldSpec, value: Any) -> tuple[list[str], list[SimilarText]]:
    """Compare a JSON value with a schema.

    Returns:
        Every mismatch with its JSON path, and the texts whose similarity must still be checked.
    """
    alike: list[SimilarText] = []
    return list(_mismatches(spec, value, "$", alike)), alike


def _outcome(problems: list[str]) -> Outcome:
    if not problems:
        return Outcome(1.0, passed=True)
    more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
    return Outcome(0.0, passed=False, reason="; ".join(problems[:_NAMED]) + more)


def _mismatches(spec: FieldSpec, value: Any, path: str, alike: list[SimilarText]) -> Iterator[str]:
    fitting = [kind for kind in spec.types or (_ANY,) if _has_type(value, kind)]
    if not fitting:
        yield from _type_mismatches(spec.types, value, path)
        return
    attempts = [_attempt(spec, kind, value, path) for kind in fitting]
    problems, texts = next((attempt for attempt in attempts if not attempt[0]), attempts[0])
    yield from problems
    alike += texts
    if isinstance(value, list):
        yield from _list_mismatches(spec, value, path, alike)
    if spec.enum is not None and enum_names_lists(spec.enum):
        yield from _enum_mismatches(spec.enum, value, path)
    if spec.fields is not None and isinstance(value, dict):
        yield from _field_mismatches(spec.fields, value, path, alike)


def _type_mismatches(types: Sequence[FieldType], value: Any, path: str) -> Iterator[str]:
    inner = types[0].item if len(types) == 1 else None
    if inner is not None and isinstance(value, list):
        for index, item in enumerate(value):
            if not _has_type(item, inner):
                yield from _type_mismatches((inner,), item, f"{path}[{index}]")
    else:
        yield f"{path}: expected {' or '.join(map(str, types))}, got {_described(value)}"


def _attempt(spec: FieldSpec, kind: FieldType, value: Any, path: str) -> tuple[list[str], list[SimilarText]]:
    alike: list[SimilarText] = []
    repetition = _repetition(kind, value, path)
    problems = [] if repetition is None else [repetition]
    for place, leaf in _leaves(kind, value, path):
        problems += _leaf_mismatches(spec, leaf, place, alike)
    return problems, alike


def enum_names_lists(enum: Iterable[Any]) -> bool:
    """Return whether the allowed values are whole lists instead of list items."""
    return any(isinstance(item, list) for item in enum)


def _leaves(kind: FieldType, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that the limits of a field apply to: the value, or all items of its lists."""
    if kind.name not in _LISTS:
        yield path, value
        return
    for index, item in enumerate(value):
        yield from _leaves(kind.item or _ANY, item, f"{path}[{index}]")


def _field_mismatches(
    fields: Mapping[str, FieldSpec], value: Mapping[str, Any], path: str, alike: list[SimilarText]
) -> Iterator[str]:
    for name, spec in fields.items():
        place = path + (f".{name}" if _PLAIN_KEY.fullmatch(name) else f"[{name!r}]")
        if name in value:
            yield from _mismatches(spec, value[name], place, alike)
        elif spec.required:
            wanted = " or ".join(map(str, spec.types)) or "a value"
            yield f"{place}: expected {wanted}, but it is missing"


def _list_mismatches(spec: FieldSpec, value: list[Any], path: str, alike: list[SimilarText]) -> Iterator[str]:
    yield from _outside(len(value), spec.min_items, spec.max_items, path, " entries")
    if spec.items is not None:
        for index, item in enumerate(value):
            yield from _mismatches(spec.items, item, f"{path}[{index}]", alike)


def _leaf_mismatches(spec: FieldSpec, value: Any, path: str, alike: list[SimilarText]) -> Iterator[str]:
    if spec.enum is not None and not enum_names_lists(spec.enum):
        yield from _enum_mismatches(spec.enum, value, path)
    if isinstance(value, str):
        yield from _outside(len(value), spec.min_length, spec.max_length, path, " characters")
    if _is_number(value):
        yield from _outside(value, spec.min, spec.max, path, "")
    if spec.text is not None:
        yield from _text_mismatches(spec.text, value, path, alike)


def _enum_mismatches(enum: Sequence[Any], value: Any, path: str) -> Iterator[str]:
    if not any(literal_equal(allowed, value) for allowed in enum):
        yield f"{path}: expected one of {', '.join(map(shown, enum))}, got {shown(value)}"


def _outside(number: float, least: float | None, most: float | None, path: str, unit: str) -> Iterator[str]:
    if least is not None and number < least:
        yield f"{path}: expected at least {shown(least)}{unit}, got {shown(number)}"
    if most is not None and number > most:
        yield f"{path}: expected at most {shown(most)}{unit}, got {shown(number)}"


def _text_mismatches(match: TextMatch, value: Any, path: str, alike: list[SimilarText]) -> Iterator[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if match.strategy == "similar":
        alike.append(SimilarText(path, text, match.expected[0], match.threshold or 0.0))
    elif (problem := mismatch(match, text)) is not None:
        yield f"{path}: {problem}"


def _has_type(value: Any, kind: FieldType) -> bool:
    if kind.name in _LISTS:
        inner = kind.item
        return isinstance(value, list) and (inner is None or all(_has_type(item, inner) for item in value))
    if kind.name == "int":
        return _is_number(value) and (isinstance(value, int) or value.is_integer())
    if kind.name == "float":
        return _is_number(value)
    simple = {"str": str, "bool": bool, "dict": dict, "any": object}
    return isinstance(value, simple[kind.name])


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    )


def _repetition(kind: FieldType, value: Any, path: str) -> str | None:
    """Return a message about a repeated entry of a set, or of a set inside lists; ``None`` without one."""
    if kind.name not in _LISTS:
        return None
    seen: set[str] = set()
    for item in value if kind.name == "set" else ():
        key = json.dumps(_comparable(item), sort_keys=True)
        if key in seen:
            return f"{path}: expected no entry twice, got {shown(item)} again"
        seen.add(key)
    inner = (
        (_repetition(kind.item, item, f"{path}[{index}]") for index, item in enumerate(value)) if kind.item else ()
    )
    return next((found for found in inner if found is not None), None)


def _comparable(value: Any) -> Any:
    """Return the value with whole floats as integers, so that 1 equals 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    return [_comparable(item) for item in value] if isinstance(value, list) else value


def _described(value: Any) -> str:
    names = {dict: "dict", list: "list", str: "str", bool: "bool", int: "int", float: "float"}
    return "null" if value is None else f"{names[type(value)]} {shown(value)}"


def has_reference_texts(spec: FieldSpec) -> bool:
    """Return whether a schema compares texts with references by their embeddings."""
    return any(text.strategy == "similar" for text in _texts(spec))


def _texts(spec: FieldSpec) -> Iterator[TextMatch]:
    if spec.text is not None:
        yield spec.text
    for inner in (spec.fields or {}).values():
        yield from _texts(inner)
    if spec.items is not None:
        yield from _texts(spec.items)


_NAMES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object"}

_ANY_TYPE = FieldType("any")


def json_schema_of(spec: FieldSpec) -> dict[str, Any]:
    """Return the equivalent JSON Schema; text matches are omitted, because JSON Schema has no equivalent."""
    kinds = [_type_schema(kind, spec) for kind in spec.types or (_ANY_TYPE,)]
    schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    counts = {"minItems": spec.min_items, "maxItems": spec.max_items}
    items = {"items": json_schema_of(spec.items)} if spec.items is not None else {}
    enum = {"enum": list(spec.enum)} if spec.enum is not None and enum_names_lists(spec.enum) else {}
    return _both(schema, {**_given(counts), **items, **enum})


def _type_schema(kind: FieldType, spec: FieldSpec) -> dict[str, Any]:
    if kind.name in {"list", "set"}:
        unique = {"uniqueItems": True} if kind.name == "set" else {}
        inner = _type_schema(kind.item or _ANY_TYPE, spec)
        return {"type": "array", **({"items": inner} if inner else {}), **unique}
    schema: dict[str, Any] = {"type": _NAMES[kind.name]} if kind != _ANY_TYPE else {}
    if kind.name in {"str", "any"}:
        schema |= _given({"minLength": spec.min_length, "maxLength": spec.max_length})
    if kind.name in {"int", "float", "any"}:
        schema |= _given({"minimum": spec.min, "maximum": spec.max})
    if spec.enum is not None and not enum_names_lists(spec.enum):
        schema["enum"] = list(spec.enum)
    if kind.name == "dict" and spec.fields is not None:
        schema["properties"] = {name: json_schema_of(field) for name, field in spec.fields.items()}
        schema["required"] = [name for name, field in spec.fields.items() if field.required]
    return schema


def _given(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _both(schema: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    return {**schema, **further} if schema.keys().isdisjoint(further) else {"allOf": [schema, further]}
