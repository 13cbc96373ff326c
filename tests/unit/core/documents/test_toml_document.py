"""Reading TOML: values, lines, variables, and messages about invalid files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
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
    ("path", "line"),
    [(("a", "missing", "deeper"), 2), (("a", 0), 2), (("missing",), None), ((), None)],
)
def test_a_key_that_is_not_there_has_the_line_of_its_nearest_parent(
    folder: Path, path: Path_, line: int | None
) -> None:
    assert read(folder, "\n[a]\nb = 1").line(path) == line


# A generator of random documents that records the line of each key


class Sheet:
    """A growing text, and the line of every key in it."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.text = ""
        self.lines: dict[Path_, int] = {}

    def note(self, path: Path_) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def key(self, name: str) -> str:
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
        styles = ["basic"] + ["bare"] * bare + ["literal"] * ("'" not in name and name.isprintable())
        style = self.draw(st.sampled_from(styles))
        return {"bare": name, "literal": f"'{name}'", "basic": f'"{escaped(name)}"'}[style]

    def space(self) -> str:
        return self.draw(st.sampled_from(["", " ", "\t"]))

    def gap(self) -> str:
        """White space and comments between lines."""
        return self.draw(st.sampled_from(["", "\n", "# [no] table = {\n", '  # """\n', "\n\n"]))


def escaped(text: str) -> str:
    return "".join(
        f"\\u{ord(char):04x}" if ord(char) < 32 or char in '"\\' or ord(char) == 127 else char for char in text
    )


def text_value(sheet: Sheet, value: str) -> str:
    printable = all(char == "\n" or (ord(char) >= 32 and ord(char) != 127) for char in value)
    styles = ["basic", "multi"]
    if printable and "\n" not in value and "'" not in value:
        styles.append("literal")
    if printable and "'" not in value:
        styles.append("multi-literal")
    style = sheet.draw(st.sampled_from(styles))
    if style == "literal":
        return f"'{value}'"
    if style == "multi-literal":
        return f"'''\n{value}'''"
    if style == "multi":
        return '"""\n' + "\n".join(escaped(line) for line in value.split("\n")) + '"""'
    return f'"{escaped(value)}"'


def put_value(sheet: Sheet, path: Path_, value: Any, inline: bool = False) -> None:
    """``inline``: inside of {…}, where no line break is allowed between keys."""
    if isinstance(value, str):
        sheet.text += text_value(sheet, value)
    elif isinstance(value, bool):
        sheet.text += str(value).lower()
    elif isinstance(value, list):
        sheet.text += "["
        for index, item in enumerate(value):
            sheet.text += sheet.draw(st.sampled_from(["", " ", "\n", " # ]\n  "]))
            sheet.note((*path, index))
            put_value(sheet, (*path, index), item)
            sheet.text += "," if index + 1 < len(value) else sheet.draw(st.sampled_from(["", ",", ",\n", "\n"]))
        sheet.text += "]"
    elif isinstance(value, dict):
        sheet.text += "{"
        for number, (name, item) in enumerate(value.items()):
            sheet.text += ", " if number else sheet.space()
            put_pair(sheet, path, name, item)
        sheet.text += sheet.space() + "}"
    else:
        sheet.text += str(value)


def put_pair(sheet: Sheet, path: Path_, name: str, value: Any) -> None:
    """``name = value``; a table of one key also as ``name.key = value``."""
    sheet.note((*path, name))
    sheet.text += sheet.key(name)
    path = (*path, name)
    while isinstance(value, dict) and len(value) == 1 and sheet.draw(st.booleans()):
        name, value = next(iter(value.items()))
        path = (*path, name)
        sheet.note(path)
        sheet.text += f"{sheet.space()}.{sheet.space()}{sheet.key(name)}"
    sheet.text += f"{sheet.space()}={sheet.space()}"
    put_value(sheet, path, value)


