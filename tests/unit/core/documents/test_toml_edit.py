"""Texts in TOML files are replaced, and nothing else changes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.document import VARIABLE
from agenteval.core.edit import NotReplaceableError, with_toml_texts

FILE = '''\
# The suite.
[eval]
limits = [1, nan, 2024-01-01]  # a list
[[eval.cases]]
prompt = "one"   # a comment
output = "basic"  # another one
[[eval.cases]]
output = 'C:\\literal'
[[eval.cases]]
output = """
first
second"""
[[eval.cases]]
output = \'\'\'one
two\'\'\'
[[eval.cases]]
output = { exact = "inside", case_sensitive = true }
[[eval.cases]]
output.exact = "dotted"
[[eval.cases]]
[eval.cases.output]
exact = "table"   # the last one
'''
PATHS: list[tuple[str | int, ...]] = [
    *(("eval", "cases", at, "output") for at in range(4)),
    *(("eval", "cases", at, "output", "exact") for at in range(4, 7)),
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: not VARIABLE.search(text))
SPECIAL = st.sampled_from(["", "\n", "'", "'''", '"""', '"', "\\", "a\nb", "\na", "\r\n", "\x7f", "\u2028", "\t"])


def put(data: Any, path: tuple[str | int, ...], text: str) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = text


@given(news=st.dictionaries(st.sampled_from(PATHS), TEXTS | SPECIAL), end=st.sampled_from(["\n", "\r\n"]))
def test_only_the_values_change(news: dict[tuple[str | int, ...], str], end: str) -> None:
    source = FILE.replace("\n", end)
    changed = with_toml_texts(source, news)
    expected = tomllib.loads(source)
    for path, new in news.items():
        put(expected, path, new)
    assert repr(tomllib.loads(changed)) == repr(expected)
    if not news:
        assert changed == source
    kept = [
        f"# The suite.{end}[eval]{end}limits = [1, nan, 2024-01-01]  # a list{end}",
        f'prompt = "one"   # a comment{end}output = ',
        f"  # another one{end}",
        ", case_sensitive = true }",
        f"   # the last one{end}",
    ]
    assert [text for text in kept if text not in changed] == []
    assert ("\n" in changed.replace("\r\n", "")) == (end == "\n")


@pytest.mark.parametrize(
    ("source", "path", "line", "why"),
    [
        ("b = 1\na = 1\n", ("a",), 2, "is not written here as one text"),
        ("b = 1\na = ['x']\n", ("a",), 2, "is not written here as one text"),
        ("b = 1\n", ("a",), None, "is not written here as one text"),
        ("b = 1\na = '${NAME}'\n", ("a",), 2, "contains a variable"),
        ("a = ", ("a",), None, "is not valid TOML"),
    ],
)
def test_what_is_not_one_text_is_refused(
    source: str, path: tuple[str | int, ...], line: int | None, why: str
) -> None:
    with pytest.raises(NotReplaceableError, match=why) as caught:
        with_toml_texts(source, {path: "new"})
    assert caught.value.line == line


def test_a_new_variable_is_refused() -> None:
    with pytest.raises(NotReplaceableError, match=r"contains the variable \$\{HOME\}"):
        with_toml_texts("a = 'one'\n", {("a",): "${HOME}"})
