"""Paths of values in the replies of agents."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.suite.forms import PathError, parse_path

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
