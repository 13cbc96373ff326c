"""Reading YAML: text, lines, variables, and malicious files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.confine import confined
from agenteval.core.document import Document, KeyPath, dotted
from agenteval.core.errors import ConfigError
from agenteval.core.yaml import read_yaml


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "suite.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, **environment: str) -> Document:
    return read_yaml(write(folder, text), shown_as="suite.yaml", environment=environment)


def problems(folder: Path, text: str | bytes, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, text, **environment)
    return [str(problem) for problem in caught.value.problems]


class TestScalars:
    @pytest.mark.parametrize(
        "written",
        ["2024-01-01", "2024-13-45", "2001-12-14t21:59:43.10-05:00", "=", "0x_", "0b_", "9" * 5000, "1e3", "08"],
    )
    def test_values_that_only_look_like_another_type_are_text(self, folder: Path, written: str) -> None:
        assert read(folder, f"a: {written}").data == {"a": written}

    @pytest.mark.parametrize("written", ["!!int abc", "!!int ''", "!!float abc", "!!bool maybe"])
    def test_a_tag_that_does_not_fit_leaves_text(self, folder: Path, written: str) -> None:
        assert read(folder, f"a: {written}").data == {"a": written.partition(" ")[2].strip("'")}

    @pytest.mark.parametrize(
        "written", ["60.940", "1e3", "yes", "0x1F", "2024-01-01", "null", "1_000", "+5", ".5", "text"]
    )
    def test_source_text_is_unchanged(self, folder: Path, written: str) -> None:
        document = read(folder, f"cases:\n- answer: {written}\n")
        assert document.source_text(["cases", 0, "answer"]) == written

    @pytest.mark.parametrize("path", [["a"], ["a", 0], ["b", 1], ["b", "x"], ["missing"], []])
    def test_only_scalars_have_a_source_text(self, folder: Path, path: KeyPath) -> None:
        assert read(folder, "a: {x: 1}\nb: [1]\n").source_text(path) is None


class TestLines:
    TEXT = "name: x\ncases:\n- input: q\n  turns:\n    - input: deep\n\n- {input: r, answer: s}\nlast: 1\n"

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            (["cases", 0], 3),
            (["cases", 0, "turns", 0, "input"], 5),
            (["cases", 1, "answer"], 7),
            (["cases", 0, "missing"], 3),
            (["cases", 7], 2),
            (["missing"], None),
        ],
    )
    def test_line_of_a_key_or_its_nearest_parent(self, folder: Path, path: KeyPath, line: int | None) -> None:
        assert read(folder, self.TEXT).line(path) == line

    def test_a_path_may_begin_with_an_index(self) -> None:
        assert dotted([0, "turns", 1, "input"]) == "[0].turns[1].input"


# Text that would change the structure if it were inserted before parsing.
HOSTILE = [
    "x: y",
    "[1, 2]",
    "'",
    "' }\nevil: true #",
    "# comment",
    "*alias",
    "!!python/object/apply:os.system [ls]",
    "${OTHER}",
    "${VALUE}",
    "\t",
    "yes",
    "\x07",
]


class TestVariables:
    TEMPLATE = """\
plain: ${VALUE}
quoted: ["${VALUE}", '${VALUE}']
inside: before ${VALUE} after ${VALUE}
flow: {key: $VALUE, list: ["x${VALUE}", 5]}
block: |
  ${VALUE}
