from __future__ import annotations

import pytest
from tests.unit import runs

from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.model import Results
from agenteval.results.rollup import contradictions, summarise


def run() -> Results:
    return runs.results(runs.case("a"), runs.case("b", "failed", [{"numeric": 0.0}]), runs.case("c", "skipped", [{}]))


def changed(results: Results, *cases: CaseResult, counted: bool = True) -> Results:
    suites = [results.suites[0].model_copy(update={"cases": list(cases)})]
    summary = summarise(cases) if counted else results.summary
    return results.model_copy(update={"suites": suites, "summary": summary})


def with_status(case: CaseResult, status: CaseStatus) -> CaseResult:
    return case.model_copy(update={"status": status})


def test_what_a_run_writes_is_consistent() -> None:
    assert list(contradictions(run())) == []
    assert list(contradictions(runs.results())) == []


def test_what_was_changed_is_named() -> None:
    good = run()
    a, b, c = good.suites[0].cases
    relabelled = b.iterations[0].model_copy(update={"status": "passed"})
    unanswered = a.iterations[0].model_copy(update={"turns": [runs.turn(error="gone", response=None)]})
    table: list[tuple[Results, list[str]]] = [
        (
            changed(good, a, with_status(b, "passed"), c),
            ["the case agent.yaml::b has the status passed, and its iterations make it failed"],
        ),
        (
            changed(good, with_status(a, "skipped"), b, c),
            ["the case agent.yaml::a has the status skipped, and its iterations make it passed"],
        ),
        (
            changed(good, a.model_copy(update={"iterations": [unanswered]}), b, c),
            ["the case agent.yaml::a has the status passed, and its iterations make it error"],
        ),
        (
            changed(good, a.model_copy(update={"iterations": []}), b, c),
            ["the case agent.yaml::a has the status passed, and its iterations make it skipped"],
        ),
        (
            changed(good, a, b.model_copy(update={"status": "passed", "iterations": [relabelled]}), c),
            ["the case agent.yaml::b has the status passed, and its iterations make it failed"],
        ),
        (changed(good, a, a, b, c), ["the case agent.yaml::a is in it 2 times"]),
        (
            changed(good, counted=False),
            [
                "summary.cases is 3, and of its cases it is 0",
                "summary.passed is 1, and of its cases it is 0",
                "summary.failed is 1, and of its cases it is 0",
                "summary.skipped is 1, and of its cases it is 0",
            ],
        ),
    ]
    for results, said in table:
        assert list(contradictions(results)) == said


@pytest.mark.parametrize("strict", [False, True])
def test_the_rule_of_the_case_decides(strict: bool) -> None:
    mixed = runs.case("a", "passed", [{"numeric": 1.0}] * 3)
    failed = runs.iteration("failed", runs.turn(runs.score(value=0.0, passed=False)))
    mixed = mixed.model_copy(update={"strict": strict, "iterations": [failed, *mixed.iterations[1:]]})
    assert [text.split(", and ")[1] for text in contradictions(runs.results(mixed))] == (
        ["its iterations make it failed"] if strict else []
    )
