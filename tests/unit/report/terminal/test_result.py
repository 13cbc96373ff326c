from __future__ import annotations

import io
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.report import samples
from tests.unit.report.samples import Sample
from tests.unit.report.scenarios import SCENARIOS, SHOWN_BY_SCENARIOS
from tests.unit.report.states import STATES

from agenteval.core import text as texts
from agenteval.report.terminal import print_report
from agenteval.report.terminal_lines import NextCommands, TerminalDetail
from agenteval.results.case import Score, ToolCall
from agenteval.results.comparison import AnswerChange, ComparedCase, History, ScoreChange

_COMMANDS = NextCommands(
    "agenteval run --failed", "agenteval prove agenteval-report", "agenteval open", "agenteval-report/report.html"
)


def _sample(name: str) -> Sample:
    return samples.SAMPLES[name]() if name in samples.SAMPLES else {**SCENARIOS, **STATES}[name]().sample


def _printed(sample: Sample, *, width: int = 80, colour: bool = False, verbosity: int = 0) -> str:
    stream = io.StringIO()
    detail = TerminalDetail(verbosity, commands=_COMMANDS)
    print_report(sample.report, stream, colour, detail, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("name", [*samples.SAMPLES, *sorted(SCENARIOS.keys() - SHOWN_BY_SCENARIOS), *STATES])
def test_golden(name: str) -> None:
    samples.check_golden(f"terminal-{name}.txt", _printed(_sample(name)))


@pytest.mark.parametrize(
    ("name", "file", "verbosity", "width"),
    [
        ("regressed", "verbose", 1, 80),
        ("broken", "verbose-broken", 1, 80),
        ("statistics", "statistics-verbose", 1, 80),
        ("regressed", "narrow", 0, 44),
    ],
)
def test_golden_of_other_widths_and_details(name: str, file: str, verbosity: int, width: int) -> None:
    samples.check_golden(f"terminal-{file}.txt", _printed(_sample(name), verbosity=verbosity, width=width))


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


def test_200_cases_with_one_answer_are_one_cause() -> None:
    printed = _printed(_sample("200-broke"))
    assert printed.count("✗ ") == 1
    assert "They probably have one cause" in printed
    assert len(printed.splitlines()) <= 21


def test_the_verdict_and_the_next_commands_are_the_last_lines() -> None:
    assert _printed(samples.green()).splitlines()[-2:] == [
        "passed  3 of 3 pass · $0.0123 · 3.2 s",
        "look   agenteval open  agenteval-report/report.html",
    ]
    assert _printed(samples.regressed()).splitlines()[-3:] == [
        "FAILED  2 cases broke   3 of 6 pass · 3.2 s",
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


def test_passed_cases_and_metrics_are_shown_on_demand() -> None:
    assert "Opening hours" not in _printed(samples.broken())
    assert "Order 0" not in _printed(samples.green())
    verbose = _printed(samples.green(), verbosity=1)
    assert "✓ Order 0" in verbose
    assert "    ✓ numeric: 1.00 (threshold: 1)" in verbose.splitlines()
    assert "mean  scores   pass  metric" in verbose


def test_each_metric_of_each_case_as_holodeck_prints_it() -> None:
    scores = (
        samples.score("faithfulness", 0.92, 0.8),
        samples.score("f1_score", 0.61, 0.7, reason="9 of 17 words"),
        samples.score("bleu", 0.5, None),
        samples.score("polite", None, error="429 Too Many Requests"),
        samples.score("tools", 1.0, 1.0).model_copy(update={"kind": "tools"}),
    )
    turn = samples.turn("How do I reset my password?", None, "Like this.", *scores)
    turn = turn.model_copy(update={"tool_calls": [ToolCall(name="search_kb")]})
    case = samples.case("Password Reset", samples.iteration(turn, status="failed"), status="failed")
    lines = _printed(Sample(samples.results(samples.suite(case)), samples.green().gate), verbosity=1).splitlines()
    assert lines[:8] == [
        "✗ Password Reset",
        '    Input: "How do I reset my password?"',
        "    Tools called: [search_kb] ✓",
        "    ✓ faithfulness: 0.92 (threshold: 0.8)",
        "    ✗ f1_score: 0.61 (threshold: 0.7)  9 of 17 words",
        "    · bleu: 0.50 (threshold: —)",
        "    ! polite: error: 429 Too Many Requests",
        "    ✓ tools: 1.00 (threshold: 1)",
    ]


def test_many_causes_are_counted_not_listed() -> None:
    reasons = [
        samples.score(value=0.0, reason=f"reason {chr(65 + number % 26) * (number // 26 + 1)}")
        for number in range(90)
    ]
    cases = [samples.failed_case(f"case {number}", "1", f"{number}", score) for number, score in enumerate(reasons)]
    printed = _printed(Sample(samples.results(samples.suite(*cases)), samples.regressed().gate))
    assert "… and 80 more cases with 80 other causes" in printed
    assert len(printed.splitlines()) < 100


def test_an_old_console_gets_only_encodable_characters() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    sample = samples.regressed()
    print_report(sample.report, stream, colour=False)
    stream.flush()
    assert b"FAILED  2 cases broke" in buffer.getvalue()


@pytest.mark.parametrize("verbosity", [0, 1])
@pytest.mark.parametrize("colour", [False, True])
def test_untrusted_text_has_no_effect(colour: bool, verbosity: int) -> None:
    printed = _printed(samples.hostile(), colour=colour, verbosity=verbosity)
    if colour:
        from rich.text import Text

        assert "\x1b[1;31m" in printed
        printed = Text.from_ansi(printed).plain
    control = [character for character in printed if unicodedata.category(character) == "Cc" and character != "\n"]
    assert control == []
    assert not [line for line in printed.splitlines() if line.strip().startswith("::") or "##[" in line]


def test_markup_of_the_terminal_library_is_text() -> None:
    case = samples.failed_case("[red]x[/red] :tada:", "1", "2")
    sample = Sample(samples.results(samples.suite(case)), samples.green().gate)
    assert "[red]x[/red] :tada:" in _printed(sample, colour=True)


def test_plain_output_does_not_load_the_terminal_library() -> None:
    program = (
        "import sys; from tests.unit.report import samples as s;"
        "from agenteval.report.terminal import print_report;"
        "x = s.regressed(); print_report(x.report, sys.stdout, False);"
        "sys.exit('rich' in sys.modules or 'jinja2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_a_missing_tool_call_is_shown_in_its_turn() -> None:
    find, cancel = (ToolCall(name=name, args={"order": 4711}) for name in ("find_order", "cancel_order"))
    reason = "cancel_order was not called; called: find_order"
    wrong = samples.score("tools", 0.0, 1.0, reason=reason).model_copy(update={"kind": "tools"})
    first = samples.turn("Please cancel order 4711.", None, "Order 4711 is cancelled.", wrong)
    second = samples.turn("And my money?", None, "It is still open.", index=1)
    turns = (first.model_copy(update={"tool_calls": [find]}), second)
    case = samples.case("cancel-then-refund", samples.iteration(*turns, status="failed"), status="failed")
    run = samples.results(samples.suite(case, samples.passed_case("fine")))
    answers = [
        AnswerChange(turn=0, input="", before=first.response, after=first.response, calls_before=[find, cancel]),
        AnswerChange(turn=1, input="", before="It comes.", after="It is still open."),
    ]
    change = ScoreChange(id="tools", before=1.0, after=0.0, passed_before=True, passed_after=False, reason=reason)
    comparison = samples.regressed().results.comparison
    assert comparison is not None
    compared = ComparedCase(
        id=case.id, name=case.name, change="broke", status_before="passed", status_after="failed",
        score_before=1.0, score_after=0.0, metrics=[change], answers=answers,
        history=History(runs=3, iterations=9, pass_rate=1.0),
    )  # fmt: skip
    run = run.model_copy(update={"comparison": comparison.model_copy(update={"cases": [compared], "metrics": []})})
    assert _printed(Sample(run, samples.regressed().gate)).splitlines()[1:6] == [
        "✗ cancel-then-refund  main 9/9 → here 0/1",
        "  turn 1, tools 1.00 → 0.00: cancel_order was not called; called: find_order",
        "    1 ▸ Please cancel order 4711.",
        "    - ⚙ cancel_order(order: 4711)",
        "      Order 4711 is cancelled.",
    ]


def test_an_error_that_a_message_explains_is_not_repeated() -> None:
    sample, out = SCENARIOS["all-errors"]().sample, io.StringIO()
    error = "cannot reach http://localhost:8000/answer: connection refused (after 3 attempts)"
    print_report(sample.report, out, False, TerminalDetail(explained=(error,)))
    assert "for the reason above\n" in out.getvalue()
    assert "connection refused" not in out.getvalue()
