from __future__ import annotations

import io
import subprocess
import sys
import unicodedata

import pytest
from tests.unit.report import samples
from tests.unit.report.samples import Sample

from agenteval.report.terminal import MOST_CASES_WITH_PASSED, print_results


def _printed(sample: Sample, *, width: int = 100, colour: bool = False) -> str:
    stream = io.StringIO()
    print_results(sample.results, sample.gate, stream, colour, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_golden(name: str) -> None:
    samples.check_golden(f"terminal-{name}.txt", _printed(samples.SAMPLES[name]()))


def test_the_verdict_is_the_last_line() -> None:
    assert _printed(samples.green()).splitlines()[-1] == "agenteval: passed"
    assert _printed(samples.regressed()).splitlines()[-1] == "agenteval: failed: 2 cases got worse"
    assert _printed(samples.broken()).splitlines()[-1] == "agenteval: error: interrupted: 2 errors"


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("name", ["green", "regressed", "broken"])
def test_tables_keep_to_the_width(name: str, width: int) -> None:
    tables = _printed(samples.SAMPLES[name](), width=width).split("\n\n")[:-1]
    assert tables
    assert not [line for table in tables for line in table.splitlines() if len(line) > width]


def test_wide_characters_are_aligned() -> None:
    cases = [samples.passed_case("日本語の質問"), samples.passed_case("ascii"), samples.passed_case("cafe\u0301")]
    sample = Sample(samples.results(samples.suite(*cases)), samples.green().gate)
    assert _printed(sample).splitlines()[:4] == [
        "status  case          score  why",
        "passed  日本語の質問   1.00",
        "passed  ascii          1.00",
        "passed  cafe\u0301           1.00",
    ]


def test_passed_cases_are_hidden_in_large_runs() -> None:
    assert "Case 0" in _printed(samples.many(MOST_CASES_WITH_PASSED))
    assert "Case 0" not in _printed(samples.many(MOST_CASES_WITH_PASSED + 1))


def test_many_failures_are_counted_not_listed() -> None:
    printed = _printed(samples.many(1_000, status="failed"))
    assert "… and 800 more in results.json and junit.xml" in printed
    assert len(printed.splitlines()) < 250


def test_several_suites_are_told_apart() -> None:
    suites = (samples.suite(samples.passed_case("same"), path=path) for path in ("one.yaml", "two.yaml"))
    printed = _printed(Sample(samples.results(*suites), samples.green().gate))
    assert "one.yaml: same" in printed
    assert "two.yaml: same" in printed


def test_an_old_console_gets_only_encodable_characters() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    sample = samples.regressed()
    print_results(sample.results, sample.gate, stream, colour=False)
    stream.flush()
    assert b"agenteval: failed" in buffer.getvalue()


@pytest.mark.parametrize("colour", [False, True])
def test_untrusted_text_has_no_effect_on_reports(colour: bool) -> None:
    printed = _printed(samples.hostile(), colour=colour)
    if colour:
        assert "\x1b[31m" in printed
        for ours in ("\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1;2m"):
            printed = printed.replace(ours, "")
    control = [character for character in printed if unicodedata.category(character) == "Cc" and character != "\n"]
    assert control == []
    assert not [line for line in printed.splitlines() if line.strip().startswith("::") or "##[" in line]


def test_markup_of_the_terminal_library_is_text() -> None:
    sample = Sample(samples.results(samples.suite(samples.passed_case("[red]x[/red] :tada:"))), samples.green().gate)
    assert "[red]x[/red] :tada:" in _printed(sample, colour=True)


def test_plain_output_does_not_load_the_terminal_library() -> None:
    program = (
        "import sys; from tests.unit.report import samples as s; from agenteval.report.terminal import print_results;"
        "x = s.regressed(); print_results(x.results, x.gate, sys.stdout, False);"
        "sys.exit('rich' in sys.modules or 'jinja2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