number: 60.940
"""

    @given(value=st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(HOSTILE))
    @example(value="\n".join(HOSTILE))
    def test_a_value_is_one_text_and_never_structure(self, folder: Path, value: str) -> None:
        assert read(folder, self.TEMPLATE, VALUE=value, OTHER="not looked up").data == {
            "plain": value,
            "quoted": [value, value],
            "inside": f"before {value} after {value}",
            "flow": {"key": "$VALUE", "list": [f"x{value}", 5]},
            "block": f"{value}\n",
            "number": 60.94,
        }

    @pytest.mark.parametrize(
        ("written", "environment", "value"),
        [
            ("${A}", {"A": "5"}, "5"),
            ("${A}${B}", {"A": "x", "B": "y"}, "xy"),
            ("${A:-default}", {"A": "x"}, "x"),
            ("${A:-default}", {"A": ""}, "default"),
            ("${A:-}", {}, ""),
            ("${A:-a b:c}", {}, "a b:c"),
            ("!!int ${A}", {"A": "5"}, "5"),
        ],
    )
    def test_replacement(self, folder: Path, written: str, environment: dict[str, str], value: str) -> None:
        assert read(folder, f"a: {written}", **environment).data == {"a": value}

    @pytest.mark.parametrize("written", ["$A", "${}", "${1A}", "${A-default}", "${a.b}", "$(A)", "%A%"])
    def test_anything_else_stays_as_it_is(self, folder: Path, written: str) -> None:
        assert read(folder, f"a: '{written}'", A="x").data == {"a": written}

    def test_every_unset_variable_is_named_with_its_line(self, folder: Path) -> None:
        assert problems(folder, "a: ${ONE}\nb:\n- x\n- '${TWO} ${ONE}'\nc: ${SET}\n", SET="x") == [
            "suite.yaml:1: environment variable ONE is not set; set it, or write ${ONE:-default}",
            "suite.yaml:4: environment variable TWO is not set; set it, or write ${TWO:-default}",
            "suite.yaml:4: environment variable ONE is not set; set it, or write ${ONE:-default}",
        ]

    def test_a_value_that_is_not_utf8_is_an_error(self, folder: Path) -> None:
        assert problems(folder, "a: ${A}", A="x\udcff") == ["suite.yaml:1: environment variable A is not UTF-8 text"]

    def test_only_used_values_from_the_environment_are_secret(self, folder: Path) -> None:
        text = "a: ${API_KEY:-fallback}\nb: '${EMPTY_KEY}'\n"
        with confined(pass_env=("*",)):
            assert read(folder, text, OTHER_KEY="unused", EMPTY_KEY="").secrets == frozenset()


class TestAnchors:
    TEXT = "base: &base\n  answer: 60.940\n  extra: yes\ncase:\n  <<: *base\n  input: q\n  extra: no\n"

    def test_merge_keys_are_merged_and_overruled(self, folder: Path) -> None:
        assert read(folder, self.TEXT).data["case"] == {"answer": 60.94, "extra": False, "input": "q"}

    def test_lines_and_texts_lead_to_where_it_is_written(self, folder: Path) -> None:
        document = read(folder, self.TEXT)
        assert document.source_text(["case", "answer"]) == "60.940"
        assert document.line(["case", "answer"]) == 2
        assert document.source_text(["case", "extra"]) == "no"
        assert document.line(["case", "extra"]) == 7

    def test_the_first_of_several_merged_mappings_wins(self, folder: Path) -> None:
        document = read(folder, "a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}\n")
        assert document.data["c"] == {"x": 1, "y": 3}
        assert document.source_text(["c", "x"]) == "1"

    @pytest.mark.parametrize(
        ("text", "warnings"),
        [
            ("a: 1\nb: 2\n", []),
            ("d: &d {a: 1}\ne: &e {b: 1}\nx:\n  <<: *d\n  <<: *e\n", []),
        ],
    )
    def test_repeated_keys_are_a_warning(self, folder: Path, text: str, warnings: list[str]) -> None:
        assert list(read(folder, text).warnings) == warnings


class TestBrokenFiles:
    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("a: [1,\nb: 2\n", 3, "expected ',' or ']'"),
            ("a: 1\n b: 2\n", 2, "mapping values are not allowed"),
            ("a: *nowhere\n", 1, "undefined alias"),
            ("a: !!python/object/apply:os.system [echo]\n", 1, "python/object/apply"),
            ("{[1]: x}\n", 1, "unhashable key"),
            ("a: 1\nb: \x07\n", 2, "U+0007 is not allowed"),
        ],
    )
    def test_syntax(self, folder: Path, text: str, line: int, words: str) -> None:
        (problem,) = problems(folder, text)
        assert problem.startswith(f"suite.yaml:{line}: not valid YAML: ")
        assert words in problem
        assert "\n" not in problem

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8 text (byte 0)"),
            (b"a: caf\xe9\n", "not UTF-8 text (byte 6)"),
        ],
    )
    def test_other_encodings(self, folder: Path, content: bytes, message: str) -> None:
        assert problems(folder, content) == [f"suite.yaml: {message}"]


def bomb(line: str, levels: int) -> str:
    """Each level repeats the one before ten times."""
    return "".join(line.format(level=level, before=level - 1) for level in range(1, levels))


TENFOLD = ", ".join(["*a{before}"] * 10)


class TestHarmfulFiles:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a: &a [*a]", 1),
            ("a: &a\n  b: *a", 2),
            ("- &a\n  x: 1\n  <<: *a\n", 3),
            ("a: &a [1, &b [2, {c: [*a]}]]", 1),
        ],
    )
    def test_an_anchor_cannot_contain_itself(self, folder: Path, text: str, line: int) -> None:
        assert problems(folder, text) == [f"suite.yaml:{line}: the anchor &a contains itself"]

    @pytest.mark.parametrize(
        "text",
        [
            "a: " + "[" * 200_000,
            "a: " + "{x: " * 200_000,
            "- " * 200_000 + "x",
            "\n".join(" " * level + "a:" for level in range(2_000)),
        ],
        ids=["flow-lists", "flow-mappings", "block-lists", "block-mappings"],
    )
    def test_endless_nesting_is_refused(self, folder: Path, text: str) -> None:
        (problem,) = problems(folder, text)
        assert problem.endswith(": nested more than 100 levels deep")

    def test_reasonable_nesting_is_not(self, folder: Path) -> None:
        value: Any = read(folder, "[" * 100 + "x" + "]" * 100).data
        for _ in range(100):
            (value,) = value
        assert value == "x"
        assert problems(folder, "[" * 101 + "x" + "]" * 101) == ["suite.yaml:1: nested more than 100 levels deep"]

    @pytest.mark.parametrize(
        "text",
        [
            "a0: &a0 [x, x, x]\n" + bomb(f"a{{level}}: &a{{level}} [{TENFOLD}]\n", 30),
            "a0: &a0 {x: 1}\n" + bomb(f"a{{level}}: &a{{level}} {{{{<<: [{TENFOLD}]}}}}\n", 30),
            "text: &a0 " + "x" * 100_000 + "\nmany: [" + "*a0, " * 100 + "]\n",
        ],
        ids=["lists", "merge-keys", "long-text"],
    )
    def test_aliases_cannot_be_a_bomb(self, folder: Path, text: str) -> None:
        (problem,) = problems(folder, text)
        assert problem.endswith(": aliases repeat too much text")


class TestVariablesInFlowStyle:
    """``{key: ${X}}``: the braces of a variable are not read as YAML."""

    def test_they_are_replaced(self, tmp_path: Path) -> None:
        file = tmp_path / "suite.yaml"
        file.write_text(
            'model: {name: ${X}, list: [${X}, "${Y:-d e}", ${Z:-q}]}\n${X}: key\n# ${NOBODY}\nplain: $X ${1} {a}\n',
            encoding="utf-8",
        )

        assert read_yaml(file, environment={"X": "1: {}\n- 2"}).data == {
            "model": {"name": "1: {}\n- 2", "list": ["1: {}\n- 2", "d e", "q"]},
            "${X}": "key",
            "plain": "$X ${1} {a}",
        }
