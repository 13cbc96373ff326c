"""The pull-request comment: a sentence, a table of causes, and everything else folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.report import samples
from tests.unit.report.samples import Sample
from tests.unit.report.scenarios import compared_run, gated, run_of
from tests.unit.report.states import EVERY, STATES

from agenteval.report.facts import facts
from agenteval.report.heading import LONGEST_HEADING
from agenteval.report.markdown import render_comment
from agenteval.report.parts import COMMENT_LIMIT, characters
from agenteval.results.case import CaseResult
from agenteval.results.comparison import AnswerChange, State
from agenteval.results.model import Difference, Memory, Results

MOST_VISIBLE = 40


def comment(sample: Sample) -> str:
    return render_comment(sample.report)


def of_state(name: str) -> str:
    return render_comment(EVERY[name]().report)


def visible(text: str) -> list[str]:
    """The lines in sight while every fold is closed, without blank ones and the borders of code and tables."""
    lines, depth = [], 0
    for line in text.splitlines():
        opened = line.count("<details")
        if depth == 0 and line.strip() and not re.fullmatch(r"`{3,}\w*|\|(?::?-+:?\|)+", line):
            lines.append(line)
        depth += opened - line.count("</details>")
    return lines


def plain(line: str) -> str:
    return re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), re.sub(r"<[^>]*>|&#8203;", "", line))


def _samples() -> Iterator[tuple[str, Sample]]:
    yield from ((name, make()) for name, make in samples.SAMPLES.items())
    yield from ((name, make().sample) for name, make in EVERY.items())


# The other states have golden files.
@pytest.mark.parametrize(
    ("state", "heading", "sentence"),
    [
        ("no-baseline", "✅ support: 3 of 3 cases pass — nothing to compare with yet", "The check passes."),
        (
            "one-answer",
            "❌ support-bot: 30 of 40 cases fail (equality fell from 1.00 to 0.50)",
            "The check fails. They probably have one cause: a model, key or service that answers differently.",
        ),
        (
            "accepted",
            "✅ support-bot: 2 cases do not pass, which was accepted — nothing else broke or fell",
            "The check passes: 20 of 22 cases passed; 2 of 22 cases fail, which was accepted "
            "(refunds-standing-desk, refunds-office-chair).",
        ),
        ("improved", "✅ support: 3 of 3 cases pass", None),
        ("unproven", "❌ support: 1 case may be worse", None),
    ],
)
def test_heading_and_sentence(state: str, heading: str, sentence: str | None) -> None:
    lines = [plain(line) for line in of_state(state).splitlines()]
    assert lines[0] == f"### {heading}"
    assert lines[1] == lines[3] == ""
    assert lines[2] == (sentence or lines[2])


@pytest.mark.parametrize(
    ("state", "advice"),
    [("broke", "push a change or accept it"), ("all-green", "nothing has changed since")],
)
def test_a_repeated_verdict_says_where_it_was_shown_first(state: str, advice: str) -> None:
    sample = EVERY[state]().sample
    run = sample.results.run.model_copy(update={"commit": "a" * 40})
    memory = Memory(attempt=2, key="0" * 64, repeats=True)
    results = sample.results.model_copy(update={"memory": memory, "run": run})
    said = f"This verdict was already shown in attempt 2 for commit aaaaaaa: {advice}."
    assert said in plain(render_comment(facts(results, sample.gate)).splitlines()[2])
    first = results.model_copy(update={"memory": memory.model_copy(update={"repeats": False})})
    assert "already shown" not in render_comment(facts(first, sample.gate))


def test_no_run_needs_more_than_forty_lines_or_a_long_heading() -> None:
    seen = {name: comment(sample) for name, sample in _samples()}
    long = {name: len(visible(text)) for name, text in seen.items() if len(visible(text)) > MOST_VISIBLE}
    assert not long
    titles = {name: plain(text.partition("\n")[0]).removeprefix("### ") for name, text in seen.items()}
    assert not {name: title for name, title in titles.items() if len(title) > LONGEST_HEADING}


def _case(number: int, kind: str) -> tuple[CaseResult, dict[str, object]]:
    reason = "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")
    if kind == "error":
        case = samples.case(
            f"c{number}", samples.iteration(samples.turn("?", "1", None, error=f"down {reason}"), status="error"),
            status="error",
        )  # fmt: skip
        return case, {"status_before": "passed"}
    case = samples.failed_case(f"c{number}", "1", f"answer {reason}", samples.score(value=0.0, reason=reason))
    answers = [AnswerChange(turn=0, input="?", before=f"before {reason}", after=f"answer {reason}")]
    if kind == "broke":
        return case, {"change": "broke", "answers": answers}
    return case, {"status_before": "failed" if kind == "known" else "passed", "answers": answers}


@given(
    st.lists(st.sampled_from(["broke", "error", "known", "suspicious"]), max_size=60),
    st.integers(0, 30),
    st.integers(0, 30),
    st.text(max_size=200),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_mixture_stays_in_sight(kinds: list[str], warnings: int, rules: int, name: str) -> None:
    told = [_case(number, kind) for number, kind in enumerate(kinds)]
    run = run_of([case for case, _ in told])
    suites = [suite.model_copy(update={"name": name}) for suite in run.suites]
    integrity = [
        Difference(kind="setting", setting=f"s{number}", before="1", after="2", effect="base", loosens=True)
        for number in range(rules)
    ]
    run = run.model_copy(update={"suites": suites, "run": run.run.model_copy(update={"integrity": integrity})})
    verdict: State = "proven" if "broke" in kinds else "clear"
    sample = compared_run(run, verdict, {case.id: change for case, change in told})
    text = comment(replace(sample, warnings=tuple(map(str, range(warnings)))))
    assert len(visible(text)) <= MOST_VISIBLE
    assert len(plain(text.partition("\n")[0]).removeprefix("### ")) <= LONGEST_HEADING
    assert text.count("<details") == text.count("</details>")


def test_a_reason_that_did_not_close_the_gate_is_not_named() -> None:
    sample = STATES["broke"]().sample
    comparison = sample.results.comparison
    assert comparison is not None
    lower = [
        metric.model_copy(update={"baseline": 1.0, "current": 0.9, "difference": -0.1, "suspicious": True})
        for metric in comparison.metrics
    ]
    changed = comparison.model_copy(update={"metrics": lower})
    text = comment(gated(sample.results.model_copy(update={"comparison": changed})))
    assert "📉" not in text
    assert not [line for line in visible(text) if "fell" in line]


def test_nobody_accepts_that_all_cases_give_one_answer() -> None:
    text = of_state("one-answer")
    assert "<b>Accept" not in text
    assert "--failed-in agenteval-run   # only the 30 cases that did not pass" in text


def test_the_next_steps_name_the_artifact_of_the_run() -> None:
    sample = EVERY["broke"]().sample
    run = sample.results.run.model_copy(update={"workflow_artifact": "evals of support"})
    text = comment(replace(sample, results=sample.results.model_copy(update={"run": run})))
    assert "gh run download 7001 -n 'evals of support' -D agenteval-run " in text
    assert "agenteval accept --run 7001 --artifact 'evals of support' --reason" in text
    hostile = run.model_copy(update={"workflow_artifact": "-x\n```\n"})
    text = comment(replace(sample, results=sample.results.model_copy(update={"run": hostile})))
    assert "gh run download 7001 -n agenteval -D" in text


def test_the_cases_run_again_beside_the_baseline_and_elsewhere() -> None:
    sample = EVERY["broke"]().sample
    comparison = sample.results.comparison
    assert comparison is not None
    base = comparison.baseline.model_copy(update={"workflow_run_id": "6001", "workflow_artifact": "nightly"})
    compared = comparison.model_copy(update={"baseline": base})
    here = sample.results.model_copy(update={"comparison": compared})
    text = comment(replace(sample, results=here))
    assert "gh run download 6001 -n nightly -D agenteval-base   # the baseline" in text
    assert "--failed-in agenteval-run --baseline agenteval-base   # only the" in text


def test_an_agent_that_crashes_may_be_the_fault_of_the_author() -> None:
    assert "says nothing about" not in comment(samples.broken())


def _many_causes(amount: int, text: str) -> Results:
    told = [_case(number, "broke") for number in range(amount)]
    changes = {
        case.id: change | {"answers": [AnswerChange(turn=0, input=text, before=f"{text} {case.name}", after=text)]}
        for case, change in told
    }
    return compared_run(run_of([case for case, _ in told]), "proven", changes, means=False).results


def test_less_room_means_less_detail() -> None:
    results = _many_causes(30, "A long answer of some length. " * 400)
    report = gated(results).report
    whole = render_comment(report)
    small = render_comment(report, limit=6_000)
    assert characters(small) <= 6_000 < characters(whole) <= COMMENT_LIMIT
    assert "Shortened to fit GitHub's size limit" in small
    assert "… and 22 more cases with 22 other causes" in whole
    assert small.splitlines()[:3] == whole.splitlines()[:3]
