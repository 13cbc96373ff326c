"""Whether the merge may go on."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.runs import case, results

from agenteval.compare.comparer import Comparer
from agenteval.compare.gate import DEFAULT_FAIL_ON, FAIL_ON, FailOn, GatePolicy, decide_gate, parse_fail_on
from agenteval.compare.policy import ComparePolicy
from agenteval.results.model import CaseStatus, Criterion, Results

STATUSES: list[CaseStatus] = ["passed", "failed", "error", "skipped"]
NAMES: dict[str, CaseStatus] = {name[0]: name for name in STATUSES}
ANY_FLIP = ComparePolicy(name="any-flip")
POLICIES = st.builds(GatePolicy, fail_on=st.frozensets(st.sampled_from(FAIL_ON)), max_error_rate=st.floats(0, 1))


def run(letters: str, before: str | None = None) -> Results:
    """A run with one case for each letter (passed, failed, error, skipped), and one to compare with."""
    now = results(*(case(str(number), NAMES[letter]) for number, letter in enumerate(letters)))
    if before is None:
        return now
    then = results(*(case(str(number), NAMES[letter]) for number, letter in enumerate(before)), run_id="then")
    return compared(now, then)


def compared(now: Results, then: Results, policy: ComparePolicy = ANY_FLIP) -> Results:
    """A run with its comparison."""
    known = {item.id for _, item in now.cases()}
    return now.model_copy(update={"comparison": Comparer(now, then, known, policy).decide()})


def policy(*fail_on: FailOn, max_error_rate: float = 0.10) -> GatePolicy:
    return GatePolicy(frozenset(fail_on), max_error_rate)


class TestExitStatus:
    @pytest.mark.parametrize(
        ("now", "before", "status", "headline"),
        [
            ("pp", None, 0, "2 of 2 cases passed"),
            ("ps", None, 0, "1 of 2 cases passed"),
            ("pf", None, 1, "1 case failed"),
            ("ff", None, 1, "2 cases failed"),
            ("pe", None, 3, "1 case could not be evaluated"),
            ("e", None, 3, "1 case could not be evaluated"),
            ("fe", None, 3, "1 case could not be evaluated"),
            ("p" * 9 + "e", None, 3, "1 case could not be evaluated"),
            ("p" * 8 + "ef", None, 1, "1 case failed"),
            ("s", None, 1, "nothing was checked: every case was skipped"),
            ("", None, 1, "nothing was checked: there is no case"),
            ("pp", "pp", 0, "2 of 2 cases passed"),
            ("pf", "pp", 1, "1 case got worse"),
            ("ff", "pf", 1, "1 case got worse"),
            ("pf", "pf", 1, "1 case failed"),
            ("pp", "", 0, "2 of 2 cases passed"),
        ],
    )
    def test_by_default(self, now: str, before: str | None, status: int, headline: str) -> None:
        gate = decide_gate(run(now, before), GatePolicy())
        assert (gate.exit_status, gate.headline) == (status, headline)
        assert gate.passed is (status == 0)
        assert gate.verdict == {0: "passed", 1: "failed", 3: "error"}[status]
        assert bool(gate.reasons) is (status != 0)

    @pytest.mark.parametrize(
        ("fail_on", "now", "before", "status"),
        [
            (["failures"], "pf", "pp", 1),
            (["regressions"], "pf", None, 0),
            (["regressions"], "pf", "pf", 0),
            (["regressions"], "pf", "pp", 1),
            (["errors"], "p" * 19 + "e", None, 3),
            (["errors"], "pf", "pp", 0),
            (["failures"], "p" * 19 + "e", None, 0),
            (["failures"], "pe", None, 3),
            (["inconclusive"], "pp", "", 1),
            (["failures"], "pp", "", 0),
            ([], "ff", "pp", 0),
            ([], "s", None, 0),
            ([], "", None, 0),
            ([], "pe", None, 3),
            (["inconclusive"], "s", None, 1),
        ],
    )
    def test_by_policy(self, fail_on: list[FailOn], now: str, before: str | None, status: int) -> None:
        assert decide_gate(run(now, before), policy(*fail_on)).exit_status == status

    @pytest.mark.parametrize(
        ("errors", "others", "skipped", "limit", "broken"),
        [
            (1, 9, 0, 0.10, False),
            (2, 8, 0, 0.10, True),
            (1, 9, 100, 0.10, False),
            (1, 8, 100, 0.10, True),
            (29, 71, 0, 0.29, False),
            (30, 70, 0, 0.29, True),
            (7, 93, 0, 0.07, False),
            (1, 0, 0, 1.0, False),
            (0, 5, 0, 0.0, False),
            (1, 999, 0, 0.0, True),
        ],
    )
    def test_so_many_cases_may_break(
        self, errors: int, others: int, skipped: int, limit: float, broken: bool
    ) -> None:
        gate = decide_gate(run("e" * errors + "p" * others + "s" * skipped), policy("failures", max_error_rate=limit))
        assert (gate.exit_status == 3) is broken

    def test_a_run_of_which_nothing_could_be_evaluated_does_not_pass(self) -> None:
        gate = decide_gate(run("es"), policy("failures", max_error_rate=1.0))
        assert gate.exit_status == 1
        assert gate.reasons == (
            "nothing was checked: no case could be evaluated",
            "1 case could not be evaluated",
        )


class TestReasons:
    def test_the_weightiest_comes_first_and_none_is_lost(self) -> None:
        now = results(
            case("a", "failed", [{"rouge": 0.2}]),
            *(case(str(number), scores=[{}]) for number in range(9)),
            case("c", "error", []),
        )
        then = results(case("a", "passed", [{"rouge": 0.9}]))
        now = compared(now, then).model_copy(
            update={
                "suites": [
                    now.suites[0].model_copy(
                        update={"criteria": [Criterion(name="latency", met=False), Criterion(name="cost", met=None)]}
                    )
                ],
            }
        )
        assert decide_gate(now, GatePolicy()).reasons == (
            "1 case got worse",
            "the mean of rouge fell from 0.90 to 0.20",
            "1 case failed",
            "criterion not met: latency",
            "1 case could not be evaluated",
        )

    def test_a_fallen_mean_alone_is_a_regression(self) -> None:
        now, then = results(case("a", scores=[{"rouge": 0.7}])), results(case("a", scores=[{"rouge": 0.9}]))
        gate = decide_gate(compared(now, then), GatePolicy())
        assert gate.exit_status == 1
        assert gate.headline == "the mean of rouge fell"


class TestMonotony:
    @given(
        statuses=st.lists(st.sampled_from("pfes"), min_size=1, max_size=8),
        before=st.none() | st.text("pfes", max_size=8),
        index=st.integers(0, 7),
        chosen=POLICIES,
    )
    def test_one_more_failure_never_turns_fail_into_pass(
        self, statuses: list[str], before: str | None, index: int, chosen: GatePolicy
    ) -> None:
        index %= len(statuses)
        assume(statuses[index] == "p")
        worse = [*statuses[:index], "f", *statuses[index + 1 :]]
        if not decide_gate(run("".join(statuses), before), chosen).passed:
            assert not decide_gate(run("".join(worse), before), chosen).passed

    @given(
        statuses=st.text("pfes", max_size=8),
        before=st.none() | st.text("pfes", max_size=8),
        chosen=POLICIES,
        more=st.frozensets(st.sampled_from(FAIL_ON)),
    )
    def test_a_stricter_policy_never_passes_more(
        self, statuses: str, before: str | None, chosen: GatePolicy, more: frozenset[FailOn]
    ) -> None:
        stricter = GatePolicy(chosen.fail_on | more, chosen.max_error_rate / 2)
        if not decide_gate(run(statuses, before), chosen).passed:
            assert not decide_gate(run(statuses, before), stricter).passed

    @given(statuses=st.text("pfes", max_size=8), chosen=POLICIES)
    def test_a_green_check_means_that_something_was_checked(self, statuses: str, chosen: GatePolicy) -> None:
        if decide_gate(run(statuses), chosen).passed and chosen.fail_on:
            assert "p" in statuses or "f" in statuses


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "fail_on"),
        [
            ("failures", {"failures"}),
            ("failures,errors", {"failures", "errors"}),
            (" failures , regressions,errors ,inconclusive", set(FAIL_ON)),
            ("failures,,failures,", {"failures"}),
            ("none", set()),
            (" none ", set()),
        ],
    )
    def test_words(self, text: str, fail_on: set[str]) -> None:
        assert parse_fail_on(text) == fail_on

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("failure", "'failure' is"),
            ("failures none", "'failures none' is"),
            ("none,failures", "'none' is"),
            ("Failures", "'Failures' is"),
            ("", "an empty list is"),
            (" , ", "an empty list is"),
        ],
    )
    def test_mistakes(self, text: str, named: str) -> None:
        with pytest.raises(
            ValueError, match="not allowed; allowed: failures, regressions, errors, inconclusive"
        ) as caught:
            parse_fail_on(text)
        assert str(caught.value).startswith(named)

    def test_the_default(self) -> None:
        assert GatePolicy().fail_on == DEFAULT_FAIL_ON == parse_fail_on("failures,regressions,errors")
