"""Reading TOML: values, lines, variables, and messages about invalid files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.document import Document
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.toml import read_toml

Path_ = tuple[str | int, ...]

EVAL = '[eval]\ndescription = "d"\ntype = "accuracy"\ntargets.agents = ["*"]\n\n'
# The line on which the body of a case after EVAL begins.
CASE = EVAL + "[[eval.cases]]\n"
BODY = CASE.count("\n") + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toml")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "suite.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, **environment: str) -> Document:
    return read_toml(write(folder, text), shown_as="suite.toml", environment=environment)


def problems(folder: Path, text: str | bytes, **environment: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        read(folder, text, **environment)
    return list(caught.value.problems)


# Lines


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("[t]\na = 1", ("t", "a"), 2),
        ("[t.u]\na = 1\n[t]\nb = 2", ("t", "b"), 4),
        ("[t.u]\na = 1\n[t]\nb = 2", ("t", "u"), 1),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", 1), 3),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t",), 1),
        ("[[t]]\n[[t.u]]\na = 1\n[[t.u]]\na = 2\n[[t]]\n[[t.u]]\na = 3", ("t", 1, "u", 0, "a"), 8),
        ("x = 1\na = { b = 1, c = { d = 2 } }", ("a", "c", "d"), 2),
        ("a = [\n  1,\n  2, # two\n  3,\n]\nb = 1", ("a", 2), 4),
        ("a = []\nb = {}\nc = 1", ("c",), 3),
        ('a = """x""""\nb = 1', ("b",), 2),
        ('a = """"""\nb = 1', ("b",), 2),
        ("a = '''\n[[t]]\n\"\"\"\n'''\nb = 1", ("b",), 5),
        ("a = 1\r\nb = 2\r\n", ("b",), 2),
        ('"a b" = 1\n"c.d" = 2', ("c.d",), 2),
        ("a = 1979-05-27 07:32:00 # x\nb = 1", ("b",), 2),
        ("a = +1_000.5e-3\nb = [inf, -nan, 0xFF]\nc = true", ("c",), 3),
    ],
)
def test_the_line_of_a_key(folder: Path, text: str, path: Path_, line: int) -> None:
    assert read(folder, text).line(path) == line


@pytest.mark.parametrize(
    ("text", "environment", "value"),
    [
        ('a = "${X}"', {"X": "v"}, "v"),
        ('a = "${X:-d e}"', {}, "d e"),
        ('a = "${X:-d}"', {"X": ""}, "d"),
        ('a = "$X {X} ${1X} ${X"', {"X": "v"}, "$X {X} ${1X} ${X"),
        ('a = "${X}"', {"X": "${Y}", "Y": "no"}, "${Y}"),
        ('a = "${X}"', {"X": '"\nb = 1\n[c]\n#'}, '"\nb = 1\n[c]\n#'),
    ],
)
def test_variables_are_replaced_in_texts(folder: Path, text: str, environment: dict[str, str], value: str) -> None:
    assert read(folder, text, **environment).data == {"a": value}


def test_unset_variables_are_named_all_at_once_with_their_lines(folder: Path) -> None:
    text = 'a = "${ONE}"\n[[t]]\nb = [\n"${X}", "${TWO}"]\n[t.u]\nc = "${ONE}"'
    assert [str(problem) for problem in problems(folder, text, X="v")] == [
        "suite.toml:1: environment variable ONE is not set; set it, or write ${ONE:-default}",
        "suite.toml:4: environment variable TWO is not set; set it, or write ${TWO:-default}",
        "suite.toml:6: environment variable ONE is not set; set it, or write ${ONE:-default}",
    ]


# Invalid TOML


SCHEMA = CASE + "[eval.cases.output.schema]\n"
BROKEN = [
    # One output twice
    (
        CASE + 'output = "4"  # bare\noutput.exact = "4"',
        BODY + 1,
        'keep one of the two: output = "4"   or   output.exact = "4"',
    ),
    (
        CASE + "latency = { max = 60 }\n\nlatency = { max = 30 }",
        BODY + 2,
        "latency = { max = 60 }   or   latency = { max = 30 }",
    ),
    (CASE + 'prompt = "x"\nprompt = "y"', BODY + 1, "a further [[eval.cases]] takes the other"),
    (CASE + 'output = { contains = "a", contains = "b" }', BODY, "Duplicate inline table key 'contains'"),
    # {…} extended by a later table
    (
        CASE + 'output = { similar = "a" }\noutput.threshold = 0.8',
        BODY + 1,
        'put it inside: output = { similar = "a", threshold = 0.8 }',
    ),
    (
        CASE + 'output = { contains = "a" }\n[eval.cases.output.schema]\nb = {}',
        BODY + 1,
        '[eval.cases.output]\n    contains = "a"',
    ),
    (
        SCHEMA + 'goods = { type = "list" }\n\n[eval.cases.output.schema.goods.items]\nid = { type = "int" }',
        BODY + 3,
        '[eval.cases.output.schema.goods]\n    type = "list"',
    ),
    # {…} over several lines
    (
        CASE + 'context = {\n  a = "b",\n  c = 1\n}\nblocked = true',
        BODY,
        "{…} must be on one line; for several lines, write a table: [….context]",
    ),
    (CASE + "parameters = {\n  most = 0.15\n}", BODY, "[….parameters]"),
    (CASE + 'output = { contains = "a", }', BODY, "remove the comma before the }"),
    # A table opened twice
    ('[eval.llm]\nmodel = "m"\n\n[eval.llm]\nprompt = "p"', 4, "a table can be declared only once"),
    (CASE + 'prompt = "x"\n[eval.cases]\nprompt = "y"', BODY + 1, "each one begins with [[eval.cases]]"),
    # Texts
    (CASE + r'output.match = "^\d{3}$"', BODY, r"match = '''^\d+$'''"),
    (CASE + r'prompt = "C:\users"', BODY, "a backslash begins an escape"),
    (CASE + "prompt = What is this?", BODY, "a text needs quotes"),
    (CASE + "prompt = “hello”", BODY, "the quotes must be straight"),
    (CASE + 'prompt = "He said "hi" to me"', BODY, 'write a quote inside "…" as \\"'),
    (CASE + 'prompt = "no end\noutput = "4"', BODY, "the text that begins here has no closing quote"),
    (CASE + 'prompt = """no end\noutput = "4"', BODY + 1, "has no closing quotes"),
    # Syntax of other languages
    (CASE + "blocked = True", BODY, "true, false"),
    (CASE + "output = null", BODY, "leave the key out"),
    ('[eval]\ntype: "accuracy"', 2, "key = value"),
    ("eval:\n  type: accuracy", 1, "key = value"),
    ('{"eval": {}}', 1, "not valid TOML"),
    (CASE + "prompt =\noutput = 1", BODY, "this is not a value"),
    ("a = 1" + "0" * 5000, None, "not valid TOML: Exceeds the limit"),
]


