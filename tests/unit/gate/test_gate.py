"""Whether the merge may go on."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.unit.runs import case, results

from agenteval.gate.comparer import Comparer
from agenteval.gate.comparison import decide_files, make_comparison
from agenteval.gate.integrity import FIX
from agenteval.gate.proof import Ask, CannotRunError
from agenteval.gate.values import ComparePolicy, Pass, Quarantine
from agenteval.gate.verdict import (
    DEFAULT_FAIL_ON,
    FAIL_ON,
    FailOn,
    GatePolicy,
    decide_gate,
    parse_fail_on,
)
from agenteval.github.publisher import PublishOptions, content_of
from agenteval.report.facts import facts
from agenteval.report.markdown import render_comment
from agenteval.results.case import CaseStatus, Criterion
from agenteval.results.model import Coverage, EndedBy, Proven, Results, RunShard
from agenteval.results.verdict import MendedBy, Unproven

STATUSES: list[CaseStatus] = ["passed", "failed", "error", "skipped"]
NAMES: dict[str, CaseStatus] = {name[0]: name for name in STATUSES}
FILES = ComparePolicy(can_run=False)
_JUDGED = "1 of 2 cases passed; 1 case failed in the first run, and nothing is proven"
POLICIES = st.builds(GatePolicy, fail_on=st.frozensets(st.sampled_from(FAIL_ON)), max_error_rate=st.floats(0, 1))


def run(letters: str, before: str | None = None) -> Results:
    """A run with one case for each letter (passed, failed, error, skipped), and one to compare with."""
    now = results(*(case(str(number), NAMES[letter]) for number, letter in enumerate(letters)))
    if before is None:
        return now
    then = results(*(case(str(number), NAMES[letter]) for number, letter in enumerate(before)), run_id="then")
    return compared(now, then)


def compared(now: Results, then: Results, policy: ComparePolicy = FILES) -> Results:
    """A run with its comparison."""
    known = {item.id for _, item in now.cases()}
    return now.model_copy(update={"comparison": decide_files(Comparer(now, then, known, policy))})


_AGAIN = "An earlier run of this pull request proved it, and at least half of it is still there."
_UNCHECKED = "an earlier run was proven worse, and that could not be checked again: the budget is spent"


def _fall(case_id: str | None, metric: str = "numeric") -> Proven:
    return Proven(metric=metric, case=case_id, fall=1.0)


@pytest.mark.parametrize(
    ("fall", "score", "state", "asks", "told"),
    [
        (_fall("agent.yaml::0"), 0.0, "proven", True, _AGAIN),
        (_fall(None), 0.4, "proven", True, _AGAIN),
        (_fall(None), 0.6, "clear", True, ""),
        (_fall("agent.yaml::0"), 1.0, "clear", True, ""),
        (_fall("gone"), 0.0, "clear", False, ""),
        (_fall(None, "bleu"), 0.0, "clear", False, ""),
        (_fall("agent.yaml::0"), None, "unproven", True, _UNCHECKED),
    ],
)
def test_what_an_earlier_attempt_proved_is_looked_for_again(
    fall: Proven, score: float | None, state: str, *, asks: bool, told: str
) -> None:
    now, then = run("pppp"), results(*(case(str(number)) for number in range(4)), run_id="then")
    stages = set()

    def again(ask: Ask) -> Pass:
        stages.add(ask.stage)
        if score is None:
            raise CannotRunError("the budget is spent")
        return {"numeric": dict.fromkeys(ask.cases, score if ask.side == "pr" else 1.0)}

    comparer = Comparer(now, then, {item.id for _, item in now.cases()}, proven=[fall])
    found = make_comparison(comparer, comparer.prove(again))
    assert (found.state, stages) == (state, {"memory"} if asks else set())
    assert told in {found.sentences[-1], found.why, ""}


def policy(*fail_on: FailOn, max_error_rate: float = 0.10) -> GatePolicy:
    return GatePolicy(frozenset(fail_on), max_error_rate)


class TestExitStatus:
    @pytest.mark.parametrize(
        ("now", "before", "status", "headline"),
        [
            ("pp", None, 0, "2 of 2 cases passed"),
            ("ps", None, 0, "1 of 2 cases passed; 1 case skipped"),
            ("pf", None, 1, "1 of 2 cases failed"),
            ("ff", None, 1, "2 of 2 cases failed"),
            ("pe", None, 3, "1 of 2 cases could not be run"),
            ("e", None, 3, "1 of 1 case could not be run"),
            ("fe", None, 3, "1 of 2 cases could not be run"),
            ("p" * 9 + "e", None, 3, "1 of 10 cases could not be run"),
            ("p" * 8 + "ef", None, 1, "1 of 10 cases failed"),
            ("s", None, 1, "nothing was checked: every case was skipped"),
            ("", None, 1, "nothing was checked: there is no case"),
            ("pp", "pp", 0, "2 of 2 cases passed"),
            ("pf", "pp", 0, _JUDGED),
            ("pf", "pf", 0, "1 of 2 cases passed; 1 of 2 cases fails as it does on main"),
            ("pff", "pf", 1, "1 of 3 cases failed"),
            ("pf", "pe", 0, _JUDGED),
            (
                "p",
                "pp",
                1,
                "1 of 2 cases of the baseline cannot be compared: 1 removed (1); " + FIX.format(them="them"),
            ),
            ("pp", "", 0, "2 of 2 cases passed"),
        ],
    )
    def test_by_default(self, now: str, before: str | None, status: int, headline: str) -> None:
        gate = decide_gate(run(now, before), GatePolicy())
        assert (gate.exit_status, gate.headline) == (status, headline)
        assert gate.passed is (status == 0)
        is_unproven = "nothing was checked" in headline or "cannot be compared" in headline
        assert gate.verdict == ("unproven" if is_unproven else {0: "passed", 1: "failed", 3: "error"}[status])
        assert bool(gate.reasons) is (status != 0)

    @pytest.mark.parametrize(
        ("fail_on", "now", "before", "status"),
        [
            (["failures"], "pf", "pp", 0),
            (["regressions"], "pf", None, 0),
            (["regressions"], "pf", "pf", 0),
            (["regressions"], "pf", "pp", 0),
            (["errors"], "p" * 19 + "e", None, 3),
            (["errors"], "pf", "pp", 0),
            (["failures"], "p" * 19 + "e", None, 0),
            (["failures"], "pe", None, 3),
            (["unproven"], "pp", "", 0),
            (["unproven"], "p", "pp", 1),
            (["failures"], "p", "pp", 0),
            (["failures"], "pp", "", 0),
            ([], "ff", "pp", 0),
            ([], "s", None, 0),
            ([], "", None, 0),
            ([], "pe", None, 3),
            (["unproven"], "s", None, 1),
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
        assert (gate.verdict == "error") is broken

    @pytest.mark.parametrize(
        ("now", "fail_on", "verdict", "status", "headline"),
        [
            ("p" * 19 + "e", FAIL_ON, "error", 3, "1 of 20 cases could not be run"),
            ("p" * 18 + "ef", FAIL_ON, "failed", 1, "1 of 20 cases failed"),
            ("p" * 16 + "eeef", FAIL_ON, "error", 3, "3 of 20 cases could not be run"),
            (
                "p" * 19 + "e",
                ["failures"],
                "passed",
                0,
                "19 of 20 cases passed; 1 of 20 cases could not be run; only failures fail this gate",
            ),
            (
                "p" * 16 + "eeef",
                ["failures"],
                "error",
                3,
                "3 of 20 cases could not be run, and max_error_rate allows 10 %",
            ),
        ],
    )
    def test_errors_fail_by_fail_on_or_by_their_share(
        self, now: str, fail_on: list[FailOn], verdict: str, status: int, headline: str
    ) -> None:
        gate = decide_gate(run(now), policy(*fail_on))
        assert (gate.verdict, gate.exit_status, gate.headline) == (verdict, status, headline)

    def test_a_run_of_which_nothing_could_be_evaluated_does_not_pass(self) -> None:
        gate = decide_gate(run("es"), policy("failures", max_error_rate=1.0))
        assert (gate.verdict, gate.exit_status) == ("unproven", 3)
        assert gate.reasons == (
            "nothing was checked: no case could be run",
            "1 of 2 cases could not be run",
            "0 of 2 cases passed",
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
            "criterion not met: latency",
            "1 of 11 cases could not be run",
            "criterion unchecked: cost",
            "1 case failed in the first run, and nothing is proven",
        )

    @pytest.mark.parametrize(
        ("met", "policy", "status"),
        [
            (None, GatePolicy(), 1),
            (None, policy("regressions"), 0),
            (False, GatePolicy(), 1),
            (True, GatePolicy(), 0),
        ],
    )
    def test_a_criterion_without_data_is_unproven(self, met: bool | None, policy: GatePolicy, status: int) -> None:
        now = run("pp")
        criteria = [Criterion(name="tool_calling.proper_timing", met=met)]
        now = now.model_copy(update={"suites": [now.suites[0].model_copy(update={"criteria": criteria})]})
        gate = decide_gate(now, policy)
        assert gate.exit_status == status
        assert ("criterion unchecked: tool_calling.proper_timing" in gate.headline) is (met is None)
        assert (gate.verdict == "unproven") is (met is None)


class TestConditions:
    @pytest.mark.parametrize(
        ("now", "before", "fail_on", "conditions"),
        [
            ("pppf", None, ["failures"], ["1 of 4 cases failed (fail-on: failures)"]),
            (
                "p" * 18 + "fe",
                None,
                ["failures", "errors"],
                ["1 of 20 cases failed (fail-on: failures)", "1 of 20 cases could not be run (fail-on: errors)"],
            ),
            ("p" * 18 + "fe", None, ["failures"], ["1 of 20 cases failed (fail-on: failures)"]),
            ("p" * 19 + "e", None, ["errors"], ["1 of 20 cases could not be run (fail-on: errors)"]),
            ("ppe", None, ["failures"], ["1 of 3 cases could not be run (max_error_rate: 0.1)"]),
            (
                "pfe",
                None,
                ["failures", "errors"],
                ["1 of 3 cases could not be run (fail-on: errors)", "1 of 3 cases failed (fail-on: failures)"],
            ),
            (
                "",
                None,
                ["failures", "unproven"],
                ["nothing was checked: there is no case"],
            ),
            ("pp", "pp", ["failures"], []),
        ],
    )
    def test_each_names_its_rule(
        self, now: str, before: str | None, fail_on: list[FailOn], conditions: list[str]
    ) -> None:
        gate = decide_gate(run(now, before), policy(*fail_on))
        assert [str(condition) for condition in gate.conditions] == conditions

    @pytest.mark.parametrize(
        ("fail_on", "further"),
        [(["unproven"], []), (["unproven", "errors"], ["1 of 20 cases could not be run (fail-on: errors)"])],
    )
    def test_what_is_unproven_comes_before_errors(self, fail_on: list[FailOn], further: list[str]) -> None:
        coverage = Coverage(cases=20, selected=20, finished=19, ended_by="time")
        gate = decide_gate(covered(run("p" * 19 + "e"), coverage, complete=False), policy(*fail_on))
        limit = "the time limit was reached: 1 of 20 cases did not finish (fail-on: unproven)"
        assert [str(condition) for condition in gate.conditions] == [limit, *further]


class TestMonotony:
    @given(
        first=st.text("pfes", max_size=4),
        last=st.text("pfes", max_size=4),
        before=st.none() | st.text("pfes", max_size=9),
        chosen=POLICIES,
    )
    def test_one_more_failure_never_turns_fail_into_pass(
        self, first: str, last: str, before: str | None, chosen: GatePolicy
    ) -> None:
        if not decide_gate(run(f"{first}p{last}", before), chosen).passed:
            assert not decide_gate(run(f"{first}f{last}", before), chosen).passed

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
            (" failures , regressions,errors ,unproven", set(FAIL_ON) - {"suspicious"}),
            ("failures,unproven", {"failures", "unproven"}),
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
            ("failure", "'failure' is not allowed; did you mean 'failures'?"),
            ("regression,errors,failure", "'regression' is not allowed; did you mean 'regressions'?"),
            ("failures none", "'failures none' is not allowed; did you mean 'failures'?"),
            ("none,failures", "'none' is not allowed"),
            ("Failures", "'Failures' is not allowed; did you mean 'failures'?"),
            ("", "an empty list is not allowed"),
            (" , ", "an empty list is not allowed"),
        ],
    )
    def test_mistakes(self, text: str, named: str) -> None:
        with pytest.raises(ValueError, match="is not allowed") as caught:
            parse_fail_on(text)
        allowed = "allowed: failures, regressions, unproven, errors, suspicious, or none alone"
        assert str(caught.value) == f"{named}; {allowed}"

    @pytest.mark.parametrize(("rate", "is_allowed"), [(-0.01, False), (0, True), (1, True), (1.01, False)])
    def test_the_error_rate_is_a_share(self, rate: float, is_allowed: bool) -> None:
        try:
            TypeAdapter(GatePolicy).validate_python({"max_error_rate": rate})
        except ValidationError:
            assert not is_allowed
        else:
            assert is_allowed

    def test_the_default(self) -> None:
        assert GatePolicy().fail_on == DEFAULT_FAIL_ON == parse_fail_on("failures,regressions,unproven,errors")


COVERAGE = Coverage(cases=10, selected=2, finished=2, filter="refund")
# A run that passes needs eyes if something failed; one without a proof blocks, or passes and needs eyes.
ICONS = {"passed": {"✅", "⚠️"}, "failed": {"❌"}, "unproven": {"❌", "⚠️"}, "error": {"🔌"}}


def test_a_run_that_needs_a_baseline_is_unproven_without_one() -> None:
    every: frozenset[FailOn] = DEFAULT_FAIL_ON
    regressions: frozenset[FailOn] = frozenset({"regressions"})
    nothing: frozenset[FailOn] = frozenset()
    shard = run("ppp").model_copy(
        update={"run": run("ppp").run.model_copy(update={"shard": RunShard(index=1, count=2, cases=["a", "b", "c"])})}
    )
    table = [
        (run("ppp"), every, "unproven", 3),
        (run("ppp"), regressions, "unproven", 3),
        (run("ppp"), nothing, "unproven", 0),
        (run("ppf"), every, "failed", 1),
        (run("ppf"), regressions, "unproven", 3),
        (compared(run("ppp"), run("ppp")), every, "passed", 0),
        # Only the run that is joined from the shards is compared.
        (shard, every, "unproven", 0),
    ]
    for results_, fail_on, verdict, status in table:
        gate = decide_gate(results_, GatePolicy(fail_on, needs_baseline=True))
        assert (gate.verdict, gate.exit_status) == (verdict, status), (fail_on, gate)
        assert ("there is no baseline" in " ".join(gate.reasons)) is (verdict != "passed" and results_ is not shard)


def covered(run: Results, coverage: Coverage, **more: Any) -> Results:
    """A run that covered only a part."""
    return run.model_copy(update={"run": run.run.model_copy(update={"coverage": coverage, **more})})


class TestVerdict:
    @pytest.mark.parametrize(
        ("fail_on", "now", "before", "headline"),
        [
            (["regressions"], "f", "f", "1 of 1 case fails as it does on main"),
            (["regressions"], "pff", "pff", "1 of 3 cases passed; 2 of 3 cases fail as they do on main"),
            (
                ["regressions", "errors"],
                "pff",
                "pfs",
                "1 of 3 cases passed; 1 of 3 cases fails; 1 of 3 cases fails as it does on main; only ",
            ),
            (
                ["regressions"],
                "ff",
                None,
                "2 of 2 cases fail; no baseline, so nothing was compared; only regressions fail this gate",
            ),
            (["errors"], "pf", None, "1 of 2 cases passed; 1 of 2 cases fails; only errors fail this gate"),
            (
                ["regressions", "unproven", "errors"],
                "pf",
                None,
                "1 of 2 cases passed; 1 of 2 cases fails; no baseline, so nothing was compared; "
                "only regressions, unproven and errors fail this gate",
            ),
            (["failures"], "p" * 19 + "e", None, "19 of 20 cases passed; 1 of 20 cases could not be run; "),
        ],
    )
    def test_a_passed_gate_says_what_fails_and_why_it_passes(
        self, fail_on: list[FailOn], now: str, before: str | None, headline: str
    ) -> None:
        gate = decide_gate(run(now, before), policy(*fail_on))
        assert gate.verdict == "passed"
        assert gate.headline.startswith(headline)

    def test_cases_in_quarantine_are_named(self) -> None:
        held = GatePolicy(quarantine=(Quarantine("1", date(2030, 1, 1)),))
        gate = decide_gate(run("pf"), held, date(2029, 1, 1))
        assert (gate.verdict, gate.headline) == ("passed", "1 of 1 case passed; 1 case in quarantine did not pass")

    @given(
        statuses=st.text("pfes", max_size=6),
        before=st.none() | st.text("pfes", max_size=6),
        chosen=POLICIES,
        ended_by=st.sampled_from([None, "signal", "time", "budget"]),
        selected=st.integers(0, 8),
    )
    def test_green_means_passed_and_no_text_contradicts_it(
        self,
        statuses: str,
        before: str | None,
        chosen: GatePolicy,
        ended_by: EndedBy | None,
        selected: int,
    ) -> None:
        coverage = Coverage(cases=8, selected=max(selected, len(statuses)), finished=len(statuses), ended_by=ended_by)
        checked = covered(run(statuses, before), coverage, complete=ended_by in {None, "budget"})
        gate = decide_gate(checked, chosen)
        report = facts(checked, gate)
        comment = render_comment(report)
        first = comment.split("\n", 1)[0]
        icon = first.split()[1]
        assert icon in ICONS[gate.verdict]
        assert gate.verdict != "unproven" or (icon == "❌") is (gate.exit_status != 0)
        if icon == "✅":
            assert "f" not in statuses or before is not None
        if gate.exit_status == 0:
            assert icon in {"✅", "⚠️"}
            assert "The check fails" not in comment
        assert (content_of(report, PublishOptions()).conclusion == "success") is gate.passed
        assert not gate.passed or gate.exit_status == 0
        if gate.passed:
            assert "p" in statuses or "f" in statuses
            assert not gate.headline.startswith("0 of")
            assert "f" not in statuses or "fail" in gate.headline
            assert "e" not in statuses or "could not be run" in gate.headline
            assert ended_by is None
        else:
            assert gate.exit_status != 0 or gate.verdict == "unproven"
            assert gate.headline not in {"", "passed"}

    @pytest.mark.parametrize(
        ("mended_by", "fail_on", "status"),
        [
            (["change"], FAIL_ON, 1),
            (["outside"], FAIL_ON, 3),
            (["outside", "change"], FAIL_ON, 1),
            (["outside"], ["failures"], 0),
            (["outside"], ["unproven"], 3),
            (["change"], [], 0),
        ],
    )
    def test_who_can_mend_it_decides_the_exit_status(
        self, mended_by: list[MendedBy], fail_on: list[FailOn], status: int
    ) -> None:
        compared = run("pp", "pp")
        assert compared.comparison is not None
        points = [Unproven(what="proof", text=f"by {who}", mended_by=who) for who in mended_by]
        comparison = compared.comparison.model_copy(update={"unproven": points, "state": "unproven"})
        gate = decide_gate(compared.model_copy(update={"comparison": comparison}), policy(*fail_on))
        assert (gate.verdict, gate.exit_status) == ("unproven", status)
        assert gate.reasons == (*(point.text for point in points), "2 of 2 cases passed")

    def test_the_headline_says_of_how_many(self) -> None:
        gate = decide_gate(covered(run("pp"), COVERAGE), GatePolicy())
        assert gate.headline == "2 of 2 cases passed; 2 of 10 cases selected (filter 'refund')"

    @pytest.mark.parametrize(
        ("statuses", "verdict", "status", "headline"),
        [
            ("ppe", "unproven", 3, "the time limit was reached: 1 of 3 cases did not finish"),
            # More errors than the limit come before failures, whatever caused the errors.
            ("pfe", "unproven", 3, "the time limit was reached: 1 of 3 cases did not finish"),
            ("p" * 9 + "fe", "failed", 1, "1 of 11 cases failed"),
        ],
    )
    def test_a_time_limit_proves_nothing_but_hides_no_failure(
        self, statuses: str, verdict: str, status: int, headline: str
    ) -> None:
        count = len(statuses)
        coverage = Coverage(cases=count, selected=count, finished=count - 1, ended_by="time")
        gate = decide_gate(covered(run(statuses), coverage, complete=False), GatePolicy())
        assert (gate.verdict, gate.exit_status, gate.headline) == (verdict, status, headline)
        assert (f"1 of {count} cases failed" in gate.reasons) is ("f" in statuses)

    @pytest.mark.parametrize(
        ("statuses", "selected", "headline", "reasons"),
        [
            ("pe", 5, "2 of 5 cases had finished", ("1 of 2 cases could not be run", "1 of 2 cases passed")),
            ("p", 1, "1 of 1 case had finished", ("1 of 1 case passed",)),
            ("", 5, "0 of 5 cases had finished", ()),
        ],
    )
    def test_an_interrupted_run_is_an_error(
        self, statuses: str, selected: int, headline: str, reasons: tuple[str, ...]
    ) -> None:
        coverage = Coverage(cases=selected, selected=selected, finished=len(statuses), ended_by="signal")
        gate = decide_gate(covered(run(statuses), coverage, complete=False), GatePolicy())
        assert (gate.verdict, gate.exit_status, gate.headline, gate.reasons) == ("error", 3, headline, reasons)
        assert [str(condition) for condition in gate.conditions] == [f"the run was interrupted: {headline}"]

    def test_a_shard_decides_nothing(self) -> None:
        shard = RunShard(index=1, count=3, cases=["a", "b", "c"])
        gate = decide_gate(covered(run("f"), COVERAGE, shard=shard), GatePolicy())
        assert (gate.verdict, gate.exit_status) == ("unproven", 0)
        assert gate.headline == "shard 1 of 3, 1 of 3 cases; agenteval merge decides"
