"""What is annotated, in which order, and that its texts can do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.report import samples

from agenteval.report.facts import Report, facts
from agenteval.report.overview import MOST_MESSAGE, MOST_TITLE, Annotation, annotate
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import BaselineInfo, ComparedCase, Comparison, History
from agenteval.results.model import Results

#: What a plain text may not hold: controls but line ends, what reorders or hides text, half characters, and what
#: GitHub refuses in an annotation.
_FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufeff\ud800-\udfff\U00010000-\U0010ffff]"
)
_TEXTS = st.text(max_size=400) | st.text(alphabet="a:#[\n\r\x1b😀\u202e\u2028 ", max_size=400) | st.just("x" * 5_000)


def of(
    *cases: CaseResult, path: str = samples.SUITE, compared: Iterable[ComparedCase] = ()
) -> tuple[Annotation, ...]:
    return annotate(reported(run(samples.suite(*cases, path=path), compared=compared)))


def reported(results: Results) -> Report:
    return facts(results, results.gate or samples.gate_of("failed", "failed"))


def run(*suites: SuiteResult, compared: Iterable[ComparedCase] = ()) -> Results:
    listed = list(compared)
    comparison = Comparison(
        baseline=BaselineInfo(run_id="1", created_at="2026-01-01T00:00:00Z"),
        state="clear",
        headline="no regression",
        metrics=[],
        cases=listed,
    )
    return samples.results(*suites, comparison=comparison if listed else None)


def compared(case: CaseResult, change: str, **more: Any) -> ComparedCase:
    known = {
        "id": case.id,
        "name": case.name,
        "change": change,
        "status_before": "passed",
        "status_after": case.status,
        "score_before": 1.0,
        "score_after": case.score,
    }
    return ComparedCase.model_validate(known | more)


def failed(name: str, line: int | None = None) -> CaseResult:
    return samples.failed_case(name, "42", "41", line=line)


def broken(name: str, error: str = "the agent exited with status 1") -> CaseResult:
    turn = samples.turn("Question?", "42", None, error=error)
    return samples.case(name, samples.iteration(turn, status="error"), status="error")


def test_a_regression_shows_change_failed_metrics_and_answers() -> None:
    refund, label, warranty, new = annotate(samples.regressed().report)

    assert refund == Annotation(
        path="examples/support/agent.yaml",
        line=12,
        level="failure",
        title="Refund total",
        message="Broke: 0/1 passed\n"
        "numeric 0.00 < 1.00: expected 37.5, found 42.49\n"
        "f1_score 0.12 < 0.50\n"
        "Answer: The refund is 42.49 EUR: three items of 12.50 EUR each and the shipping of 4.99 EUR.",
    )
    assert label.message == (
        "Broke: 1/3 passed\nturn 2: f1_score 0.15 < 0.50: 2 of 9 words\nAnswer in turn 2: I cannot help with that."
    )
    assert (warranty.line, warranty.level, warranty.message) == (
        60,
        "notice",
        "Known failure: 0/1 passed\nnumeric 0.00 < 1.00: expected 2 years, found 3 years\nAnswer: 3 years",
    )
    assert (new.level, new.title, new.message) == ("notice", "Gift cards", "New: 1/1 passed")


def test_only_cases_that_need_attention_are_annotated() -> None:
    skipped = samples.case("Skipped", samples.iteration(samples.turn("?", None, None)), status="skipped")

    assert of(samples.passed_case("Passed"), skipped) == ()


def test_what_broke_comes_first_then_failures_then_errors_each_in_the_order_of_the_suites() -> None:
    first = samples.suite(broken("e1", "one"), failed("f1"), told("r1", "a"), path="a.yaml")
    second = samples.suite(told("f2", "b"), broken("r2", "two"), broken("e2", "three"), path="b.yaml")
    worse = [compared(case, "broke") for suite in (first, second) for case in suite.cases if case.name[0] == "r"]

    found = annotate(reported(run(first, second, compared=worse)))

    assert [item.title for item in found] == ["r1", "r2", "f1", "f2", "e1", "e2"]
    assert [item.path for item in found] == ["a.yaml", "b.yaml", "a.yaml", "b.yaml", "a.yaml", "b.yaml"]


def told(name: str, reason: str) -> CaseResult:
    return samples.failed_case(name, "42", f"answer of {name}", samples.score(value=0.0, reason=reason))


def test_a_cause_is_annotated_once() -> None:
    alike = [told(f"c{number}", f"expected {number}") for number in range(13)]
    [found] = of(*alike)
    assert (found.title, found.message.splitlines()[0]) == ("c0 and 12 like it", "Failed: 0/1 passed each")
    [same] = of(*(failed(f"c{number}") for number in range(3)))
    assert same.message.splitlines()[0] == "Failed: 0/1 passed each, all give the same answer"


@pytest.mark.parametrize(
    ("change", "notes", "level", "said"),
    [
        ("same", [], "notice", "Not proven worse"),
        ("same", ["suspicious"], "warning", "May be worse"),
        ("same", ["quarantined"], "notice", "In quarantine"),
        ("same", ["quarantined", "suspicious"], "notice", "In quarantine"),
        ("same", ["accepted"], "notice", "Accepted"),
        ("broke", [], "failure", "Broke"),
        ("broke", ["suspicious"], "failure", "Broke"),
        ("broke", ["quarantined"], "notice", "In quarantine"),
    ],
)
def test_the_level_says_whether_a_case_is_held_against_the_change(
    change: str, notes: list[str], level: str, said: str
) -> None:
    case = failed("Case")
    [found] = of(case, compared=[compared(case, change, notes=notes)])

    assert (found.level, found.message.splitlines()[0]) == (level, f"{said}: 0/1 passed")


@pytest.mark.parametrize("line", [None, 0, -3, 2**70])
def test_without_a_usable_line_it_is_the_first(line: int | None) -> None:
    assert [item.line for item in of(failed("Case", line))] == [1]


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/tmp/suite.yaml",
        "../suite.yaml",
        "a/../../b.yaml",
        "a\nb.yaml",
        "a\u202eb.yaml",
        "😀.yaml",
        "\ud800",
    ],
)
def test_suites_outside_the_repository_are_only_counted(path: str) -> None:
    assert of(failed("a"), samples.passed_case("b"), broken("c"), path=path) == ()


def assert_harmless(found: tuple[Annotation, ...]) -> None:
    for item in found:
        assert len(item.title) <= MOST_TITLE
        assert 0 < len(item.message) <= MOST_MESSAGE
        assert "\n" not in item.title
        for text in (item.path, item.title, item.message):
            assert _FORBIDDEN.search(text) is None
            assert re.search(r"^\s*::|##\[", text, re.MULTILINE) is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.tuples(_TEXTS, _TEXTS, _TEXTS, _TEXTS), error=st.none() | _TEXTS, metrics=st.integers(1, 9))
def test_any_text_is_harmless(texts: tuple[str, str, str, str], error: str | None, metrics: int) -> None:
    name, metric, reason, answer = texts
    scores = [samples.score(metric, 0.0, reason=reason)] * metrics
    turn = samples.turn("?", "42", answer, *scores, error=error)
    case = samples.case(name, samples.iteration(turn, status="failed"), status="failed")
    worse = compared(case, "broke", history=History(runs=99, iterations=999_999, pass_rate=0.5))

    found = of(case, compared=[worse])

    assert len(found) == 1
    assert_harmless(found)
