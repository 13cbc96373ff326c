"""Texts in YAML and TOML files are replaced, and nothing else changes."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.document import VARIABLE
from agenteval.core.edit import NotReplaceableError, with_toml_texts, with_yaml_texts

FILE = """\
# The suite.
test_cases:
  - name: plain   # a comment
    ground_truth: one two  # another one
  - {name: flow, ground_truth: 'it''s', tags: [a, b]}
  - name: literal
    ground_truth: | # why
      one
      two

  # The next case.
  - name: folded
    ground_truth: >-
      one
      two
  - name: double
    ground_truth: "one\\ttwo"
last:   1
"""
NAMES = ["plain", "flow", "literal", "folded", "double"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: not VARIABLE.search(text))
# Texts that YAML reads in a special way if they have no quotes.
SPECIAL = st.sampled_from(
    [
        "",
        " ",
        "42",
        "null",
        "yes",
        "a: b",
        "a #b",
        "- a",
        "x, y]",
        "'",
        '"',
        "\n",
        "a\n",
        "a\n\n",
        " a\nb",
        "---",
        "{",
        "\t",
    ]
)
KEYS = st.text("abc", min_size=1, max_size=2)
TREES = st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))
STYLES = st.fixed_dictionaries(
    {
        "default_style": st.sampled_from([None, "'", '"', "|", ">"]),
        "default_flow_style": st.sampled_from([None, True, False]),
        "width": st.sampled_from([10, 1000]),
        "indent": st.sampled_from([2, 4]),
        "allow_unicode": st.booleans(),
        "explicit_start": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
    }
)


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all texts."""
    if isinstance(data, str):
        yield path
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(inner, (*path, key))


def put(data: Any, path: tuple[str | int, ...], text: str) -> Any:
    """The data with another text."""
    if not path:
        return text
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return changed


@given(tree=TREES, new=TEXTS | SPECIAL, style=STYLES, pick=st.randoms(use_true_random=False))
def test_one_value_of_any_file_changes(tree: Any, new: str, style: dict[str, Any], pick: Any) -> None:
    source = yaml.dump(tree, Dumper=yaml.SafeDumper, **style)
    data = yaml.safe_load(source)
    found = list(places(data))
    if not found:
        return
    path = pick.choice(found)
    changed = with_yaml_texts(source, "f", {path: new})
    assert yaml.safe_load(changed) == put(data, path, new)


@given(news=st.dictionaries(st.sampled_from(range(5)), TEXTS | SPECIAL), end=st.sampled_from(["\n", "\r\n"]))
def test_everything_around_the_values_stays(news: dict[int, str], end: str) -> None:
    source = "\ufeff" + FILE.replace("\n", end)
    changed = with_yaml_texts(source, "f", {("test_cases", at, "ground_truth"): new for at, new in news.items()})
    expected = yaml.safe_load(FILE)
    for at, new in news.items():
        expected["test_cases"][at]["ground_truth"] = new
    assert yaml.safe_load(changed) == expected
    if not news:
        assert changed == source
    kept = [
        "\ufeff# The suite.",
        "  - name: plain   # a comment",
        "  # another one",
        "# why",
        f"{end}{end}  # The next case.{end}  - name: folded{end}",
        f"{end}last:   1{end}",
    ]
    assert [text for text in kept if text not in changed] == []
    assert ("\r\n" in changed) == (end == "\r\n")


@pytest.mark.parametrize(
    ("new", "written"),
    [
        ("it's", ["it's  # another", "'it''s',", "|- # why\n      it's\n", "|-\n      it's\n", '"it\'s"\n']),
        ("a: b", ['"a: b"  # another', "'a: b',", "|- # why\n      a: b\n", "|-\n      a: b\n", '"a: b"\n']),
        (
            "a\nb\n",
            ['"a\\nb\\n"  # another', '"a\\nb\\n",', "| # why\n      a\n      b\n\n", "|\n      a\n      b\n"],
        ),
        ("\u2028\x07\x85", ['"\\u2028\\u0007\\u0085"  # another', '"\\u2028\\u0007\\u0085",', '\\u0085" # why']),
    ],
)
def test_the_style_stays_if_it_can(new: str, written: list[str]) -> None:
    changed = with_yaml_texts(FILE, "f", {("test_cases", at, "ground_truth"): new for at in range(len(NAMES))})
    assert [text for text in written if text not in changed] == []


@pytest.mark.parametrize(
    ("source", "path", "line", "why"),
    [
        ("a: &x one\nb: *x\n", ("a",), 1, "depends on the anchor 'x'"),
        ("a: &x one\nb: *x\n", ("b",), 2, "depends on the anchor 'x'"),
        ("- &x {a: one}\n- {<<: *x}\n", (1, "a"), 2, "is not written here as one text"),
        ("a:\n  - !!str one\n", ("a", 0), 2, "has the tag"),
        ("b: 1\na:\n  c: 1\n", ("a",), 3, "is not written here as one text"),
        ("a: [{b: one}]\na: []\n", ("a", 0, "b"), 2, "is not written here as one text"),
        ("b: 1\na: before ${NAME}\n", ("a",), 2, "contains a variable"),
        ("", ("a",), None, "is not written here as one text"),
        ("a: [", ("a",), None, "is not valid YAML"),
    ],
)
def test_what_is_not_one_text_is_refused(
    source: str, path: tuple[str | int, ...], line: int | None, why: str
) -> None:
    with pytest.raises(NotReplaceableError, match=why) as caught:
        with_yaml_texts(source, "f", {path: "new"})
    assert caught.value.line == line


def test_a_new_variable_is_refused() -> None:
    with pytest.raises(NotReplaceableError, match=r"contains the variable \$\{HOME\}"):
        with_yaml_texts("a: one\n", "f", {("a",): "${HOME}"})


def test_of_a_key_that_is_given_twice_the_last_one_changes() -> None:
    assert with_yaml_texts("a: 'one'\na: 'two'\n", "f", {("a",): "new"}) == "a: 'one'\na: 'new'\n"


TOML = '''\
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
SPECIAL_IN_TOML = st.sampled_from(
    ["", "\n", "'", "'''", '"""', '"', "\\", "a\nb", "\na", "\r\n", "\x7f", "\u2028", "\t"]
)


def put_toml(data: Any, path: tuple[str | int, ...], text: str) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = text


@given(news=st.dictionaries(st.sampled_from(PATHS), TEXTS | SPECIAL_IN_TOML), end=st.sampled_from(["\n", "\r\n"]))
def test_only_the_values_change(news: dict[tuple[str | int, ...], str], end: str) -> None:
    source = TOML.replace("\n", end)
    changed = with_toml_texts(source, news)
    expected = tomllib.loads(source)
    for path, new in news.items():
        put_toml(expected, path, new)
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
def test_what_is_not_one_text_in_toml_is_refused(
    source: str, path: tuple[str | int, ...], line: int | None, why: str
) -> None:
    with pytest.raises(NotReplaceableError, match=why) as caught:
        with_toml_texts(source, {path: "new"})
    assert caught.value.line == line


def test_a_new_variable_in_toml_is_refused() -> None:
    with pytest.raises(NotReplaceableError, match=r"contains the variable \$\{HOME\}"):
        with_toml_texts("a = 'one'\n", {("a",): "${HOME}"})
