"""JSON that follows a schema, compared with JSON Schema as an oracle, and the messages about mismatches."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from agenteval.core.llm.embeddings import Embeddings
from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.resources import Resources
from agenteval.metrics.schema import Schema, SimilarText, check, json_schema_of
from agenteval.suite.forms import FieldSpec, FieldType, TextMatch


def kind(written: str) -> FieldType:
    """``list[set[int]]`` as a type."""
    name, bracket, inner = written.partition("[")
    return FieldType(cast(Any, name), kind(inner[:-1]) if bracket else None)


def of(*types: str, **constraints: Any) -> FieldSpec:
    return FieldSpec(types=tuple(kind(name) for name in types), **constraints)


def obj(**fields: FieldSpec) -> FieldSpec:
    return FieldSpec(types=(FieldType("dict"),), fields=fields)


def problems(spec: FieldSpec, value: Any) -> list[str]:
    return check(spec, value)[0]


def accepts(spec: FieldSpec, value: Any) -> bool:
    return not problems(spec, value)


def test_the_json_schema_of_a_judge_reads_as_people_would_write_it() -> None:
    spec = obj(
        score=of("int", min=1, max=10),
        notes=of("list[str]", required=False),
        tag=of("str", enum=("a", "b"), min_length=1),
        ids=of("set[int]", min_items=1),
        rest=of("any", min_length=2, required=False),
    )
    assert json_schema_of(spec) == {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 1, "maximum": 10},
            "notes": {"type": "array", "items": {"type": "string"}},
            "tag": {"type": "string", "minLength": 1, "enum": ["a", "b"]},
            "ids": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 1},
            "rest": {"minLength": 2},
        },
        "required": ["score", "tag", "ids"],
    }


# Types


@pytest.mark.parametrize(
    ("name", "fits", "does_not_fit"),
    [
        ("str", ["", "a", "1"], [1, None, True, [], {}]),
        ("int", [0, -1, 72, 72.0, 1e300, 10**400], [72.5, "72", True, False, None, [1]]),
        ("float", [0, 1, 72.5, -1e-9, 10**400], ["1.5", True, None, [1.5]]),
        ("set", [[], [1, "1", True, None, [1], {"a": 1}]], [[1, 1], [None, None], {}, None]),
        ("list[str]", [[], ["a"]], [["a", 1], [None], "a", [["a"]]]),
        ("set[int]", [[], [1, 2]], [[1, 1], [1, 1.0], ["1"]]),
        ("list[set[int]]", [[[1], [1]]], [[[1, 1]], [[1], [2, 3, 2]]]),
        ("set[list[int]]", [[[1], [1, 1]]], [[[1], [1]], [[1], [1.0]]]),
        ("list[bool]", [[True]], [[1]]),
    ],
)
def test_types(name: str, fits: list[Any], does_not_fit: list[Any]) -> None:
    assert [value for value in fits if not accepts(of(name), value)] == []
    assert [value for value in does_not_fit if accepts(of(name), value)] == []


@pytest.mark.parametrize(
    ("entries", "twice"),
    [
        ([1, 1.0], True),
        ([1, True], False),
        (["1", 1], False),
        ([[1, {"a": 1}], [1.0, {"a": 1.0}]], True),
        ([[1], [True]], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], True),
        ([2**53, 2**53 + 1], False),
    ],
)
def test_entries_of_a_set_that_are_equal(entries: list[Any], twice: bool) -> None:
    assert accepts(of("set"), entries) is not twice


def test_one_of_several_types_is_enough() -> None:
    assert accepts(of("int", "str", min=3), "a")
    assert accepts(of("int", "str", min=3), 3)
    assert not accepts(of("int", "str", min=3), 2)
    assert accepts(of("set", "list"), [1, 1])
    assert accepts(of("list[int]", "any", max=0), [1])


# Limits and defaults


@pytest.mark.parametrize(
    ("spec", "fits", "does_not_fit"),
    [
        (of("int", max=10), [-(10**400)], [10**400]),
        (of("str", min_length=2, max_length=3), ["ab", "äöü", "😀😀😀"], ["a", "abcd", ""]),
        (of("list[str]", min_items=1, max_items=2), [["a"], ["a", "b"]], [[], ["a", "b", "c"]]),
        (of("list[int]", min=3), [[], [3, 4]], [[2], [3, 2]]),
        (of("list[list[int]]", min=3), [[[]], [[3]]], [[[2]]]),
        (of("list[str]", enum=("a", "b")), [[], ["a", "b", "a"]], [["c"], ["a", "c"]]),
        (of("list[int]", enum=([1, 2], [3])), [[1, 2], [3.0]], [[1], [], [2, 1]]),
        (of(enum=("a",)), ["a"], [[], ["a"], {}, None, 1]),
        (of(enum=(True,)), [True], [1, "true"]),
        (of(enum=({"a": 1},)), [{"a": 1.0}], [{"a": True}, {}]),
        (of("any", text=TextMatch("exact", ("ok",))), ["OK"], [[], {}, None, 1]),
        (of(min=3), [3, "a", None], [2]),
    ],
)
def test_limits(spec: FieldSpec, fits: list[Any], does_not_fit: list[Any]) -> None:
    assert [value for value in fits if not accepts(spec, value)] == []
    assert [value for value in does_not_fit if accepts(spec, value)] == []


def test_only_required_fields_must_be_there_and_null_is_a_value() -> None:
    spec = obj(a=of("str"), b=of("str", required=False), c=of("int", required=False))
    assert accepts(spec, {"a": "x"})
    assert not accepts(spec, {"a": "x", "b": None})
    assert not accepts(spec, {"a": "x", "c": "30"})
    assert not accepts(spec, {"b": "x"})


# Messages


@pytest.mark.parametrize(
    ("spec", "value", "said"),
    [
        (obj(a=of("int")), [], ["$: expected dict, got list []"]),
        (obj(a=of("int")), {"a": 72.5}, ["$.a: expected int, got float 72.5"]),
        (obj(a=of("int")), {"a": True}, ["$.a: expected int, got bool True"]),
        (obj(a=of("int", "str")), {"a": None}, ["$.a: expected int or str, got null"]),
        (obj(a=of("int")), {}, ["$.a: expected int, but it is missing"]),
        (obj(a=of()), {}, ["$.a: expected a value, but it is missing"]),
        (FieldSpec(fields={"a b": of("int")}), {"a b": "x"}, ["$['a b']: expected int, got str 'x'"]),
        (obj(a=obj(b=of("str"))), {"a": {"b": 1}}, ["$.a.b: expected str, got int 1"]),
        (
            obj(a=of("list[str]")),
            {"a": ["x", 1, 2]},
            ["$.a[1]: expected str, got int 1", "$.a[2]: expected str, got int 2"],
        ),
        (obj(a=of("list[list[int]]")), {"a": [[1], [2, "x"]]}, ["$.a[1][1]: expected int, got str 'x'"]),
        (obj(a=of("list[int]", "str")), {"a": ["x"]}, ["$.a: expected list[int] or str, got list ['x']"]),
        (obj(a=of("set[int]")), {"a": [1, 2, 1]}, ["$.a: expected no entry twice, got 1 again"]),
        (obj(a=of("set")), {"a": [None, None]}, ["$.a: expected no entry twice, got None again"]),
        (obj(a=of("list[set[int]]")), {"a": [[1], [2, 2]]}, ["$.a[1]: expected no entry twice, got 2 again"]),
        (obj(a=of("list", min_items=1)), {"a": []}, ["$.a: expected at least 1 entries, got 0"]),
        (obj(a=of("list", max_items=1)), {"a": [1, 2]}, ["$.a: expected at most 1 entries, got 2"]),
        (obj(a=of("int", min=1)), {"a": 0}, ["$.a: expected at least 1, got 0"]),
        (obj(a=of("int", max=1000000)), {"a": 1000001}, ["$.a: expected at most 1000000, got 1000001"]),
        (obj(a=of("str", min_length=3)), {"a": "ab"}, ["$.a: expected at least 3 characters, got 2"]),
        (obj(a=of("str", max_length=1)), {"a": "ab"}, ["$.a: expected at most 1 characters, got 2"]),
        (obj(a=of("str", enum=("x", "y"))), {"a": "z"}, ["$.a: expected one of 'x', 'y', got 'z'"]),
        (obj(a=of("list[int]", min=1)), {"a": [1, 0]}, ["$.a[1]: expected at least 1, got 0"]),
        (
            obj(a=of("list", items=obj(id=of("int")))),
            {"a": [{"id": 1}, {"id": "x"}]},
            ["$.a[1].id: expected int, got str 'x'"],
        ),
        (obj(a=of("str", text=TextMatch("exact", ("x",)))), {"a": "y"}, ["$.a: expected 'x', got 'y'"]),
        (obj(a=of("str", text=TextMatch("contains", ("x",)))), {"a": "y"}, ["$.a: 'x' is missing in 'y'"]),
        (
            obj(a=of("list[str]", text=TextMatch("startswith", ("x",)))),
            {"a": ["x1", "y"]},
            ["$.a[1]: 'y' does not start with 'x'"],
        ),
        (
            obj(a=of("int"), b=of("str")),
            {"a": "x"},
            ["$.a: expected int, got str 'x'", "$.b: expected str, but it is missing"],
        ),
    ],
)
def test_a_mismatch_names_path_expectation_and_value(spec: FieldSpec, value: Any, said: list[str]) -> None:
    assert problems(spec, value) == said


def test_other_values_match_as_the_json_they_are() -> None:
    spec = obj(a=of(text=TextMatch("exact", ("true",))))
    assert accepts(spec, {"a": True})
    assert not accepts(spec, {"a": 1})


def test_texts_to_resemble_are_left_to_an_embedding_model() -> None:
    like = TextMatch("similar", ("welcome",), threshold=0.8)
    spec = obj(a=of("str", text=like), b=of("list[str]", text=like), c=of("int"))
    said, alike = check(spec, {"a": "hello", "b": ["x", "y"], "c": "z"})
    assert said == ["$.c: expected int, got str 'z'"]
    assert alike == [
        SimilarText("$.a", "hello", "welcome", 0.8),
        SimilarText("$.b[0]", "x", "welcome", 0.8),
        SimilarText("$.b[1]", "y", "welcome", 0.8),
    ]


# Whole answers


class Vectors:
    """Embeddings of letters: two texts are similar as far as their beginnings are equal."""

    def check(self, model: object) -> None:
        """Accept every model."""

    async def vectors(self, texts: list[str], model: object) -> list[list[float]]:
        return [[1.0, 0.0] if text.startswith("h") else [0.0, 1.0] for text in texts]


def measure(spec: FieldSpec, response: str) -> Outcome:
    resources = Resources(cast(Any, None), cast(Any, None))
    outcome = Schema(spec, resources).measure(Observation("q", response))
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.parametrize(
    "response",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n ',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```\n',
        '\n```JSON  \n{"a":\n 1}\n   ```',
        '```json\r\n{"a": 1}\r\n```',
        '{"a": 1.0, "b": "```"}',
    ],
)
def test_answers_that_fit(response: str) -> None:
    outcome = measure(obj(a=of("int")), response)
    assert (outcome.score, outcome.passed, outcome.reason) == (1.0, True, None)


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ('Here it is: {"a": 1}', 1.0),
        ('{"a": 1} done', 1.0),
        ('Sure [1]:\n```json\n{"a": 1}\n```\nAnything else?', 1.0),
        ('```\nx = {}\n```\n```json\n{"a": 1}\n```', 1.0),
        ('{broken {"a": 1}', 1.0),
        ('It is {"a": "one"}, not {"a": 1, "b": [2, 3, 4]}.', 1.0),
        ('It is {"a": 1}, not {"a": "one", "b": [2]}.', 0.0),
        ("{" * 1000 + ' {"a": 1}', 0.0),
    ],
)
def test_json_inside_a_text_is_found(response: str, score: float) -> None:
    """The longest value counts; a text with hundreds of brackets before it is not searched to its end."""
    assert measure(obj(a=of("int")), response).score == score


@pytest.mark.parametrize(
    "response",
    [
        "",
        "no JSON",
        "{'a': 1}",
        '{"a": 1',
        "```json\n```",
        "```\nx\n```",
        "[" * 100000,
        "1" * 5000,
    ],
)
def test_answers_that_are_not_json(response: str) -> None:
    outcome = measure(obj(a=of("int")), response)
    assert (outcome.score, outcome.passed) == (0.0, False)
    assert str(outcome.reason).startswith("the answer is not JSON (")
    assert len(str(outcome.reason)) < 400


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_finite_number_is_no_number(written: str) -> None:
    for name in ("int", "float"):
        outcome = measure(obj(a=of(name)), f'{{"a": {written}}}')
        assert outcome.passed is False
        assert str(outcome.reason).startswith(f"$.a: expected {name}, got float ")


def test_huge_numbers_are_compared_and_shown() -> None:
    outcome = measure(obj(a=of("int", max=5)), json.dumps({"a": 10**400}))
    assert str(outcome.reason).startswith("$.a: expected at most 5, got 1000")
    assert len(str(outcome.reason)) < 200
    assert measure(obj(a=of("float", min=0.5)), json.dumps({"a": 10**400})).passed is True
    assert measure(obj(a=of("int", enum=(1.5, 2))), json.dumps({"a": 10**400})).passed is False


STRICT = [of("set"), of("str"), of("any", enum=("a",)), of(text=TextMatch("exact", ("a",)))]


@pytest.mark.parametrize("spec", STRICT)
@pytest.mark.parametrize("depth", [300, 900, 985, 995, 10000])
def test_deep_nesting_does_not_crash(spec: FieldSpec, depth: int) -> None:
    response = "[" * depth + "]" * depth
    assert measure(spec, f"[{response}, {response}]").passed is False


def test_deep_nesting_alone_is_no_mismatch() -> None:
    assert measure(of("list[list]"), "[" * 300 + "]" * 300).passed is True


def test_only_the_first_mismatches_are_named_and_the_rest_is_counted() -> None:
    outcome = measure(of("list[int]"), json.dumps(["x"] * 9))
    assert str(outcome.reason).count("expected int") == 5
    assert str(outcome.reason).endswith("; and 4 more")


def test_a_field_must_resemble_a_text() -> None:
    spec = obj(a=of("str", text=TextMatch("similar", ("hello",), threshold=0.9)), b=of("int"))
    resources = Resources(cast(Any, None), cast(Any, None))
    resources.__dict__["embeddings"] = cast(Embeddings, Vectors())
    metric = Schema(spec, resources)

    async def measured(response: str) -> Outcome:
        outcome = metric.measure(Observation("q", response))
        return outcome if isinstance(outcome, Outcome) else await outcome

    assert asyncio.run(measured('{"a": "hi", "b": 1}')).passed is True
    outcome = asyncio.run(measured('{"a": "bye", "b": "x"}'))
    assert outcome.reason == (
        "$.b: expected int, got str 'x'; $.a: expected a text like 'hello' (at least 0.9), got 'bye' (0.000)"
    )
