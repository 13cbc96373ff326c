"""Long YAML lists in parts: equal to the list read as a whole, or rejected."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agenteval.core import yaml_list as yaml_pieces
from agenteval.core.document import KeyPatterns
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.yaml_list import ListInFile, NotInPartsError, ReadList, read_in_parts, read_whole
from agenteval.suite.formats.holodeck.suite import load_holodeck

KEY = "test_cases"
# Lines of items and lines around them; most combinations are YAML, some only look like it.
LINES = [
    *("- name: a", "- a", "-", "- - b", "- {name: a, input: 1}", "- |", "- 'open", '- "open', "- [1,", "- >-"),
    *(
        "name: a",
        "input: ${SOME_TEST_UNSET}",
        "input: ${SOME_TEST_UNSET:-x}",
        "name: twice",
        "text: |",
        "b]",
    ),
    *("- not an item'", 'end"', "# a comment", "", "...", "---", "test_cases:", "test_cases: # cases", "other: 1"),
    *("&a x", "*a", "!!str x", "\tx", "x: {", "}", "é: \u2028", "? a", ": b"),
]
TEXTS = st.lists(
    st.tuples(st.sampled_from(["", "", "  ", "    ", " "]), st.sampled_from(LINES)).map("".join), max_size=14
).map("\n".join)
SUITE = """\
name: demo
test_cases:  # all of them
# the first
- name: one
  input: "a
    - b"
  ground_truth: |
    - c

    d
- input: ${SOME_TEST_SET}
  name: 2.50

# the third
- {name: three, input: x,
   input: y}
-
  name: four
  input: z
evaluations: {metrics: [{type: standard, metric: equality}]}
"""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_pieces, "_LONG", 0)
    monkeypatch.setattr(yaml_pieces, "_ITEMS", 2)
    monkeypatch.setenv("SOME_TEST_SET", "from outside")
    monkeypatch.delenv("SOME_TEST_UNSET", raising=False)


def told(read: ReadList, path: Path) -> Any:
    """All observable properties of a list: values, lines, source texts, warnings, problems."""
    problems: list[Problem] = []
    found: ListInFile = read(path, KEY, shown_as="cases.yaml", unset=problems, credentials=KeyPatterns())
    warnings = list(found.document.warnings)
    items = []
    for part in found.parts:
        warnings += part.document.warnings
        for number in part.items:
            at = (*found.at, number)
            value = part.document.data
            for step in at:
                value = value[step]
            inner = value if isinstance(value, dict) else {}
            places = [(key, part.document.line((*at, key)), part.document.source_text((*at, key))) for key in inner]
            items.append((repr(value), part.document.line(at), places))
    return items, sorted(warnings), sorted(map(str, problems))


def outcome(read: ReadList, path: Path) -> Any:
    """The observable properties, or the reason for a rejection."""
    try:
        return told(read, path)
    except ConfigError as error:
        return str(error)


# Reads each document twice.
@pytest.mark.long
@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
@example(text="- 'a\n- b'\n- c")
@example(text="x: 'a\ntest_cases:\n- b'\n")
@example(text="test_cases:\n  - a\n - b\n")
@example(text="test_cases:\n- a\n...\n- b\n")
def test_parts_are_equal_to_the_whole(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "cases.yaml")
        path.write_text(text, encoding="utf-8")
        try:
            in_parts = outcome(read_in_parts, path)
        except NotInPartsError:
            return
        assert in_parts == outcome(read_whole, path)


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_list_below_a_key_comes_in_parts(tmp_path: Path, indent: str) -> None:
    path = tmp_path / "agent.yaml"
    items = "".join(f"{indent}- name: case {number}\n{indent}  input: x\n" for number in range(5))
    path.write_text(f"name: demo\n{KEY}:\n{items}other: 1\n", encoding="utf-8")
    found = read_in_parts(path, KEY, shown_as="agent.yaml", unset=[], credentials=KeyPatterns())
    assert found.document.data == {"name": "demo", KEY: None, "other": 1}
    parts = list(found.parts)
    assert [part.items for part in parts] == [range(2), range(2, 4), range(4, 5)]
    assert parts[1].document.data == {KEY: {2: {"name": "case 2", "input": "x"}, 3: {"name": "case 3", "input": "x"}}}
    assert parts[1].document.line((KEY, 3, "input")) == 10


@pytest.mark.parametrize("inline", [True, False])
def test_a_suite_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: bool) -> None:
    path = tmp_path / "agent.yaml"
    head, cases, tail = SUITE.partition("# the first\n")[0], "", ""
    if inline:
        path.write_text(SUITE, encoding="utf-8")
    else:
        cases = SUITE[len(head) : SUITE.index("evaluations:")]
        tail = SUITE[SUITE.index("evaluations:") :]
        path.write_text(f"name: demo\ntest_cases_file: cases.yaml\n{tail}", encoding="utf-8")
        (tmp_path / "cases.yaml").write_text(cases, encoding="utf-8")
    in_parts = load_holodeck(path, "agent.yaml")
    monkeypatch.setattr(yaml_pieces, "_LONG", 10**9)
    assert in_parts == load_holodeck(path, "agent.yaml")
    assert [case.name for case in in_parts.cases] == ["one", "2.50", "three", "four"]
    assert len(in_parts.warnings) == 1
    assert in_parts.fingerprint == load_holodeck(path, "agent.yaml").fingerprint


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(SUITE.replace("name: four", "nam: four"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"agent\.yaml:18: test_cases\[3\]\.nam: unknown key; did you mean 'name'"):
        load_holodeck(path, "agent.yaml")


def test_a_line_that_only_looks_like_an_item_is_read_in_its_context(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(f"{KEY}:\n- name: a\n  input: 'x\n- name: b\n  input: y'\n", encoding="utf-8")
    with pytest.raises(NotInPartsError):
        told(read_in_parts, path)
    assert [case.turns[0].input for case in load_holodeck(path, "agent.yaml").cases] == ["x - name: b input: y"]
