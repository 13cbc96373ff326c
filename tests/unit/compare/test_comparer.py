"""A run beside its baseline: pairs, changes, and verdicts by the rule that no case may flip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import SUITE, broken, case, iteration, results, score, skipped, turn

from agenteval.compare.comparer import Comparer
from agenteval.compare.pairing import pair_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.run_scores import pool_entry
from agenteval.results.case import CaseResult, CaseStatus, TurnResult
from agenteval.results.comparison import CaseChange, Comparison
from agenteval.results.model import Results
from agenteval.suite.model import Fingerprints

STATUSES: list[CaseStatus] = ["passed", "failed", "error", "skipped"]


def known(run: Results) -> set[str]:
    return {case.id for _, case in run.cases()}


def compared(before: Results, after: Results, tolerance: float = 0.05) -> Comparison:
    policy = ComparePolicy(name="any-flip", settings=GateSettings(tolerance=tolerance))
    return Comparer(after, before, known(after), policy).decide()


def with_turns(name: str, status: CaseStatus, *turns: TurnResult) -> CaseResult:
    return case(name, status).model_copy(update={"iterations": [iteration(status, *turns)]})


class TestChanges:
    @pytest.mark.parametrize("before", STATUSES)
    @pytest.mark.parametrize("after", STATUSES)
    def test_only_passing_and_failing_can_change(self, before: CaseStatus, after: CaseStatus) -> None:
        expected: dict[tuple[str, str], CaseChange] = {
            ("passed", "failed"): "regressed",
            ("failed", "passed"): "improved",
        }
        (only,) = compared(results(case("a", before)), results(case("a", after))).cases
        assert only.change == expected.get((before, after), "unchanged")
        assert (only.status_before, only.status_after) == (before, after)

    def test_new_removed_and_filtered_out(self) -> None:
        before = results(case("stays"), case("goes"), case("filtered"))
        after = results(case("comes"), case("stays"))
        pairing = pair_cases(after, before, known(after) | {f"{SUITE}::filtered"})
        assert [(item.name, item.change) for item in pairing.cases] == [
            ("comes", "new"),
            ("stays", "unchanged"),
            ("goes", "removed"),
        ]
        assert [item.name for item in pairing.compared] == ["stays"]
        comes, _, goes = pairing.cases
        assert (comes.status_before, comes.score_before, comes.metrics) == (None, None, [])
        assert (goes.status_after, goes.score_after, goes.metrics) == (None, None, [])

    def test_cases_of_suites_that_did_not_run_are_not_removed(self) -> None:
        before = results(case("a", suite="other.yaml"), suite="other.yaml")
        assert pair_cases(results(case("b")), before, {f"{SUITE}::b"}).cases[0].change == "new"
        assert len(pair_cases(results(case("b")), before, {f"{SUITE}::b"}).cases) == 1

    def test_another_question_is_not_compared(self) -> None:
        before = results(case("a", "passed"), fingerprints={"a": "old"})
        after = results(case("a", "failed", [{"numeric": 0.0}]), fingerprints={"a": "new"})
        comparison = compared(before, after)
        (only,) = comparison.cases
        assert (only.change, only.metrics, only.answers) == ("changed", [], [])
        assert (only.status_before, only.status_after) == ("passed", "failed")
        assert (comparison.verdict, comparison.metrics) == ("unproven", [])

    def test_a_baseline_without_fingerprints_is_compared(self) -> None:
        before = results(case("a", "passed")).model_copy(update={"pool": []})
        assert compared(before, results(case("a", "failed"))).cases[0].change == "regressed"

    def test_only_the_entry_of_the_run_itself_tells_its_fingerprints(self) -> None:
        older = results(case("a"), run_id="older", fingerprints={"a": "other"}).pool
        before = results(case("a"), run_id="before")
        before = before.model_copy(update={"pool": [*older, *before.pool]})
        assert compared(before, results(case("a"))).cases[0].change == "unchanged"


class TestMetricsOfACase:
    def test_scores_are_means_over_iterations_and_turns(self) -> None:
        before = results(case("a", scores=[{"numeric": 1.0, "bleu": 0.2}, {"numeric": 0.0}]))
        after = results(case("a", scores=[{"numeric": 1.0, "rouge": 0.7}]))
        changes = {change.id: change for change in compared(before, after).cases[0].metrics}
        assert list(changes) == ["numeric", "rouge", "bleu"]
        assert (changes["numeric"].before, changes["numeric"].after) == (0.5, 1.0)
        assert (changes["numeric"].passed_before, changes["numeric"].passed_after) == (False, True)
        assert (changes["rouge"].before, changes["rouge"].after) == (None, 0.7)
        assert (changes["bleu"].before, changes["bleu"].after) == (0.2, None)

    def test_unscored_metrics_are_not_zero(self) -> None:
        before = results(with_turns("a", "passed", turn(score(), skipped("bleu"))))
        after = results(with_turns("a", "passed", turn(score(), broken("bleu"))))
        comparison = compared(before, after)
        bleu = comparison.cases[0].metrics[1]
        assert (bleu.id, bleu.before, bleu.after, bleu.passed_before) == ("bleu", None, None, None)
        assert [metric.id for metric in comparison.metrics] == ["numeric"]

    def test_the_reason_is_that_of_the_first_failure(self) -> None:
        failures = [
            score(reason="fine"),
            score(value=0.0, passed=False, reason="first"),
            score(value=0.0, passed=False, reason="second"),
        ]
        after = results(with_turns("a", "failed", *(turn(item, index=index) for index, item in enumerate(failures))))
        assert compared(results(case("a")), after).cases[0].metrics[0].reason == "first"


class TestAnswers:
    def test_a_regressed_case_shows_both_answers(self) -> None:
        before = results(case("a", "passed", response="old"), case("b", response="same"))
        after = results(case("a", "failed", [{"numeric": 0.0}], response="new"), case("b", response="other"))
        worse, same = compared(before, after).cases
        assert [(item.turn, item.before, item.after) for item in worse.answers] == [(0, "old", "new")]
        assert same.answers == []

    def test_of_an_iteration_that_shows_it(self) -> None:
        before = case("a", "passed", [{"numeric": 0.0}, {"numeric": 1.0}])
        before = before.model_copy(
            update={
                "iterations": [
                    iteration("failed", turn(score(value=0.0, passed=False), response="unlucky")),
                    iteration("passed", turn(score(), response="right"), index=1),
                ]
            }
        )
        after = results(case("a", "failed", [{"numeric": 0.0}], response="wrong"))
        (answer,) = compared(results(before), after).cases[0].answers
        assert (answer.before, answer.after) == ("right", "wrong")

    def test_every_turn_with_what_each_side_said(self) -> None:
        failed = score(value=0.0, passed=False)
        before = [turn(score(), index=index, response=f"answer {index}") for index in range(3)]
        after = [before[0], turn(failed, index=1, response="answer 1"), turn(score(), index=2, response="other")]
        extra = turn(score(), index=3, response="more")
        comparison = compared(
            results(with_turns("a", "passed", *before)), results(with_turns("a", "failed", *after, extra))
        )
        shown = [(item.turn, item.before, item.after) for item in comparison.cases[0].answers]
        assert shown == [
            (0, "answer 0", "answer 0"),
            (1, "answer 1", "answer 1"),
            (2, "answer 2", "other"),
            (3, None, "more"),
        ]

    def test_long_ones_are_cut(self) -> None:
        before = results(case("a", "passed", response="x" * 5000))
        (answer,) = compared(before, results(case("a", "failed", response="y" * 4000))).cases[0].answers
        assert (answer.before, answer.after) == ("x" * 3999 + "…", "y" * 4000)


class TestVerdict:
    @pytest.mark.parametrize(
        ("before", "after", "tolerance", "verdict"),
        [
            (0.8, 0.8, 0.05, "unchanged"),
            (0.8, 0.75, 0.05, "unchanged"),
            (0.8, 0.749, 0.05, "regressed"),
            (0.8, 0.85, 0.05, "unchanged"),
            (0.8, 0.851, 0.05, "improved"),
            (0.3, 0.2, 0.1, "unchanged"),
            (0.7, 0.6, 0.1, "unchanged"),
            (0.8, 0.79, 0.0, "regressed"),
            (0.8, 0.8, 0.0, "unchanged"),
            (1.0, 0.0, 1.0, "unchanged"),
        ],
    )
    def test_a_mean_may_move_by_the_tolerance(
        self, before: float, after: float, tolerance: float, verdict: str
    ) -> None:
        comparison = compared(
            results(case("a", scores=[{"rouge": before}])), results(case("a", scores=[{"rouge": after}])), tolerance
        )
        (metric,) = comparison.metrics
        assert (metric.verdict, comparison.verdict) == (verdict, verdict)
        assert (metric.n, metric.baseline, metric.current) == (1, before, after)
        assert metric.difference == pytest.approx(after - before)
        assert comparison.policy["tolerance"] == tolerance

    def test_means_are_over_the_cases_that_both_runs_scored(self) -> None:
        before = results(case("a", scores=[{"rouge": 0.5}]), case("b", scores=[{"rouge": 1.0}]), case("old"))
        after = results(
            case("a", scores=[{"rouge": 0.7}]), case("b", scores=[{}]), case("new", scores=[{"rouge": 0}])
        )
        (metric,) = compared(before, after).metrics
        assert (metric.n, metric.baseline, metric.current) == (1, 0.5, 0.7)

    @pytest.mark.parametrize(
        ("before", "after", "verdict", "reason"),
        [
            ("pp", "pp", "unchanged", "none of 2 cases changed its status"),
            ("pp", "pf", "regressed", "1 of 2 cases passed before and fail now"),
            ("ff", "pf", "improved", "1 of 2 cases failed before and pass now"),
            ("pf", "fp", "regressed", "1 of 2 cases passed before and fail now"),
            ("pe", "ep", "unchanged", "none of 2 cases changed its status"),
        ],
    )
    def test_one_case_that_got_worse_is_enough(self, before: str, after: str, verdict: str, reason: str) -> None:
        names: dict[str, CaseStatus] = {name[0]: name for name in STATUSES}
        old, new = (
            results(*(case(str(number), names[letter]) for number, letter in enumerate(letters)))
            for letters in (before, after)
        )
        comparison = compared(old, new)
        assert (comparison.verdict, comparison.policy["reason"]) == (verdict, reason)

    @pytest.mark.parametrize("after", [results(), results(case("b"))])
    def test_without_common_cases_it_is_unproven(self, after: Results) -> None:
        comparison = compared(results(case("a")), after)
        assert comparison.verdict == "unproven"
        lost = "1 of 1 case of the baseline cannot be compared: 1 removed (a)"
        assert comparison.policy["reason"] == f"{lost}; no case is in both runs with the same question and metrics"

    def test_the_baseline_is_named(self) -> None:
        comparison = compared(results(case("a"), run_id="base"), results(case("a")))
        baseline = comparison.baseline
        assert (baseline.run_id, baseline.commit, baseline.ref) == ("base", "c" * 40, "refs/heads/main")
        assert baseline.created_at == "2026-01-01T00:00:00.000Z"

    @given(
        statuses=st.lists(st.tuples(st.sampled_from(STATUSES), st.sampled_from(STATUSES)), min_size=1, max_size=6),
        worse=st.integers(0, 5),
    )
    def test_one_more_case_that_got_worse_never_helps(
        self, statuses: list[tuple[CaseStatus, CaseStatus]], worse: int
    ) -> None:
        before = results(*(case(str(number), pair[0]) for number, pair in enumerate(statuses)))
        after = [case(str(number), pair[1]) for number, pair in enumerate(statuses)]
        index = worse % len(after)
        first = compared(before, results(*after)).verdict
        after[index] = case(str(index), "failed")
        second = compared(before, results(*after)).verdict
        order = ["improved", "unchanged", "unproven", "regressed"]
        assert order.index(second) >= order.index(first) or statuses[index][1] == "failed"

    @given(statuses=st.lists(st.sampled_from(STATUSES), max_size=6))
    def test_a_run_compared_with_itself_is_unchanged(self, statuses: list[CaseStatus]) -> None:
        run = results(*(case(str(number), status) for number, status in enumerate(statuses)))
        comparison = compared(run, run)
        assert comparison.verdict == "unchanged"
        assert {item.change for item in comparison.cases} <= {"unchanged"}
        assert {item.difference for item in comparison.metrics} <= {0.0}


class TestPool:
    def test_it_contains_the_scores_of_every_iteration(self) -> None:
        unanswered = iteration("error", turn(score()), turn(error="boom", response=None, index=1))
        spread = [
            turn(score(value=1.0), broken("bleu")),
            turn(score(value=0.0, passed=False), skipped("bleu"), index=1),
        ]
        run = results(
            case("a", scores=[{"numeric": 1.0, "bleu": 0.5}, {"numeric": 0.0}]),
            with_turns("b", "failed", *spread),
            case("c").model_copy(update={"iterations": [unanswered]}),
        )
        known = {f"{SUITE}::a": Fingerprints("A", {"numeric": "n"}), f"{SUITE}::b": Fingerprints("B")}
        entry = pool_entry(run, known)
        assert (entry.run_id, entry.commit, entry.created_at) == ("now", "c" * 40, "2026-01-01T00:00:00.000Z")
        assert {key: (item.fingerprint, item.metrics, item.scores) for key, item in entry.cases.items()} == {
            f"{SUITE}::a": ("A", {"numeric": "n"}, {"numeric": [1.0, 0.0], "bleu": [0.5]}),
            f"{SUITE}::b": ("B", {}, {"numeric": [0.5]}),
            f"{SUITE}::c": ("", {}, {}),
        }
