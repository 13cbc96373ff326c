"""Hostile text through every outlet that a runner reads line by line, and through XML."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest
from tests.unit.report import samples
from tests.unit.report.samples import HOSTILE_TEXTS, Sample

from agenteval.core.errors import Problem
from agenteval.github.check_run import as_commands
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.overview import annotate, render_nothing_left, render_problems, render_unfinished
from agenteval.report.terminal import print_report

_LONG = tuple(piece * 5_000 for piece in ("::error::x ", "##[error]x", "\x1b[31m", "\n::x::", "</a>]]>"))
_CORPUS = (
    *HOSTILE_TEXTS,
    *_LONG,
    "##[group]",
    " ::notice::",
    "\r::warning::",
    "a\u2028::debug::b",
    "@team #1",
    "\x00",
)
# The runner: a command at the start of a line, after white space; one of the old form anywhere in it.
_NEW = re.compile(r"\s*::(?P<name>[^\s:]+)(?: [^:]*)?::")
_FENCED = re.compile(r"^(`{3,})(?:text|diff|sh)\n.*?\n\1$", re.MULTILINE | re.DOTALL)
_OLD = re.compile(r"##\[[^\]]+\]")


def _commands(text: str) -> list[str]:
    """What a runner would obey, by the rules of actions/runner, ActionCommand.cs."""
    found = []
    for line in re.split("\r\n|\r|\n", text):
        found += [line] if _NEW.match(line) or _OLD.search(line) else []
    return found


def _sample(text: str) -> Sample:
    sample = samples.many_regressions(3, text)
    return Sample(sample.results, samples.gate_of("failed", text, (text,)), (text,))


def test_the_check_itself_finds_commands() -> None:
    text = "::error::a\n x ::error::b\n  ::set-output name=a::b\nc ##[error]d\r::notice::e"
    assert len(_commands(text)) == 4


@pytest.mark.parametrize(("width", "colour"), [(60, False), (200, True)])
@pytest.mark.parametrize("text", _CORPUS)
def test_a_terminal_gets_no_command_and_no_control(text: str, width: int, colour: bool) -> None:
    stream = io.StringIO()
    sample = _sample(text)
    print_report(sample.report, stream, colour=colour, width=width)
    shown = stream.getvalue()
    assert _commands(shown) == []
    without_style = re.sub(r"\x1b\[[0-9;]*m", "", shown) if colour else shown
    controls = {character for character in without_style if unicodedata.category(character) == "Cc"}
    assert controls <= {"\n"}
    assert len(shown) < 100_000


@pytest.mark.parametrize("text", _CORPUS)
def test_annotations_are_one_command_each(text: str) -> None:
    found = annotate(_sample(text).report)
    lines = list(as_commands(found, 9))
    assert lines
    for line in lines:
        assert "\n" not in line
        assert re.match(r"::(error|warning|notice)[ :]", line)


@pytest.mark.parametrize("text", _CORPUS)
def test_markdown_contains_no_marker_and_can_be_encoded(text: str) -> None:
    sample = _sample(text)
    problem = Problem(text, file=text, line=3, path=text)
    for shown in (
        render_comment(sample.report, text),
        render_summary(sample.report),
        render_problems([problem] * 60),
        render_unfinished(text, "https://github.com/acme/widgets/actions/runs/1"),
        render_nothing_left(text, "https://github.com/acme/widgets/actions/runs/1", "It was cancelled."),
    ):
        assert "<!--" not in shown
        assert shown.encode()
        assert "@octocat" not in _FENCED.sub("", shown)
