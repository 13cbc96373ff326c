"""What the metrics of a suite measured, and whether they decided."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.runs import broken, case, iteration, not_asked, results, score, skipped, turn

from agenteval.gate.verdict import GatePolicy, decide_gate
from agenteval.results.case import CaseResult, CaseStatus, Score
from agenteval.results.model import Results
from agenteval.results.rollup import CaseTally, tally_of

BLEU = score("bleu", passed=None)


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
