"""Schemas in the form that structured outputs require."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from agenteval.core.llm.provider_base import strict_schema


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]
    reason: str | None = Field(default=None)


class Verdicts(BaseModel):
    verdicts: list[Verdict]
    note: str = "none"


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in _objects(item)]
    if not isinstance(value, dict):
        return []
    inner = [found for item in value.values() for found in _objects(item)]
    return [value, *inner] if value.get("type") == "object" else inner


def test_every_object_is_closed_and_requires_all_of_its_keys() -> None:
    objects = _objects(strict_schema(Verdicts.model_json_schema()))

    assert [(found["title"], found["additionalProperties"], found["required"]) for found in objects] == [
        ("Verdicts", False, ["verdicts", "note"]),
        ("Verdict", False, ["verdict", "reason"]),
    ]


def test_the_schema_that_was_given_is_not_changed() -> None:
    before = Verdicts.model_json_schema()
    strict_schema(before)

    assert before == Verdicts.model_json_schema()


@pytest.mark.parametrize("name", ["default", "type", "properties", "required", "$defs", "additionalProperties"])
def test_properties_may_be_called_like_keywords(name: str) -> None:
    schema = strict_schema({"type": "object", "properties": {name: {"type": "string", "default": "x"}}})

    assert schema == {
        "type": "object",
        "properties": {name: {"type": "string"}},
        "additionalProperties": False,
        "required": [name],
    }


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "string"}, {"enum": ["default", 1, None]}])
def test_schemas_without_properties_stay_as_they_are(schema: dict[str, Any]) -> None:
    assert strict_schema(schema) == schema
