from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.report import samples
from tests.unit.report.samples import Sample
from tests.unit.report.scenarios import SCENARIOS
from tests.unit.report.states import STATES

from agenteval.core import text as texts
from agenteval.report import terminal
from agenteval.report.terminal import print_report
from agenteval.report.terminal_lines import NextCommands, TerminalDetail
from agenteval.results.case import Score

_COMMANDS = NextCommands(
    "agenteval run", "agenteval prove agenteval-report", "agenteval open", "agenteval-report/report.html"
)


def _sample(name: str) -> Sample:
    return samples.SAMPLES[name]() if name in samples.SAMPLES else {**SCENARIOS, **STATES}[name]().sample


def _printed(sample: Sample, *, width: int = 80, colour: bool = False, verbosity: int = 0) -> str:
    stream = io.StringIO()
    detail = TerminalDetail(verbosity, commands=_COMMANDS)
    print_report(sample.report, stream, colour, detail, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["regressed", "broke"])
def test_golden(name: str) -> None:
    samples.check_golden(f"terminal-{name}.txt", _printed(_sample(name)))


def test_golden_of_every_metric() -> None:
    samples.check_golden("terminal-verbose-broken.txt", _printed(_sample("broken"), verbosity=1))


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (("no ground_truth",) * 3, "3 skipped (no ground_truth)"),
        (("no ground_truth", "used up"), "2 skipped (no ground_truth, and 1 more reason)"),
        (("no ground_truth", "used up", "no text"), "3 skipped (no ground_truth, and 2 more reasons)"),
    ],
)
def test_skipped_cases_have_all_their_reasons(reasons: Sequence[str], said: str) -> None:
    turns = [samples.turn("q", None, "a").model_copy(update={"scores": [skipped(text)]}) for text in reasons]
    cases = [
        samples.case(str(number), samples.iteration(turn, status="skipped"), status="skipped")
        for number, turn in enumerate(turns)
    ]
    sample = _sample("broken")
    assert said in _printed(replace(sample, results=samples.results(samples.suite(*cases))), width=120)


def skipped(reason: str) -> Score:
    return Score(id="f1", kind="standard", score=None, passed=None, status="skipped", reason=reason)


def test_the_verdict_and_the_next_commands_are_the_last_lines() -> None:
    assert _printed(samples.green()).splitlines()[-2:] == [
        "passed  3 of 3 pass · $0.0123 · 3.2 s",
        "look   agenteval open  agenteval-report/report.html",
    ]
    assert _printed(samples.regressed()).splitlines()[-3:] == [
        "FAILED  2 of 5 cases broke   3 of 6 pass · 3.2 s",
        "again  agenteval run --failed  only these 3 cases",
        "look   agenteval open          agenteval-report/report.html",
    ]


@pytest.mark.parametrize("name", [name for name in samples.SAMPLES if name != "hostile"] + ["statistics", "unicode"])
def test_each_case_is_shown_once(name: str) -> None:
    sample = _sample(name)
    lines = _printed(sample).splitlines()
    for case in sample.results.failed():
        headings = [line for line in lines if line[:2] in {"✗ ", "! ", "? "} and case.name in line]
        counted = [line for line in lines if line.startswith("also") and case.name in line]
        assert len(headings) + len(counted) == 1, case.name


@pytest.mark.parametrize("verbosity", [0, 1])
@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", [*samples.SAMPLES, "statistics", "unicode", "mean", "all-errors"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, verbosity: int) -> None:
    printed = _printed(_sample(name), width=width, verbosity=verbosity)
    assert not [line for line in printed.splitlines() if texts.width(line) > width]


@pytest.mark.parametrize("width", [40, 80])
def test_names_and_reasons_are_never_cut(width: int) -> None:
    name = "a-very-long-name-" * 9 + "日本語の質問" * 9
    reason = "because " * 40
    case = samples.failed_case(name, "1", "2", samples.score(value=0.0, reason=reason))
    sample = Sample(samples.results(samples.suite(case)), samples.regressed().gate)
    printed = _printed(sample, width=width)
    assert name in printed.replace("\n", "").replace(" ", "")
    assert " ".join(printed.split()).count("because") == 40


@pytest.mark.parametrize("name", ["regressed", "broken", "statistics", "unicode"])
@pytest.mark.parametrize("verbosity", [0, 1])
def test_colours_change_nothing_of_the_text(name: str, verbosity: int) -> None:
    from rich.text import Text

    coloured = _printed(_sample(name), colour=True, verbosity=verbosity)
    assert "\x1b[" in coloured
    assert Text.from_ansi(coloured).plain.rstrip("\n") == _printed(_sample(name), verbosity=verbosity).rstrip("\n")


def test_many_causes_are_counted_not_listed() -> None:
    reasons = [
        samples.score(value=0.0, reason=f"reason {chr(65 + number % 26) * (number // 26 + 1)}")
        for number in range(90)
    ]
    cases = [samples.failed_case(f"case {number}", "1", f"{number}", score) for number, score in enumerate(reasons)]
    printed = _printed(Sample(samples.results(samples.suite(*cases)), samples.regressed().gate))
    assert "… and 80 more cases with 80 other causes" in printed
    assert len(printed.splitlines()) < 100


def test_what_is_too_much_for_a_terminal_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_MOST_CASES", 2)
    sample = replace(samples.green(), warnings=tuple(f"warning {number}." for number in range(22)))
    printed = _printed(sample, verbosity=1)
    assert "✓ Order 1" in printed
    assert "Order 2" not in printed
    assert "… and 1 more in results.json" in printed
    assert "warning 19." in printed
    assert "warning 20." not in printed
    assert "warning: … and 2 more" in printed


def test_an_old_console_gets_only_encodable_characters() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    sample = samples.regressed()
    print_report(sample.report, stream, colour=False)
    stream.flush()
    assert b"FAILED  2 of 5 cases broke" in buffer.getvalue()


def test_markup_of_the_terminal_library_is_text() -> None:
    case = samples.failed_case("[red]x[/red] :tada:", "1", "2")
    sample = Sample(samples.results(samples.suite(case)), samples.green().gate)
    assert "[red]x[/red] :tada:" in _printed(sample, colour=True)


def test_an_error_that_a_message_explains_is_not_repeated() -> None:
    sample, out = SCENARIOS["all-errors"]().sample, io.StringIO()
    error = "cannot reach http://localhost:8000/answer: connection refused (after 3 attempts)"
    print_report(sample.report, out, False, TerminalDetail(explained=(error,)))
    assert "for the reason above\n" in out.getvalue()
    assert "connection refused" not in out.getvalue()
