"""Reads the expected answer of an AgentCI case, and the schema of a judge's answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import Problem
from agenteval.core.text import did_you_mean, join_choices, pattern_problem
from agenteval.core.validation import validate
from agenteval.suite.formats.agentci.schema import EvalEntry, FieldEntry, OutputEntry, TextMatchEntry
from agenteval.suite.formats.base import Findings
from agenteval.suite.forms import FieldSpec, FieldType, TextMatch

_PARTS = {
    "contains": "contains an empty one",
    "contains_any": "contains an empty one",
    "startswith": "starts with an empty one",
    "endswith": "ends with an empty one",
    "match": "matches this pattern",
}
STRATEGIES = ("exact", "contains", "contains_any", "startswith", "endswith", "match", "similar")
_TYPES = ("str", "int", "float", "bool", "dict", "list", "set", "any")
# The names of JSON Schema.
_SYNONYMS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "array": "list",
}
_OTHER_NAMES = {
    **_SYNONYMS,
    "text": "str",
    "double": "float",
    "decimal": "float",
    "table": "dict",
    "map": "dict",
}
_GENERIC = re.compile(r"(list|set|array)\[(.*)\]")
# Deeper than any answer, and shallow enough for recursive functions.
_DEEPEST = 60
_DEEPEST_TYPE = 10


Expected = TextMatch | FieldSpec | None
EntryT = TypeVar("EntryT", bound=BaseModel)
_DICT = FieldType("dict")
_FIELD_KEYS = frozenset(FieldEntry.model_fields)
_TEXT_LIMITS = ("min_length", "max_length")
_NUMBER_LIMITS = ("min", "max")
_LIST_LIMITS = ("min_items", "max_items")


class ExpectedOutputReader(Findings):
    """Reads the outputs of one file, and collects ``problems`` and ``oddities``."""

    def __init__(self, document: Document, problems: list[Problem], oddities: list[str]) -> None:
        self.document = document
        self.problems = problems
        self.warnings = oddities

    def output(self, value: Any, at: KeyPath, *, case_sensitive: bool) -> Expected:
        """Return ``output`` of a case: a text to match, or the fields of a JSON object."""
        if isinstance(value, str):
            return TextMatch("exact", (value,), case_sensitive)
        if not isinstance(value, dict):
            self._problem(at, f"must be text in quotes, or one of {join_choices(STRATEGIES)}, schema; not {value!r}")
            return None
        entry = self._valid(OutputEntry, value, at)
        if entry is None or not self._has_one_strategy(entry, at, (*STRATEGIES, "schema")):
            return None
        if entry.schema_ is not None:
            fields = self.fields(entry.schema_, (*at, "schema"), case_sensitive=case_sensitive)
            return FieldSpec(types=(_DICT,), fields=fields)
        return self._text_match(entry, at, case_sensitive=case_sensitive)

    def fields(self, table: Mapping[str, Any], at: KeyPath, *, case_sensitive: bool = False) -> dict[str, FieldSpec]:
        """Return the fields of an object."""
        if len(at) > _DEEPEST:
            self._problem(at, "is nested too deeply")
            return {}
        read = {name: self._field(value, (*at, name), case_sensitive) for name, value in table.items()}
        return {name: spec for name, spec in read.items() if spec is not None}

    def _field(self, value: Any, at: KeyPath, case_sensitive: bool) -> FieldSpec | None:
        if not isinstance(value, dict):
            self._problem(at, f'must be a table, for instance {{ type = "str" }}, not {value!r}')
            return None
        if not is_definition(value):
            return self._object(value, at, case_sensitive)
        entry = self._valid(FieldEntry, value, at)
        if entry is None:
            return None
        types, fields = self._object_or_types(entry, at, case_sensitive)
        self._check_limits(entry, types, at)
        return FieldSpec(
            types=types,
            required=entry.required and "default" not in entry.model_fields_set,
            text=None if _is_schema(entry.value) else self._value(entry.value, (*at, "value"), case_sensitive),
            enum=None if entry.enum is None else tuple(entry.enum),
            min_length=entry.min_length,
            max_length=entry.max_length,
            min=entry.min,
            max=entry.max,
            min_items=entry.min_items,
            max_items=entry.max_items,
            fields=fields,
            items=None if entry.items is None else self._items(entry.items, (*at, "items"), case_sensitive),
        )

    def _object_or_types(
        self, entry: FieldEntry, at: KeyPath, case_sensitive: bool
    ) -> tuple[tuple[FieldType, ...], Mapping[str, FieldSpec] | None]:
        """Return the types of a field, and the fields of ``type = {…}`` or ``value = { schema = {…} }``."""
        if isinstance(entry.type, dict):
            return (_DICT,), self.fields(entry.type, (*at, "type"), case_sensitive=case_sensitive)
        types = self._types(entry.type, (*at, "type"))
        if not _is_schema(entry.value):
            return types, None
        if types not in {(), (_DICT,)}:
            self._problem((*at, "value"), f"`schema` is for objects (dict), not for {' or '.join(map(str, types))}")
        schema_at = (*at, "value", "schema")
        return (_DICT,), self.fields(entry.value["schema"], schema_at, case_sensitive=case_sensitive)

    def _items(self, table: Mapping[str, Any], at: KeyPath, case_sensitive: bool) -> FieldSpec | None:
        read = self._field if is_definition(table) else self._object
        return read(table, at, case_sensitive)

    def _object(self, table: Mapping[str, Any], at: KeyPath, case_sensitive: bool) -> FieldSpec:
        return FieldSpec(types=(_DICT,), fields=self.fields(table, at, case_sensitive=case_sensitive))

    def _types(self, value: Any, at: KeyPath) -> tuple[FieldType, ...]:
        if value is None:
            return ()
        names = value if isinstance(value, list) else [value]
        if not names:
            self._problem(at, "must name at least one type")
        return tuple(kind for name in names if (kind := self._type(name, at)) is not None)

    def _type(self, name: Any, at: KeyPath) -> FieldType | None:
        if not isinstance(name, str):
            self._problem(at, f"must be the name of a type, a list of names, or a table of fields; not {name!r}")
            return None
        text = name.strip()
        if text.count("[") > _DEEPEST_TYPE:
            self._problem(at, f"lists are nested more than {_DEEPEST_TYPE} levels deep")
            return None
        generic = _GENERIC.fullmatch(text)
        if generic:
            item = self._type(generic.group(2), at)
            kind = _SYNONYMS.get(generic.group(1), generic.group(1))
            return None if item is None else FieldType(kind, item)  # type: ignore[arg-type]
        text = _SYNONYMS.get(text, text)
        if text in _TYPES:
            return FieldType(text)  # type: ignore[arg-type]
        meant = _OTHER_NAMES.get(text.lower())
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(text.partition("[")[0], _TYPES)
        if "|" in text or text.lower().startswith(("union[", "optional[")):
            hint = '; several types are a list: ["int", "str"]'
        allowed = "str, int, float, bool, dict, list, list[…], set[…], any"
        self._problem(at, f"no type is called {name!r}{hint}; allowed: {allowed}")
        return None

    def _value(self, value: Any, at: KeyPath, case_sensitive: bool) -> TextMatch | None:
        if value is None:
            return None
        if isinstance(value, str):
            return TextMatch("exact", (value,), case_sensitive)
        if not isinstance(value, dict):
            self._problem(at, f"must be text in quotes, or one of {join_choices(STRATEGIES)}; not {value!r}")
            return None
        entry = self._valid(TextMatchEntry, value, at)
        if entry is None or not self._has_one_strategy(entry, at, STRATEGIES):
            return None
        return self._text_match(entry, at, case_sensitive=case_sensitive)

    def _text_match(self, entry: TextMatchEntry, at: KeyPath, *, case_sensitive: bool) -> TextMatch | None:
        strategy = next(name for name in STRATEGIES if getattr(entry, name) is not None)
        given = getattr(entry, strategy)
        expected = tuple(given) if isinstance(given, list) else (given,)
        if not expected:
            self._problem((*at, strategy), "must name at least one text")
            return None
        if strategy == "match" and (wrong := pattern_problem(given)) is not None:
            self._problem((*at, strategy), f"{given!r} is not a regular expression: {wrong}")
            return None
        sensitive = entry.case_sensitive or case_sensitive
        match = TextMatch(strategy, expected, sensitive, entry.threshold)  # type: ignore[arg-type]
        has_empty = any(not (text if sensitive else text.strip()) for text in expected)
        if match.matches_everything or (strategy == "contains" and has_empty):
            what = "this" if match.matches_everything else "an empty text"
            message = f"every text {_PARTS[strategy]}, so {what} checks nothing"
            self._warn((*at, strategy), message)
        elif entry.threshold == 0:
            message = "every text reaches a similarity of 0, so this checks nothing"
            self._warn((*at, "threshold"), message)
        return match

    def _has_one_strategy(self, entry: TextMatchEntry, at: KeyPath, allowed: tuple[str, ...]) -> bool:
        given = [name for name in allowed if getattr(entry, "schema_" if name == "schema" else name) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} are given" if given else "none is given"
            self._problem(at, f"needs exactly one of {join_choices(allowed)}; {found}")
            return False
        if (given == ["similar"]) != (entry.threshold is not None):
            what = (
                "`similar` needs a `threshold` from 0 to 1"
                if given == ["similar"]
                else "`threshold` is for `similar`"
            )
            example = '{ similar = "…", threshold = 0.8 }'
            self._problem(at, f"{what}: {example}")
            return False
        return True

    def _check_limits(self, entry: FieldEntry, types: tuple[FieldType, ...], at: KeyPath) -> None:
        names = {_innermost(kind) for kind in types} | {kind.name for kind in types}
        groups = (
            (_TEXT_LIMITS, {"str"}, "texts (str)"),
            (_NUMBER_LIMITS, {"int", "float"}, "numbers (int, float)"),
            (_LIST_LIMITS, {"list", "set"}, "lists (list, set)"),
            (("items",), {"list", "set"}, "lists (list, set)"),
        )
        for keys, fitting, what in groups:
            given = [key for key in keys if getattr(entry, key) is not None]
            if given and types and not names & (fitting | {"any"}):
                self._problem((*at, given[0]), f"`{given[0]}` is for {what}, not for {' or '.join(map(str, types))}")
        for low, high in (_TEXT_LIMITS, _NUMBER_LIMITS, _LIST_LIMITS):
            least, most = getattr(entry, low), getattr(entry, high)
            if least is not None and most is not None and least > most:
                self._problem((*at, low), f"`{low}` ({least}) is above `{high}` ({most}), so nothing can fit")

    def _valid(self, model: type[EntryT], value: Any, at: KeyPath) -> EntryT | None:
        entry, problems = validate(model, value, self.document, at)
        # A number would be refused twice.
        self.problems += dict.fromkeys(problems)
        return entry


def exact_text(value: Any, at: KeyPath) -> tuple[KeyPath, str] | None:
    """Return the whole text that ``output`` expects, with its key path; ``None`` if it expects anything else."""
    if isinstance(value, str):
        return at, value
    text = value.get("exact") if isinstance(value, dict) else None
    return ((*at, "exact"), text) if isinstance(text, str) else None


def is_definition(table: Mapping[str, Any]) -> bool:
    """Return whether a table defines one value; otherwise it is an object whose keys are fields.

    ``{ type = "str" }`` defines a text, and ``{ amount = { type = "float" } }`` is an object. An object can have a
    field with the name ``type`` or ``value``.
    """
    kind = table.get("type")
    if isinstance(kind, str | list):
        return True
    if isinstance(kind, dict):
        return table.keys() <= _FIELD_KEYS and all(isinstance(item, dict) for item in kind.values())
    value = table.get("value")
    says = isinstance(value, dict) and not value.keys().isdisjoint(STRATEGIES)
    return not table or says or any(not isinstance(item, dict) for item in table.values())


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"schema"} and isinstance(value["schema"], dict)


def _innermost(kind: FieldType) -> str:
    return kind.name if kind.item is None else _innermost(kind.item)


_AT = ("eval", "llm", "output_schema")
# Names of the score field, by priority; without any of them the mean of all numbers counts.
_SCORES = ("score", "overall_score", "overall", "rating")
_HIGHEST = 10.0
_SCORED: Mapping[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "reasoning": {"type": "string"}},
    "required": ["score"],
}
# References and combinations of schemas that are followed.
_MOST_STEPS = 20
_NUMBERS = frozenset({"int", "float"})


def judge_options(
    entry: EvalEntry, document: Document, problems: list[Problem], warnings: list[str]
) -> dict[str, Any] | None:
    """Return the judge's options, which all cases share.

    Returns:
        ``prompt``; ``fields`` or ``json_schema``: the form of the reply; ``scores``: the fields of the score;
        ``scale``: its lowest and highest value. ``None`` with problems.
    """
    if entry.llm is None:
        return None
    written = entry.llm.output_schema
    options: dict[str, Any] = {"prompt": entry.llm.prompt, "fields": None, "json_schema": None}
    highest = max([_HIGHEST, *_limits(document)])
    # Without a scale, the limits of the cases decide.
    scale = (0.0, _HIGHEST if highest <= _HIGHEST else max(100.0, highest))
    if written is None:
        return {**options, "scores": ("score",), "scale": scale}
    if isinstance(written, str):
        schema = _json_schema(written, document, problems)
        if schema is None:
            return None
        numbers = _numbers_of_json_schema(schema)
        if _is_any_object(schema):
            # Such a schema does not tell the judge what to reply.
            numbers = _numbers_of_json_schema(_SCORED)
            schema = {**schema, **_SCORED}
        options["json_schema"] = schema
    else:
        before = len(problems)
        fields = ExpectedOutputReader(document, problems, warnings).fields(written, _AT)
        if len(problems) > before:
            return None
        numbers = _numbers_of_fields(fields)
        options["fields"] = FieldSpec(types=(FieldType("dict"),), fields=fields)
    if not numbers:
        message = 'has no number that could be the score; for instance: score = { type = "int", min = 1, max = 10 }'
        problems.append(document.problem(_AT, message))
        return None
    named = next((name for name in _SCORES if name in numbers), None)
    scores = (named,) if named is not None else tuple(numbers)
    ranges = [numbers[name] for name in scores]
    lows = [low if low is not None else scale[0] for low, _ in ranges]
    highs = [high if high is not None else scale[1] for _, high in ranges]
    return {**options, "scores": scores, "scale": (min(lows), max(highs))}


def _limits(document: Document) -> list[float]:
    cases = document.data["eval"].get("cases", [])
    scores = [case.get("score") for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []
    numbers = [value for score in scores if isinstance(score, dict) for value in score.values()]
    return [float(value) for value in numbers if isinstance(value, int | float)]


def _json_schema(text: str, document: Document, problems: list[Problem]) -> Mapping[str, Any] | None:
    import jsonschema

    try:
        schema = json.loads(text)
        if not isinstance(schema, dict):
            raise ValueError("it is not an object")
        jsonschema.Draft202012Validator.check_schema(schema)
    except (ValueError, RecursionError, jsonschema.SchemaError) as error:
        said = error.message if isinstance(error, jsonschema.SchemaError) else str(error)
        problems.append(document.problem(_AT, f"is not a JSON Schema: {said}"))
        return None
    if unusable := _unusable_keyword(schema):
        problems.append(document.problem(_AT, unusable))
        return None
    return schema


def _unusable_keyword(schema: Any) -> str | None:
    """Return why a schema cannot be used; ``None`` if it can."""
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            for key in ("$ref", "$dynamicRef"):
                reference = part.get(key)
                if isinstance(reference, str) and not reference.startswith("#"):
                    return f"{key} {reference!r} leads out of the schema; write its content under $defs"
            if "patternProperties" in part:
                # jsonschema searches for these patterns in several places, without a time limit.
                return "patternProperties is not supported; name the keys under properties"
            pattern = part.get("pattern")
            if isinstance(pattern, str) and (problem := pattern_problem(pattern)):
                return f"pattern {pattern!r}: {problem}"
            left += part.values()
    return None


def _numbers_of_json_schema(schema: Mapping[str, Any]) -> dict[str, tuple[float | None, float | None]]:
    found = {}
    for name, value in _properties(schema, schema):
        kind = value.get("type")
        kinds = set(kind if isinstance(kind, list) else [kind])
        if kinds & {"integer", "number"}:
            found[name] = (value.get("minimum"), value.get("maximum"))
    return found


def _is_any_object(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema names no properties; one whose reference leads nowhere is not one."""
    leads_nowhere = "$ref" in schema and not _followed(schema, schema)
    return not leads_nowhere and not any(True for _ in _properties(schema, schema))


def _properties(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    part = _followed(schema, root)
    properties = part.get("properties")
    for name, value in (properties if isinstance(properties, dict) else {}).items():
        if isinstance(value, dict):
            yield name, _followed(value, root)
    for key in ("allOf", "anyOf", "oneOf"):
        for item in part.get(key, ()) if depth < _MOST_STEPS else ():
            if isinstance(item, dict):
                yield from _properties(item, root, depth + 1)


def _followed(part: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a schema to which ``$ref`` leads; an empty one if it leads nowhere."""
    for _ in range(_MOST_STEPS):
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return part
        found: Any = root
        for step in reference.removeprefix("#").split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            break
        part = found
    return {}


def _numbers_of_fields(fields: Mapping[str, FieldSpec]) -> dict[str, tuple[float | None, float | None]]:
    return {
        name: (spec.min, spec.max) for name, spec in fields.items() if _NUMBERS & {kind.name for kind in spec.types}
    }
