"""Messages about pydantic's validation errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from agenteval.core.validation import validate
from agenteval.core.yaml import read_yaml


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Circle(Strict):
    type: Literal["circle"]
    radius: float = Field(gt=0)


class Square(Strict):
    type: Literal["square"]
    side_length: float


def _kind(value: Any) -> str | None:
    return str(value.get("type", "circle")) if isinstance(value, dict) else None


class Part(Strict):
    title: str
    colour: Literal["red", "green"] = "red"
    tags: list[str] = []
    sizes: list[int] = Field(default=[], min_length=1, max_length=2)
    options: dict[str, int] = {}

    @field_validator("title")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value


class Star(Strict):
    type: Literal["star"] = "star"
    star: int
    points: int = 5


class Drawing(Strict):
    parts: list[Part] = []
    shapes: list[Annotated[Circle | Square | Star, Field(discriminator="type")]] = []
    either: list[str] | Part | None = None
    loose: list[
        Annotated[Annotated[Circle, Tag("circle")] | Annotated[Square, Tag("square")], Discriminator(_kind)]
    ] = []
    child: Drawing | None = None
    enabled: bool = True


def messages(folder: Path, text: str) -> list[str]:
    path = folder / "d.yaml"
    path.write_text(text)
    document = read_yaml(path, shown_as="d.yaml")
    entry, problems = validate(Drawing, document.data, document)
    assert (entry is None) == bool(problems)
    return [str(problem) for problem in problems]


PART_KEYS = "title, colour, tags, sizes, options"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "child:\n  child:\n    parts:\n    - title: x\n      tag: []",
            [f"d.yaml:5: child.child.parts[0].tag: unknown key; did you mean 'tags'?; allowed: {PART_KEYS}"],
        ),
        ("parts:\n- title: 5", ["d.yaml:2: parts[0].title: must be text, not 5"]),
        ("parts:\n- title: yes", ["d.yaml:2: parts[0].title: must be text, not a boolean"]),
        (
            "parts:\n- title: x\n  tags:\n  - a\n  - 5\n",
            ["d.yaml:5: parts[0].tags[1]: must be text, not 5"],
        ),
        ("parts: [null]", ["d.yaml:1: parts[0]: must be a mapping (key: value), not empty"]),
        (
            "parts:\n- title: x\n  colour: [red]",
            ["d.yaml:3: parts[0].colour: a list is not allowed; allowed: red, green"],
        ),
        (
            "parts:\n- {title: x, sizes: [1, 2, 3]}",
            ["d.yaml:2: parts[0].sizes: must have at most 2 entries, not 3"],
        ),
        (
            "parts:\n- title: x\n  options:\n    5: 1",
            ["d.yaml:4: parts[0].options[5]: a key must be text; put it in quotes"],
        ),
        (
            "shapes:\n- type: star\n  star: many\n  point: 5",
            [
                "d.yaml:3: shapes[0].star: must be a whole number, not 'many'",
                "d.yaml:4: shapes[0].point: unknown key; did you mean 'points'?; allowed: type, star, points",
            ],
        ),
        (
            "shapes:\n- {type: star, circle: 1}",
            [
                "d.yaml:2: shapes[0].star: this key is required",
                "d.yaml:2: shapes[0].circle: unknown key; allowed: type, star, points",
            ],
        ),
        (
            "either:\n- a\n- 5",
            [
                "d.yaml:3: either[1]: must be text, not 5",
                "d.yaml:1: either: must be a mapping (key: value), not a list",
            ],
        ),
        (
            "loose:\n- type: triangle",
            ["d.yaml:2: loose[0].type: type 'triangle' is not allowed; allowed: circle, square"],
        ),
        (
            "parts: [{}]\nshapes: 1\nenabled: x",
            [
                "d.yaml:1: parts[0].title: this key is required",
                "d.yaml:2: shapes: must be a list, not 1",
                "d.yaml:3: enabled: must be true or false, not 'x'",
            ],
        ),
    ],
)
def test_messages(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert messages(tmp_path, text) == expected


def test_a_part_of_a_document_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("outer:\n- x\n- parts:\n  - titel: x\n")
    document = read_yaml(path, shown_as="d.yaml")
    _, problems = validate(Drawing, document.data["outer"][1], document, ("outer", 1))
    assert [(problem.line, problem.path) for problem in problems] == [
        (4, "outer[1].parts[0].title"),
        (4, "outer[1].parts[0].titel"),
    ]


def test_long_values_are_named_not_reproduced(tmp_path: Path) -> None:
    (long_text,) = messages(tmp_path, f"parts: [{{title: x, colour: {'long ' * 1000}}}]")
    assert len(long_text) < 250
    assert "allowed: red, green" in long_text
