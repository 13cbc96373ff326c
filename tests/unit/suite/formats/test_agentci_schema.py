"""Definitions of fields below ``output.schema``: allowed values and their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ("int | str", 'several types are a list: ["int", "str"]'),
        ("datetime", ""),
        ("list[str", "did you mean 'list'?"),
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


def test_lists_may_be_nested_ten_times(folder: Path) -> None:
    written = "list[" * 10 + "int" + "]" * 10
    assert [str(kind) for kind in field(folder, f'{{ type = "{written}" }}').types] == [written]


def test_huge_limits_are_compared(folder: Path) -> None:
    huge = "1" + "0" * 400
    assert field(folder, f'{{ type = "int", max = {huge} }}').max == 10**400
    (problem,) = field_problems(folder, f'{{ type = "int", min = {huge}, max = 1 }}')
    assert problem.endswith("is above `max` (1), so nothing can fit")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("minlength", "did you mean 'min_length'?"),
        ("pattern", "nearest: max_items, type, enum"),
    ],
)
def test_unknown_keys_of_a_definition(folder: Path, key: str, hint: str) -> None:
    (problem,) = field_problems(folder, f'{{ type = "str", {key} = 5 }}')
    assert problem == f".{key}: unknown key; {hint}"


# Objects


def test_tables_below_the_schema_are_objects(folder: Path) -> None:
    spec = load(
        folder,
        SCHEMA
        + 'id = { type = "int" }\n'
        + "[eval.cases.output.schema.price]\n"
        + 'amount = { type = "float" }\n'
        + 'currency.type = "str"\n'
        + "[eval.cases.output.schema.price.tax]\n"
        + 'rate = { type = "float", min = 0 }\n',
    )
    number, text = FieldSpec((kind("float"),)), FieldSpec((kind("str"),))
    tax = FieldSpec((kind("dict"),), fields={"rate": FieldSpec((kind("float"),), min=0)})
    price = FieldSpec((kind("dict"),), fields={"amount": number, "currency": text, "tax": tax})
    assert spec == FieldSpec((kind("dict"),), fields={"id": FieldSpec((kind("int"),)), "price": price})


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


def test_a_definition_beside_fields_names_the_field_as_unknown(folder: Path) -> None:
    (problem,) = field_problems(folder, '{ required = false, amount = { type = "float" } }')
    assert problem == ".amount: unknown key; nearest: default, min, min_items"


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


def test_an_object_may_have_fields_that_are_called_like_keys(folder: Path) -> None:
    spec = load(
        folder,
        SCHEMA
        + 'item = { type = { type = "str" }, value = { type = "float" }, items = { type = "int" } }\n'
        + 'measure = { value = { type = "float" }, default = { type = "float" } }\n'
        + 'type = { type = "str" }\n',
    )
    assert check(
        spec, {"item": {"type": "x", "value": 1, "items": 2}, "measure": {"value": 1, "default": 2}, "type": ""}
    ) == ([], [])
    assert check(spec, {"item": {"type": 1, "value": "x", "items": 2.5}, "measure": {"value": 1}, "type": 5})[0] == [
        "$.item.type: expected str, got int 1",
        "$.item.value: expected float, got str 'x'",
        "$.item.items: expected int, got float 2.5",
        "$.measure.default: expected float, but it is missing",
        "$.type: expected str, got int 5",
    ]


def test_keys_of_fields_may_be_any_text(folder: Path) -> None:
    spec = load(folder, SCHEMA + '"a b".type = "int"\n"".type = "str"\n"x.y" = { type = "bool" }')
    assert set(spec.fields or {}) == {"a b", "", "x.y"}


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


STRATEGIES = "exact, contains, contains_any, startswith, endswith, match, similar"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("5", f": must be text in quotes, or one of {STRATEGIES}; not 5"),
        ('{ similar = "x" }', ': `similar` needs a `threshold` from 0 to 1: { similar = "…", threshold = 0.8 }'),
    ],
)
def test_values_that_cannot_be(folder: Path, written: str, said: str) -> None:
    assert field_problems(folder, f'{{ type = "str", value = {written} }}') == [f".value{said}"]


# Everything at once


def test_all_problems_of_a_schema_are_named_with_their_lines(folder: Path) -> None:
    text = (
        SCHEMA
        + 'a = { type = "strng" }\n'
        + 'b = { type = "int", min = 2, max = 1 }\n'
        + 'ok = { type = "int" }\n'
        + "[eval.cases.output.schema.c]\n"
        + 'd = { type = "str", value = { match = "[" } }\n'
        + "[eval.cases.output.schema.e]\n"
        + 'type = "list"\n'
        + 'items = { type = "lisst" }\n'
    )
    places = [problem.partition(": ")[0].removeprefix("suite.toml:") for problem in problems(folder, text)]
    assert [int(place) - FIRST_LINE for place in places] == [0, 1, 4, 7]


def test_deep_nesting_is_a_problem_and_no_crash(folder: Path) -> None:
    for depth in (60, 150, 300):
        keys = ".".join(["a"] * depth)
        (problem,) = problems(folder, f'{SCHEMA}{keys} = {{ type = "int" }}')
        assert "nested too deeply" in problem
    assert load(folder, f'{SCHEMA}{".".join(["a"] * 50)} = {{ type = "int" }}')


KEYS = st.sampled_from(["type", "value", "items", "enum", "min", "max_items", "required", "default", "match", "a"])
LEAVES = st.sampled_from(['"str"', '"int"', "5", "true", "[]", "{}", '"list[int]"', '["int"]', "nan", '"["'])


def inline_table(entries: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {value}" for key, value in entries.items()) + " }"


@given(st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3).map(inline_table), max_leaves=6))
def test_every_definition_is_read_or_refused(folder: Path, definition: str) -> None:
    try:
        spec = field(folder, definition)
    except ConfigError:
        return
    problems, alike = check(spec, {"a": 1})
    assert all(problem.startswith("$") for problem in problems)
    assert alike == []
