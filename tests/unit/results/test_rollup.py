"""From scores to the status of an iteration, a case, a run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs import broken, case, iteration, not_asked, score, skipped, turn

from agenteval.results.case import CaseResult, CaseStatus, Score, TurnResult, Usage
from agenteval.results.rollup import (
    case_status,
    iteration_status,
    mean,
    mean_score,
    strict_case_status,
    summarise,
)
from agenteval.results.summary import RunUsage

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
            turn(index=2),
        ]
        only = case("a").model_copy(update={"iterations": [iteration("passed", *turns)]})
        judges = RunUsage(input_tokens=100, output_tokens=20, llm_calls=3, cost_usd=0.25)
        assert summarise([only]).usage == RunUsage(input_tokens=15, output_tokens=1, llm_calls=0, cost_usd=0.5)
        assert summarise([only], judges).usage == RunUsage(
            input_tokens=115, output_tokens=21, llm_calls=3, cost_usd=0.75
        )

    @given(statuses=st.lists(st.sampled_from(STATUSES)))
    def test_every_case_is_counted_once(self, statuses: list[CaseStatus]) -> None:
        summary = summarise([case(str(number), status) for number, status in enumerate(statuses)])
        assert summary.passed + summary.failed + summary.errors + summary.skipped == summary.cases == len(statuses)
        if summary.pass_rate is not None:
            assert 0.0 <= summary.pass_rate <= 1.0
        else:
            assert set(statuses) <= {"skipped"}
