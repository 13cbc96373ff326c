"""Mistakes as people see them: each once, with source line, caret, fix and page; safe to print."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.cli.output import fail, has_colours, print_mistakes
from agenteval.core.errors import ConfigError, InfrastructureError, Kind, Problem, UserCodeError, unexpected_error
from agenteval.core.mistakes import mistakes, page_of, shown, source_line
from agenteval.core.secrets import add_secrets, masking
from agenteval.core.text import choices


def lines(problem: Problem, *others: Problem) -> list[str]:
    """The lines of one mistake, without the page."""
    (found,) = mistakes([problem, *others])
    *text, page = ("".join(span.text for span in line) for line in shown(found))
    assert page.endswith(f"= see: {page_of(problem.kind)}")
    return text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_mistake_in_many_places_is_shown_once(folder: Path) -> None:
    (folder / "agent.yaml").write_text("name: x\ntest_cases:\n" + "  - {input: a,\n     tags: [x]}\n" * 116)
    problems = [
        Problem(
            "unknown key; allowed: name, input",
            "agent.yaml",
            4 + 2 * place,
            f"test_cases[{place}].tags",
            Kind.UNKNOWN_KEY,
        )
        for place in range(116)
    ]
    assert lines(*problems) == [
        "error: unknown key 'tags'",
        " --> agent.yaml:4 and 115 more",
        "  |",
        "4 |   tags: [x]}",
        "  |   ^^^^ test_cases[].tags",
        "  = allowed: name, input",
    ]
    one_line = "agent.yaml:4: test_cases[0].tags: unknown key; allowed: name, input; the same in 115 other places: "
    assert str(mistakes(problems)[0]).startswith(f"{one_line}agent.yaml:6, agent.yaml:8, ")


def test_different_mistakes_stay_apart() -> None:
    problems = [
        Problem("'f1' is not allowed", "a.yaml", 1, "metrics[0].metric"),
        Problem("'f2' is not allowed", "a.yaml", 2, "metrics[1].metric"),
        Problem("'f1' is not allowed", "a.yaml", 3, "metrics[2].kind"),
        Problem("'f1' is not allowed", "b.yaml", 4, "cases[2].metric"),
        Problem("'f1' is not allowed", "a.yaml", 1, "metrics[0].metric"),
    ]
    assert [len(mistake.others) for mistake in mistakes(problems)] == [1, 0, 0]


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem("this key is required", path="a.b[0].input"), "error: missing key 'input'"),
        (Problem("'f1' is not allowed; mend it", path="m.metric"), "error: metric 'f1' is not allowed"),
        (Problem("70 is out of range", path="m.threshold"), "error: threshold 70 is out of range"),
        (Problem("--shard: 'x' is not I/N", path=""), "error: --shard: 'x' is not I/N"),
        (Problem("the name 'a; b' is given twice; choose another"), "error: the name 'a; b' is given twice"),
        (Problem("-o: this file would be lost", path="x.version"), "error: version: -o: this file would be lost"),
],
)  # fmt: skip
def test_titles(problem: Problem, expected: str) -> None:
    assert lines(problem)[0] == expected


def test_an_example_stays_below_the_fix() -> None:
    text = lines(Problem("no agent to run; add one\n    agents:\n      default: x", "agenteval.yaml"))
    assert text == [
        "error: no agent to run",
        " --> agenteval.yaml",
        "  = help: add one",
        "        agents:",
        "          default: x",
    ]


SECRETS = {
    "key: sk-0123456789abcdefghij0123": "sk-0123456789",
    "api_key: plain-value-of-mine": "plain-value",
    "model: {provider: openai, api_key: plain-value, name: x}": "plain-value",
    "headers: {Authorization: Bearer plain-value}": "plain-value",
    "  Authorization: Basic plain-value": "plain-value",
    'password: "plain-value"': "plain-value",
    "url: ${SERVICE_TOKEN:-plain-value}": "plain-value",
    "text: known-to-the-run": "known-to-the-run",
    'DB_PASS = "plain-value"': "plain-value",
}


def test_no_source_line_shows_a_secret(folder: Path) -> None:
    with masking():
        add_secrets({"known-to-the-run"})
        for text, secret in SECRETS.items():
            (folder / "agent.yaml").write_text(f"{text}\n")
            found = "\n".join(lines(Problem("unknown key", "agent.yaml", 1, re.split(r"[:=]", text)[0].strip())))
            assert secret not in found, text
            assert "1 | " in found


@given(st.text(min_size=1, max_size=300), st.text(max_size=30), st.text(max_size=200))
def test_hostile_text_is_safe_to_print(written: str, key: str, message: str) -> None:
    Path("agent.yaml").write_text(f"x{written}", encoding="utf-8", errors="replace")
    for line in lines(Problem(message or "x", "agent.yaml", 1, key)):
        assert "\x1b" not in line
        assert "\n" not in line
        assert "\r" not in line
        assert not line.startswith("::")
        assert "##[" not in line
    quoted = source_line("agent.yaml", 1, (key,) if key else ())
    assert quoted is None or (len(quoted.text) <= 100 and quoted.width >= 1)


def test_long_lines_are_cut_around_the_mark(folder: Path) -> None:
    (folder / "a.yaml").write_text("a: [" + "x, " * 200 + "wrong: 1" + ", y" * 200 + "]\n")
    quoted = source_line("a.yaml", 1, ("wrong",))
    assert quoted is not None
    assert quoted.text[quoted.start : quoted.start + quoted.width] == "wrong"
    assert (quoted.text[0], quoted.text[-1], len(quoted.text)) == ("…", "…", 98)


@pytest.mark.parametrize(
    "name",
    [
        "pipe",
        "folder",
        "binary",
    ],
)
def test_files_that_cannot_be_quoted(name: str, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "binary").write_bytes(b"\xff\xfe\x00" * 10)
    (folder / "empty").write_bytes(b"")
    text = lines(Problem("it is wrong", name, 1))
    assert text[:2] == ["error: it is wrong", f" --> {name}:1"]


def test_a_traceback_cannot_name_a_file_to_show(folder: Path) -> None:
    (folder / "secret.txt").write_text("of the runner\n")
    assert "of the runner" not in "".join(lines(Problem("it raised", "secret.txt", 1, kind=Kind.AGENT_FAILS)))


CLOSED = PermissionError(13, "Permission denied", "closed/x")
TWO_PLACES = ConfigError([Problem("a", "x"), Problem("a", "y")])


@pytest.mark.parametrize(
    ("error", "status", "last"),
    [
        (ConfigError(Problem("a")), 2, "nothing was run (exit status 2)"),
        (ConfigError([Problem("a"), Problem("b")]), 2, "2 mistakes; nothing was run (exit status 2)"),
        (TWO_PLACES, 2, "1 mistake in 2 places; nothing was run (exit status 2)"),
        (ConfigError(Problem("a"), ["good.yaml"]), 2, "without problems: good.yaml"),
        (UserCodeError(Problem("a")), 3, "nothing was run (exit status 3)"),
        (InfrastructureError("disk full"), 3, ""),
        (unexpected_error(KeyError("x")), 3, ""),
        (unexpected_error(CLOSED), 2, "nothing was run (exit status 2)"),
    ],
)  # fmt: skip
def test_the_end_of_the_output(error: ConfigError, status: int, last: str) -> None:
    out = io.StringIO()
    assert fail(error, out) == status
    assert out.getvalue().rstrip("\n").split("\n\n")[-1].splitlines()[-1] == (last or out.getvalue().splitlines()[-2])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "colours"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours(
    stream: io.StringIO, variables: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert has_colours(stream, os.environ) is colours
    print_mistakes(mistakes([Problem("wrong [bold]markup[/bold]; mend it", "a.yaml", 1, "a.b")]), stream)
    text = stream.getvalue()
    assert ("\x1b[" in text) is colours
    assert "[bold]markup[/bold]" in text


@pytest.mark.parametrize(
    ("name", "allowed", "expected"),
    [
        ("f1", ("equality", "f1_score"), "; did you mean 'f1_score'?; allowed: equality, f1_score"),
        ("F1-Score", ("equality", "f1_score"), "; did you mean 'f1_score'?; allowed: equality, f1_score"),
        ("regression", (*"abcdefgh", "regressions"), "; did you mean 'regressions'?"),
        ("zzz", tuple(f"name-{number}" for number in range(9)), "; nearest: name-8, name-7, name-6"),
        ("x", (), "; allowed: none"),
    ],
)  # fmt: skip
def test_choices(name: str, allowed: Sequence[str], expected: str) -> None:
    assert choices(name, allowed) == expected


def test_long_lines_break_at_blanks_in_a_terminal_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    (folder / "agent.yaml").write_text("metric: " + "long " * 15 + "\n")
    problem = Problem(
        "the metric polite needs a judge model, and none is named; allowed: one, two, three, four, five, six, seven; "
        "name one, and set OPENAI_API_KEY in the environment of the step",
        "agent.yaml",
        1,
        "metric",
        Kind.JUDGE,
    )
    terminal, log = Terminal(), io.StringIO()
    print_mistakes(mistakes([problem]), terminal)
    print_mistakes(mistakes([problem]), log)
    assert terminal.getvalue().splitlines()[:-2] == [
        "error: the metric polite needs a judge model, and",
        "  none is named",
        " --> agent.yaml:1",
        "  |",
        f"1 | metric: {'long ' * 15}".rstrip(),
        "  | ^^^^^^ metric",
        "  = allowed: one, two, three, four, five, six,",
        "      seven",
        "  = help: name one, and set OPENAI_API_KEY in the",
        "      environment of the step",
    ]
    assert terminal.getvalue().split() == log.getvalue().split()
