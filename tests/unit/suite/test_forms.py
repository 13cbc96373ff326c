"""Paths of values in the replies of agents."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.suite.forms import PathError, check_response_path, parse_path, text_at_path

DOCUMENT: Any = {
    "data": {"answer": "42", "odd key": {"x": 1}, "a.b": 2},
    "steps": [{"name": "a", "calls": [{"n": 1}]}, {"other": 1}, {"name": "b", "calls": [{"n": 2}, {"n": 3}]}],
    "empty": [],
    "null": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("data.answer", "42"),
        ("$.data.answer", "42"),
        ("$", DOCUMENT),
        ('data["odd key"].x', 1),
        ("data['a.b']", 2),
        ("steps[0].name", "a"),
        ("steps[-1].name", "b"),
        ("steps[*].name", ["a", "b"]),
        ("steps[*].calls[*].n", [1, 2, 3]),
        ("steps[*].calls", [[{"n": 1}], [{"n": 2}, {"n": 3}]]),
        ("empty[*].x", []),
        ("null", None),
    ],
)
def test_finds_values(path: str, found: Any) -> None:
    assert parse_path(path).find(DOCUMENT) == found
    assert parse_path(str(parse_path(path))) == parse_path(path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "answer",
            "the response has no 'answer' (response_path 'answer'); the response is an object with the keys data",
        ),
        (
            "data.text",
            "the response has no 'text' (response_path 'data.text'); 'data' is an object with the keys answer",
        ),
        ("data.answer.text", "'data.answer' is a text"),
        (
            "steps[3]",
            "the response has no item [3] in 'steps' (response_path 'steps[3]'); 'steps' is a list of 3 items",
        ),
        ("steps[*].nothing", "the response has no 'nothing'"),
        ("data[*]", "the response has no list in 'data'"),
        ("[0]", "the response has no item [0] (response_path '[0]'); the response is an object"),
        ("null.x", "'null' is null"),
    ],
)
def test_says_what_exists_where_a_path_ends(path: str, said: str) -> None:
    with pytest.raises(PathError) as caught:
        parse_path(path).find(DOCUMENT)
    assert said in str(caught.value)
    assert parse_path(path).get(DOCUMENT, "default") == "default"


@pytest.mark.parametrize(
    "path", ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a b", "1a", "$a", "a[?(@.x)]", "x" * 501]
)
def test_other_texts_are_no_paths(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path like answer"):
        parse_path(path)


NAMES = st.from_regex(re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII), fullmatch=True)
STEPS = st.tuples(NAMES, st.lists(st.integers(0, 3), max_size=3))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(steps=st.lists(STEPS, min_size=1, max_size=4), leaf=LEAVES)
def test_a_leaf_is_found_where_it_was_put(steps: list[tuple[str, list[int]]], leaf: object) -> None:
    value: object = leaf
    for name, indices in reversed(steps):
        for index in reversed(indices):
            value = ["other"] * index + [value]
        value = {name: value, f"{name}x": "other"}
    path = ".".join(name + "".join(f"[{index}]" for index in indices) for name, indices in steps)
    assert check_response_path(path) == path
    assert parse_path(path).find(value) == leaf
    assert text_at_path(json.dumps(value), path) == str(leaf)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ('{"a": "x"}', "x"),
        ('{"a": ""}', ""),
        ('{"a": 60.940}', "60.94"),
        ('{"a": 5}', "5"),
        ('{"a": 1e22}', "1e+22"),
        ('{"a": null}', "None"),
        ('{"a": true}', "True"),
        ('{"a": NaN}', "nan"),
        (' \n{"a": "x"}\t', "x"),
        ('{"a": 1, "a": 2}', "2"),
    ],
)
def test_leaves_are_printed_as_python_prints_them(response: str, text: str) -> None:
    assert text_at_path(response, "a") == text


@pytest.mark.parametrize(
    ("response", "path", "words"),
    [
        ("The answer is 5.", "a", "the response is not JSON"),
        ("", "a", "the response is not JSON"),
        ('```json\n{"a": 1}\n```', "a", "the response is not JSON"),
        ('Here: {"a": 1}', "a", "the response is not JSON"),
        ("[" * 100_000, "a", "the response is not JSON"),
        ("9" * 5_000, "a", "the response is not JSON"),
        ('{"a": {"b": 1}}', "a", "ends at an object"),
        ('{"a": [1]}', "a", "ends at a list"),
    ],
)
def test_invalid_paths_are_errors(response: str, path: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        text_at_path(response, path)