def is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def put_table(sheet: Sheet, path: Path_, names: tuple[str, ...], table: Mapping[str, Any]) -> None:
    """The keys of a table whose header is written, then the tables below it."""
    below = [
        name
        for name, value in table.items()
        if (isinstance(value, dict) or is_table_list(value)) and sheet.draw(st.booleans())
    ]
    for name, value in table.items():
        if name not in below:
            sheet.text += sheet.gap() + sheet.space()
            put_pair(sheet, path, name, value)
            sheet.text += sheet.draw(st.sampled_from(["\n", " # comment = 1\n"]))
    for name in below:
        value, inner = table[name], (*path, name)
        header = ".".join(sheet.key(part) for part in (*names, name))
        entries = value if isinstance(value, list) else [value]
        for index, entry in enumerate(entries):
            sheet.text += sheet.gap()
            sheet.note(inner)
            place = inner
            if isinstance(value, list):
                place = (*inner, index)
                sheet.note(place)
            sheet.text += f"[[{header}]]\n" if isinstance(value, list) else f"[ {header} ] # x\n"
            put_table(sheet, place, (*names, name), entry)


KEYS = st.text(st.sampled_from("abAB19_-")) | st.text(st.sampled_from("a.[]{}=\"'\\#, \té😀\u2028"), max_size=4)
SCALARS = st.booleans() | st.integers(-999, 999) | st.text(st.sampled_from("ab \n\"'\\[]{}=#,\t🎈\x01"), max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
TABLES = st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), max_size=5)


@pytest.mark.long
@given(data=TABLES, draw=st.data())
def test_every_key_of_a_random_document_is_found_where_it_was_put(
    folder: Path, data: dict[str, Any], draw: st.DataObject
) -> None:
    sheet = Sheet(draw)
    put_table(sheet, (), (), data)
    document = read(folder, sheet.text)
    assert document.data == data
    assert {path: document.line(path) for path in sheet.lines} == sheet.lines


# Values


def test_dates_and_times_are_texts(folder: Path) -> None:
    text = "a = 1979-05-27\nb = 07:32:00\nc = 1979-05-27T07:32:00Z\nd = [1979-05-27]"
    assert read(folder, text).data == {
        "a": "1979-05-27",
        "b": "07:32:00",
        "c": "1979-05-27T07:32:00+00:00",
        "d": ["1979-05-27"],
    }


# Variables


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


def test_variables_are_replaced_at_every_depth_but_not_in_keys_and_comments(folder: Path) -> None:
    text = '"${X}" = [{ a = ["${X}"] }]  # ${UNSET}\n'
    assert read(folder, text, X="v").data == {"${X}": [{"a": ["v"]}]}


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


@pytest.mark.parametrize(
    ("advice", "data"),
    [
        ('[eval.cases.context]\na = "b"\nc = 1', {"context": {"a": "b", "c": 1}}),
        ('output.similar = "a"\noutput.threshold = 0.8', {"output": {"similar": "a", "threshold": 0.8}}),
        (
            '[eval.cases.output.schema.products]\ntype = "list"\n[eval.cases.output.schema.products.items]\nid = {}',
            {"output": {"schema": {"products": {"type": "list", "items": {"id": {}}}}}},
        ),
    ],
)
def test_the_advised_forms_are_valid(folder: Path, advice: str, data: dict[str, Any]) -> None:
    assert read(folder, CASE + advice).data["eval"]["cases"] == [data]


def test_a_file_that_is_not_utf_8_is_an_error(folder: Path) -> None:
    assert [str(problem) for problem in problems(folder, b'a = "\xff"')] == ["suite.toml: not UTF-8 text (byte 5)"]


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{a=" * 5000 + "1" + "}" * 5000])
def test_deep_nesting_is_a_problem_and_no_crash(folder: Path, text: str) -> None:
    assert "nested too deeply" in problems(folder, text)[0].message


def read_or_problems(folder: Path, content: bytes) -> Document | None:
    """Check that nothing but a document or a ``ConfigError`` results."""
    try:
        return read(folder, content)
    except ConfigError:
        return None


@given(st.binary(max_size=200) | st.text(st.sampled_from("ab[]{}=.,\"'\\#\n 1-T:"), max_size=60).map(str.encode))
@example(b'a = "\\ud800"')
@example(b"\xef\xbb")
@example(b"a = 0000-00-00")
@example(b"a = 1" + b"0" * 5000)
@example(b"[a.b]\n[[a]]")
@example(b"[[a]]\n[a.b]\n[[a.b]]")
def test_random_bytes_are_read_or_refused(folder: Path, content: bytes) -> None:
    document = read_or_problems(folder, content)
    if document is not None:
        tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))


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
