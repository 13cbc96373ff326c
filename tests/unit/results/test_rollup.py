"""From scores to the status of an iteration, a case, a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import broken, case, iteration, not_asked, score, skipped, turn

from agenteval.results.case import CaseResult, CaseStatus, Score, TurnResult, Usage
from agenteval.results.model import Judging, NotJudged, RunUsage
from agenteval.results.rollup import (
    aggregated_status,
    case_status,
    iteration_status,
    mean,
    mean_score,
    strict_case_status,
    summarise,
    total,
    turn_means,
)

PASSED, FAILED, INFORMATIONAL = score(passed=True), score(value=0.0, passed=False), score("bleu", passed=None)
SCORES = st.sampled_from([PASSED, FAILED, INFORMATIONAL, skipped(), broken(), not_asked()])
STATUSES: list[CaseStatus] = ["passed", "failed", "error", "skipped"]


class TestIteration:
    @pytest.mark.parametrize(
        ("scores", "status"),
        [
            ([], "skipped"),
            ([skipped()], "skipped"),
            ([PASSED], "passed"),
            ([FAILED], "failed"),
            ([INFORMATIONAL], "passed"),
            ([broken()], "error"),
            ([broken(), broken("bleu")], "error"),
            ([broken(), skipped()], "error"),
            ([PASSED, broken()], "passed"),
            ([INFORMATIONAL, broken()], "error"),
            ([INFORMATIONAL, broken(gating=False)], "passed"),
            ([FAILED, broken()], "failed"),
            ([PASSED, FAILED], "failed"),
            ([PASSED, skipped()], "passed"),
            ([INFORMATIONAL, FAILED], "failed"),
            ([PASSED, not_asked()], "skipped"),
            ([FAILED, not_asked()], "failed"),
            ([PASSED, not_asked(gating=False)], "passed"),
            ([not_asked()], "skipped"),
        ],
    )
    def test_of_one_turn(self, scores: list[Score], status: CaseStatus) -> None:
        assert iteration_status([turn(*scores)]) == status

    @pytest.mark.parametrize(
        ("turns", "status"),
        [
            ([turn(PASSED), turn(FAILED, index=1)], "failed"),
            ([turn(PASSED), turn(index=1)], "passed"),
            ([turn(), turn(index=1)], "skipped"),
            ([turn(PASSED), turn(broken(), index=1)], "passed"),
            ([turn(PASSED), turn(index=1, response=None, error="no answer within 1 s")], "error"),
            ([turn(FAILED), turn(index=1, response=None, error="no answer within 1 s")], "error"),
            ([], "skipped"),
        ],
    )
    def test_of_several_turns(self, turns: list[TurnResult], status: CaseStatus) -> None:
        assert iteration_status(turns) == status

    @pytest.mark.parametrize(
        ("fatal", "status"),
        [
            (set(), "passed"),
            ({(0, "bleu")}, "error"),
            ({(1, "bleu")}, "passed"),
            ({(0, "numeric")}, "passed"),
        ],
    )
    def test_fail_on_error_makes_a_broken_metric_an_error(
        self, fatal: set[tuple[int, str]], status: CaseStatus
    ) -> None:
        assert iteration_status([turn(PASSED, broken("bleu"))], fatal) == status

    @given(scores=st.lists(SCORES, max_size=6), more=SCORES)
    def test_one_more_score_never_turns_a_failure_into_a_pass(self, scores: list[Score], more: Score) -> None:
        before, after = iteration_status([turn(*scores)]), iteration_status([turn(*scores, more)])
        if before == "failed":
            assert after == "failed"
        if more.passed is False:
            assert after != "passed"

    @given(scores=st.lists(SCORES, max_size=6), cut=st.integers(0, 6))
    def test_how_scores_are_spread_over_turns_does_not_matter(self, scores: list[Score], cut: int) -> None:
        spread = [turn(*scores[:cut]), turn(*scores[cut:], index=1)]
        assert iteration_status(spread) == iteration_status([turn(*scores)])

    @given(scores=st.lists(SCORES, max_size=6))
    def test_a_pass_needs_something_that_was_scored(self, scores: list[Score]) -> None:
        if iteration_status([turn(*scores)]) == "passed":
            assert any(item.status == "scored" for item in scores)


class TestAggregated:
    @pytest.mark.parametrize(
        ("turns", "final", "threshold", "status"),
        [
            ([turn(PASSED), turn(index=1, response=None, error="no answer within 1 s")], 1.0, 0.5, "error"),
            ([turn(PASSED, broken("bleu"))], None, 0.5, "error"),
            ([turn(PASSED), turn(skipped(), index=1)], None, 0.5, "skipped"),
            ([turn(FAILED)], 0.1, None, "passed"),
            ([turn(FAILED)], 1.0, 0.7, "passed"),
            ([turn(FAILED)], 0.7, 0.7, "passed"),
            ([turn(PASSED)], 0.69, 0.7, "failed"),
            # Rounding of a sum
            ([turn(PASSED)], 1.0 - 1e-9, 1.0, "passed"),
            ([turn(PASSED)], 1.0 - 2e-9, 1.0, "failed"),
        ],
    )
    def test_the_final_score_decides(
        self, turns: list[TurnResult], final: float | None, threshold: float | None, status: CaseStatus
    ) -> None:
        assert aggregated_status(turns, final, threshold) == status


class TestCase:
    @pytest.mark.parametrize(
        ("iterations", "status"),
        [
            ("", "skipped"),
            ("s", "skipped"),
            ("p", "passed"),
            ("f", "failed"),
            ("e", "error"),
            ("ppf", "passed"),
            ("pff", "failed"),
            ("pf", "failed"),
            ("ps", "skipped"),
            ("fs", "failed"),
            ("pe", "error"),
            ("fe", "failed"),
            ("ppe", "passed"),
            ("pps", "passed"),
            ("ppee", "error"),
            ("pee", "error"),
            ("fee", "error"),
            ("pfe", "error"),
            ("pffe", "failed"),
            ("pfs", "skipped"),
            ("es", "error"),
            ("sss", "skipped"),
        ],
    )
    def test_majority(self, iterations: str, status: CaseStatus) -> None:
        names: dict[str, CaseStatus] = {name[0]: name for name in STATUSES}
        for order in set(itertools.permutations(iterations)):
            assert case_status([names[letter] for letter in order]) == status

    @given(statuses=st.lists(st.sampled_from(STATUSES)))
    def test_one_more_failure_never_turns_it_into_a_pass(self, statuses: list[CaseStatus]) -> None:
        if case_status(statuses) == "failed":
            assert case_status([*statuses, "failed"]) == "failed"
        for index, status in enumerate(statuses):
            if status == "passed" and case_status(statuses) != "passed":
                assert case_status([*statuses[:index], "failed", *statuses[index + 1 :]]) != "passed"

    @pytest.mark.parametrize(
        ("iterations", "status"),
        [
            ("", "skipped"),
            ("pp", "passed"),
            ("ppppf", "failed"),
            ("pppps", "skipped"),
            ("ppppe", "error"),
            ("ppsef", "failed"),
        ],
    )
    def test_a_strict_case_needs_every_iteration(self, iterations: str, status: CaseStatus) -> None:
        names: dict[str, CaseStatus] = {name[0]: name for name in STATUSES}
        assert strict_case_status([names[letter] for letter in iterations]) == status

    @pytest.mark.parametrize("rule", [case_status, strict_case_status])
    @given(statuses=st.lists(st.sampled_from(STATUSES), min_size=1, max_size=7))
    def test_missing_iterations_could_not_change_a_verdict(
        self, rule: Callable[[Sequence[CaseStatus]], CaseStatus], statuses: list[CaseStatus]
    ) -> None:
        either: list[CaseStatus] = ["passed", "failed"]
        votes = [[status] if status in either else either for status in statuses]
        possible = {rule(vote) for vote in itertools.product(*votes)}
        missing: CaseStatus = "error" if "error" in statuses else "skipped"
        assert rule(statuses) == (possible.pop() if len(possible) == 1 else missing)

    @given(statuses=st.lists(st.sampled_from(STATUSES)))
    def test_a_pass_needs_one_that_passed(self, statuses: list[CaseStatus]) -> None:
        if case_status(statuses) == "passed":
            assert statuses.count("passed") > statuses.count("failed")


class TestMean:
    @pytest.mark.parametrize(
        ("values", "expected"), [([], None), ([None], None), ([1.0, None, 0.0], 0.5), ([0.25], 0.25)]
    )
    def test_of_what_is_there(self, values: list[float | None], expected: float | None) -> None:
        assert mean(values) == expected

    @given(values=st.lists(st.floats(0, 1), min_size=1))
    def test_it_stays_within_bounds(self, values: list[float]) -> None:
        found = mean(values)
        assert found is not None
        assert 0.0 <= found <= 1.0
        assert found == pytest.approx(mean(sorted(values)))

    def test_of_an_iteration(self) -> None:
        turns = [turn(score(value=1.0), skipped("bleu")), turn(score(value=0.0), broken("bleu"), index=1)]
        assert mean_score(turns) == 0.5

    def test_of_each_metric_over_the_turns_that_it_scored(self) -> None:
        turns = [turn(score(value=1.0), score("bleu", 0.25)), turn(score(value=0.5), broken("bleu"), index=1)]
        assert turn_means([*turns, turn(skipped("rouge"), index=2)]) == {"numeric": 0.75, "bleu": 0.25}

    @pytest.mark.parametrize(
        ("numbers", "expected"),
        [
            ([], 0.0),
            ([0.1] * 10, 1.0),
            ([1e308, 1e308], math.inf),
            ([math.inf, 1.0], math.inf),
            ([math.inf, -math.inf], math.nan),
        ],
    )
    def test_a_sum_may_be_infinite(self, numbers: list[float], expected: float) -> None:
        assert total(numbers) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


class TestSummary:
    def test_counts_and_rates(self) -> None:
        summary = summarise(
            [
                case("a", "passed", [{"numeric": 1.0, "bleu": 0.4}, {"numeric": 1.0}]),
                case("b", "failed", [{"numeric": 0.0}]),
                case("c", "error", []),
                case("d", "skipped", []),
            ]
        )
        assert (summary.cases, summary.passed, summary.failed, summary.errors, summary.skipped) == (4, 1, 1, 1, 1)
        assert summary.pass_rate == pytest.approx(1 / 3)
        assert summary.score == pytest.approx((0.85 + 0.0) / 2)
        numeric, bleu = summary.metrics["numeric"], summary.metrics["bleu"]
        assert (numeric.n, numeric.mean, numeric.pass_rate) == (3, 2 / 3, 2 / 3)
        assert (bleu.n, bleu.mean, bleu.pass_rate) == (1, 0.4, 0.0)

    def test_informational_metrics_have_no_pass_rate(self) -> None:
        only = case("a").model_copy(
            update={"iterations": [iteration("passed", turn(INFORMATIONAL, skipped("rouge"), broken("numeric")))]}
        )
        summary = summarise([only])
        assert (summary.metrics["bleu"].n, summary.metrics["bleu"].pass_rate) == (1, None)

    def test_a_metric_that_only_failed_is_listed_and_a_skipped_one_is_not(self) -> None:
        only = case("a").model_copy(
            update={"iterations": [iteration("passed", turn(PASSED, broken("dead"), skipped("rouge")))]}
        )
        summary = summarise([only])
        assert list(summary.metrics) == ["numeric", "dead"]
        dead = summary.metrics["dead"]
        assert (dead.n, dead.mean, dead.pass_rate, dead.errors) == (0, None, None, 1)

    @pytest.mark.parametrize("cases", [[], [case("a", "skipped", [])]])
    def test_nothing_judged_has_no_rate(self, cases: list[CaseResult]) -> None:
        summary = summarise(cases)
        assert (summary.pass_rate, summary.score, summary.metrics) == (None, None, {})

    def test_usage_is_summed_over_agent_and_judges(self) -> None:
        turns = [
            turn(usage=Usage(input_tokens=10, output_tokens=1, cost_usd=0.5)),
            turn(usage=Usage(input_tokens=5), index=1),
            turn(usage=Usage(), index=2),
            turn(index=3),
        ]
        only = case("a").model_copy(update={"iterations": [iteration("passed", *turns)]})
        judges = RunUsage(input_tokens=100, output_tokens=20, llm_calls=3, cost_usd=0.25)
        assert summarise([only]).usage == RunUsage(input_tokens=15, output_tokens=1, llm_calls=0, cost_usd=0.5)
        assert summarise([only], judges).usage == RunUsage(
            input_tokens=115, output_tokens=21, llm_calls=3, cost_usd=0.75
        )

    def test_only_a_metric_that_can_decide_is_gating(self) -> None:
        scores = (score("a", gating=True), score("b", gating=False))
        only = case("a").model_copy(update={"iterations": [iteration("passed", turn(*scores))]})
        assert {name: metric.gating for name, metric in summarise([only]).metrics.items()} == {"a": True, "b": False}

    @pytest.mark.parametrize(
        ("scores", "not_fully"),
        [
            ((PASSED,), 0),
            ((PASSED, broken("bleu")), 1),
            ((PASSED, broken("bleu", gating=False)), 0),
        ],
    )
    def test_cases_with_a_broken_metric_beside_others_are_counted(
        self, scores: tuple[Score, ...], not_fully: int
    ) -> None:
        only = case("a").model_copy(update={"iterations": [iteration("passed", turn(*scores))]})
        assert summarise([only]).not_fully_evaluated == not_fully

    def test_cases_whose_judge_was_not_called_are_counted_by_reason(self) -> None:
        judged, informational = score("quality", model="judge"), not_asked(gating=False)
        scores = [not_asked(), not_asked(), not_asked(cause="budget"), judged, PASSED, informational]
        cases = [case("a").model_copy(update={"iterations": [iteration("passed", turn(found))]}) for found in scores]
        assert summarise(cases).judging == Judging(
            cases=4,
            judged=1,
            not_judged=[
                NotJudged(cause="budget", limit="budget of 5 calls", cases=1),
                NotJudged(cause="limit", limit="limit of 5 calls", cases=2),
            ],
        )
        assert summarise(cases[3:]).judging is None

    @given(statuses=st.lists(st.sampled_from(STATUSES)))
    def test_every_case_is_counted_once(self, statuses: list[CaseStatus]) -> None:
        summary = summarise([case(str(number), status) for number, status in enumerate(statuses)])
        assert summary.passed + summary.failed + summary.errors + summary.skipped == summary.cases == len(statuses)
        if summary.pass_rate is not None:
            assert 0.0 <= summary.pass_rate <= 1.0
        else:
            assert set(statuses) <= {"skipped"}
