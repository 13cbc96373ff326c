"""What the metrics of a suite measured, and whether they decided."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.runs import broken, case, iteration, not_asked, results, score, skipped, turn

from agenteval.gate.verdict import GatePolicy, decide_gate
from agenteval.results.case import CaseResult, CaseStatus, Score
from agenteval.results.model import Coverage, Results
from agenteval.results.rollup import CaseTally, tally_of

BLEU = score("bleu", passed=None)
UNCHECKED = "metric unchecked: numeric (unmeasured in every reply)"
UNDECIDED = "compared with earlier runs only: no metric has a threshold above 0 or gives a verdict"


def of(name: str, *scores: Score, status: CaseStatus = "passed") -> CaseResult:
    return case(name).model_copy(update={"status": status, "iterations": [iteration(status, turn(*scores))]})


def used(*cases: CaseResult, threshold: float | None = None) -> CaseTally:
    return tally_of(cases, threshold)


def run(*cases: CaseResult, threshold: float | None = None) -> Results:
    now, use = results(*cases), used(*cases, threshold=threshold)
    found = {"threshold": threshold, "unmeasured": use.unmeasured, "undecided": use.undecided}
    return now.model_copy(update={"suites": [now.suites[0].model_copy(update=found)]})


@pytest.mark.parametrize(
    ("scores", "unmeasured"),
    [
        ([[skipped()]], ["numeric"]),
        ([[score("a"), skipped()], [score("a"), skipped()]], ["numeric"]),
        ([[skipped("b"), skipped("a")]], ["a", "b"]),
        ([[skipped()], [score()]], []),
        ([[skipped()], [broken()]], []),
        ([[score("note", None, None, status="skipped", gating=False)]], []),
        ([[not_asked()]], []),
        ([[not_asked()], [skipped("quality")]], ["quality"]),
        ([], []),
    ],
)
def test_a_metric_measured_nothing_if_it_was_skipped_for_every_reply(
    scores: Sequence[Sequence[Score]], unmeasured: list[str]
) -> None:
    cases = [of(str(number), *found) for number, found in enumerate(scores)]
    for order in itertools.permutations(cases):
        assert used(*order).unmeasured == unmeasured


def ruled(*parts: object, **more: Any) -> Score:
    return rule_without_parts(unmeasured=list(parts)).model_copy(update=more)


def rule_without_parts(**details: object) -> Score:
    return score("basic", passed=None, details=details or None).model_copy(update={"kind": "rule"})


@pytest.mark.parametrize(
    ("scores", "unmeasured"),
    [
        ([ruled("rule 1: a"), ruled("rule 1: a")], ["basic (rule 1: a)"]),
        ([ruled("rule 1: a", "rule 2: b"), ruled("rule 2: b")], ["basic (rule 2: b)"]),
        ([ruled("rule 1: a"), rule_without_parts()], []),
        ([ruled("rule 1: a"), broken("basic")], ["basic (rule 1: a)"]),
        ([ruled("rule 1: a", gating=False)], []),
        ([ruled("rule 1: a", kind="code")], []),
        ([ruled({}, 5)], []),
        ([rule_without_parts(unmeasured=5)], []),
    ],
)
def test_a_rule_measured_nothing_if_it_had_nothing_to_measure_in_every_reply(
    scores: Sequence[Score], unmeasured: list[str]
) -> None:
    cases = [of(str(number), found) for number, found in enumerate(scores)]
    for order in itertools.permutations(cases):
        assert used(*order).unmeasured == unmeasured


@pytest.mark.parametrize(
    ("item", "threshold", "undecided"),
    [
        (of("a", BLEU), None, 1),
        (of("a", BLEU, skipped()), None, 1),
        (of("a", BLEU, score()), None, 0),
        (of("a", BLEU), 0.7, 0),
        (of("a", BLEU), 0.0, 1),
        (of("a", BLEU, broken(), status="error"), None, 0),
        (of("a", skipped(), status="skipped"), None, 0),
    ],
)
def test_a_passed_case_without_a_verdict_is_undecided(
    item: CaseResult, threshold: float | None, undecided: int
) -> None:
    assert used(item, threshold=threshold).undecided == undecided


def test_a_metric_with_scores_in_another_suite_is_only_a_warning() -> None:
    now = run(of("a", score("x"), skipped()))
    other = now.suites[0].model_copy(update={"path": "other.yaml", "unmeasured": []})
    summary = results(of("a", score("x")), of("b", score())).summary
    both = now.model_copy(update={"suites": [*now.suites, other], "summary": summary})
    gate = decide_gate(both, GatePolicy())
    assert (gate.verdict, gate.headline) == (
        "passed",
        "2 of 2 cases passed; metric unchecked: numeric of agent.yaml (unmeasured in every reply of the suite)",
    )


def selected(now: Results) -> Results:
    covered = Coverage(cases=5, selected=1, finished=1, filter="a")
    return now.model_copy(update={"run": now.run.model_copy(update={"coverage": covered})})


@pytest.mark.parametrize(
    ("now", "policy", "verdict", "status", "headline"),
    [
        (run(of("a", score("x"), skipped())), GatePolicy(), "unproven", 1, UNCHECKED),
        (
            selected(run(of("a", score("x"), skipped()))),
            GatePolicy(),
            "passed",
            0,
            f"1 of 1 case passed; {UNCHECKED}; 1 of 5 cases selected (filter 'a')",
        ),
        (
            run(of("a", BLEU), of("b", BLEU)),
            GatePolicy(),
            "passed",
            0,
            f"2 of 2 cases passed; {UNDECIDED}",
        ),
        (
            run(of("a", BLEU), of("b", score())),
            GatePolicy(),
            "passed",
            0,
            "2 of 2 cases passed; 1 of 2 cases has no metric that decides",
        ),
        (run(of("a", BLEU), threshold=0.7), GatePolicy(), "passed", 0, "1 of 1 case passed"),
    ],
)
def test_the_gate_names_what_nobody_measured_or_decided(
    now: Results, policy: GatePolicy, verdict: str, status: int, headline: str
) -> None:
    gate = decide_gate(now, policy)
    assert (gate.verdict, gate.exit_status, gate.headline) == (verdict, status, headline)
