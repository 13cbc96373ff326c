"""One leaf of a JSON response."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.suite.forms import check_response_path, parse_path, text_at_path

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
