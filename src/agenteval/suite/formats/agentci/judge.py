"""Reads ``output_schema`` of an AgentCI judge: the field of the score, and its scale."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from agenteval.core.documents.document import Document
from agenteval.core.errors import Problem
from agenteval.core.text.pattern import pattern_problem
from agenteval.suite.formats.agentci.output import OutputReader
from agenteval.suite.formats.agentci.schema import EvalEntry
from agenteval.suite.output_schema import FieldSpec, FieldType

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
        fields = OutputReader(document, problems, warnings).fields(written, _AT)
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
    """Return every limit of a score in the cases of a file."""
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
    """Return the numbers of an object with their lowest and highest value."""
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
    """Yield the properties of an object, with their references followed."""
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