@pytest.mark.parametrize(("text", "line", "says"), BROKEN)
def test_broken_toml_gets_a_line_and_the_valid_form(folder: Path, text: str, line: int | None, says: str) -> None:
    (problem,) = problems(folder, text)
    assert problem.line == line
    assert problem.message.startswith("not valid TOML: ")
    assert says in problem.message


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{a=" * 5000 + "1" + "}" * 5000])
def test_deep_nesting_is_a_problem_and_no_crash(folder: Path, text: str) -> None:
    assert "nested too deeply" in problems(folder, text)[0].message


def read_or_problems(folder: Path, content: bytes) -> Document | None:
    """Check that nothing but a document or a ``ConfigError`` results."""
    try:
        return read(folder, content)
    except ConfigError:
        return None


@pytest.mark.parametrize(
    "content", [b'a = "\\ud800"', b"\xef\xbb", b"a = 0000-00-00", b"[a.b]\n[[a]]", b"[[a]]\n[a.b]\n[[a.b]]"]
)
def test_odd_files_are_read_or_refused(folder: Path, content: bytes) -> None:
    read_or_problems(folder, content)


VALID = (
    CASE
    + """prompt = "What is \\"2 + 2\\"?"  # easy
context = { a = [1, 2.5, { b = 1979-05-27 }], "c d" = 'x' }
output.match = '''^\\d{3}$'''

[[eval.cases]]
prompt = \"\"\"
several
lines\"\"\"

[eval.cases.output.schema]
tags = { type = "list[str]", min_items = 1 }

[eval.cases.output.schema.price]
amount = { type = "float" }
"""
)


EDITS = st.tuples(
    st.integers(0, len(VALID)), st.integers(0, 12), st.text(st.sampled_from("[]{}=.,\"'\\#\na1 "), max_size=3)
)


@given(st.lists(EDITS, min_size=1, max_size=4))
def test_mutations_of_a_valid_file_are_read_or_refused(folder: Path, edits: list[tuple[int, int, str]]) -> None:
    text = VALID
    for at, dropped, added in edits:
        text = text[:at] + added + text[at + dropped :]
    document = read_or_problems(folder, text.encode())
    if document is not None:
        assert document.data == dates_as_texts(tomllib.loads(text))
        assert all(document.line(path) is not None for path in paths(document.data))


def dates_as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: dates_as_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [dates_as_texts(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def paths(value: Any, at: Path_ = ()) -> list[Path_]:
    """The place of every key and every entry."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for step, item in steps for found in ((*at, step), *paths(item, (*at, step)))]
