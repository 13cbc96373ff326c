"""Definitions of fields below ``output.schema``: allowed values and their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from agenteval.core.errors import ConfigError
from agenteval.metrics.schema import check
from agenteval.suite.formats.agentci.output import is_definition
from agenteval.suite.formats.agentci.suite import load_agentci
from agenteval.suite.forms import FieldSpec, FieldType, TextMatch

HEAD = '[eval]\ndescription = "d"\ntype = "accuracy"\ntargets.agents = ["a"]\n[[eval.cases]]\nprompt = "q"\n'
SCHEMA = HEAD + "[eval.cases.output.schema]\n"
FIRST_LINE = SCHEMA.count("\n") + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agentci")


def load(folder: Path, text: str) -> FieldSpec:
    path = folder / "suite.toml"
    path.write_text(text, encoding="utf-8")
    suite = load_agentci(path, "suite.toml")
    assert suite.warnings == ()
    (metric,) = suite.cases[0].turns[0].metrics
    return cast(FieldSpec, metric.options["schema"])


def field(folder: Path, definition: str) -> FieldSpec:
    """The specification of the one field ``a``."""
    fields = load(folder, f"{SCHEMA}a = {definition}").fields
    assert fields is not None
    return fields["a"]


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem) for problem in caught.value.problems]


def field_problems(folder: Path, definition: str) -> list[str]:
    """The problem of the one field ``a``, without its place."""
    place = f"suite.toml:{FIRST_LINE}: eval.cases[0].output.schema.a"
    found = problems(folder, f"{SCHEMA}a = {definition}")
    assert all(problem.startswith(place) for problem in found)
    return [problem.removeprefix(place).removeprefix(": ") for problem in found]


def kind(name: str, item: FieldType | None = None) -> FieldType:
    return FieldType(cast(Any, name), item)


# Types


def test_a_definition_may_name_no_type(folder: Path) -> None:
    assert field(folder, "{ required = false }") == FieldSpec(required=False)
    assert field(folder, "{}") == FieldSpec()
    assert field(folder, '{ value = "x" }') == FieldSpec(text=TextMatch("exact", ("x",)))
    assert field(folder, '{ value.contains = "x" }') == FieldSpec(text=TextMatch("contains", ("x",)))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("text", "did you mean 'str'?"),
        ("dict[str, int]", "did you mean 'dict'?"),
    ],
)
def test_an_unknown_type_is_an_error(folder: Path, name: str, hint: str) -> None:
    (problem,) = field_problems(folder, f"{{ type = '{name}' }}")
    assert ".type: no type is called " in problem
    assert hint in problem
    assert problem.endswith("allowed: str, int, float, bool, dict, list, list[…], set[…], any")


# Constraints


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ('{ type = "int", min_length = 1 }', ".min_length: `min_length` is for texts (str), not for int"),
        ('{ type = ["str", "bool"], max = 1 }', ".max: `max` is for numbers (int, float), not for str or bool"),
        ('{ type = "str", min_items = 1 }', ".min_items: `min_items` is for lists (list, set), not for str"),
        ('{ type = "float", min = 0.2, max = 0.1 }', ".min: `min` (0.2) is above `max` (0.1), so nothing can fit"),
    ],
)
def test_constraints_that_cannot_be(folder: Path, definition: str, said: str) -> None:
    assert field_problems(folder, definition) == [said]


def test_huge_limits_are_compared(folder: Path) -> None:
    huge = "1" + "0" * 400
    assert field(folder, f'{{ type = "int", max = {huge} }}').max == 10**400
    (problem,) = field_problems(folder, f'{{ type = "int", min = {huge}, max = 1 }}')
    assert problem.endswith("is above `max` (1), so nothing can fit")


@pytest.mark.parametrize(
    "nested",
    [
        '[eval.cases.output.schema.p]\na = { type = "int" }\n[eval.cases.output.schema.p.q]\nb = { type = "str" }',
        'p = { a = { type = "int" }, q = { b = { type = "str" } } }',
        'p.a.type = "int"\np.q.b.type = "str"',
        'p = { type = { a = { type = "int" }, q = { type = { b = { type = "str" } } } } }',
        '[eval.cases.output.schema.p.type.a]\ntype = "int"\n[eval.cases.output.schema.p.type.q.type.b]\ntype = "str"',
        'p = { type = "dict", value.schema = { a = { type = "int" }, q = { b = { type = "str" } } } }',
    ],
)
def test_all_ways_of_nesting_mean_the_same(folder: Path, nested: str) -> None:
    inner = FieldSpec((kind("dict"),), fields={"b": FieldSpec((kind("str"),))})
    outer = FieldSpec((kind("dict"),), fields={"a": FieldSpec((kind("int"),)), "q": inner})
    assert load(folder, f"{SCHEMA}{nested}") == FieldSpec((kind("dict"),), fields={"p": outer})


def test_a_schema_of_a_value_is_for_objects(folder: Path) -> None:
    said = field_problems(folder, '{ type = "str", value.schema = { x = { type = "int" } } }')
    assert said == [".value: `schema` is for objects (dict), not for str"]


OBJECTS = [
    {"type": {"type": "str"}},
    {"type": {"type": "str"}, "items": {"type": "int"}},
    {"required": {"type": "bool"}, "min": {"type": "int"}, "max": {"type": "int"}, "enum": {"type": "list"}},
    {"value": {"low": {"type": "int"}, "high": {"type": "int"}}},
    {"a": {}, "b": {}},
]
DEFINITIONS = [
    {"type": "list", "items": {"id": {"type": "int"}}},
    {"type": {"street": {"type": "str"}}},
    {"type": {"type": {"type": "str"}}},
    {"value": {"similar": "x", "threshold": 0.5}},
    {"min": 3},
]


@pytest.mark.parametrize("table", OBJECTS)
def test_tables_that_are_objects(table: dict[str, Any]) -> None:
    assert not is_definition(table)


@pytest.mark.parametrize("table", DEFINITIONS)
def test_tables_that_are_definitions(table: dict[str, Any]) -> None:
    assert is_definition(table)


# Texts


def test_case_sensitive_of_the_case_holds_for_its_fields(folder: Path) -> None:
    spec = load(
        folder,
        f"{HEAD}case_sensitive = true\n[eval.cases.output.schema]\n"
        'a = { type = "str", value = "x" }\nb = { c = { type = "str", value.contains = "y" } }\n'
        'd = { type = "list", items = { type = "str", value = "z" } }\n',
    )
    assert check(spec, {"a": "x", "b": {"c": "xy"}, "d": ["z"]}) == ([], [])
    assert len(check(spec, {"a": "X", "b": {"c": "XY"}, "d": ["Z"]})[0]) == 3


def test_deep_nesting_is_a_problem_and_no_crash(folder: Path) -> None:
    for depth in (60, 150, 300):
        keys = ".".join(["a"] * depth)
        (problem,) = problems(folder, f'{SCHEMA}{keys} = {{ type = "int" }}')
        assert "nested too deeply" in problem
    assert load(folder, f'{SCHEMA}{".".join(["a"] * 50)} = {{ type = "int" }}')
