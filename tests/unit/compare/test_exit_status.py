"""The exit status for every combination of causes: 1 if the change is a cause, 3 if only something outside is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import pytest
from tests.unit.runs import broken, case, iteration, not_asked, results, score, turn

from agenteval.compare.comparer import Comparer
from agenteval.compare.gate import FailOn, GatePolicy, decide_gate
from agenteval.compare.policy import ComparePolicy
from agenteval.results.case import CaseResult, CaseStatus, Criterion, NotAsked, NotAskedCause, TurnResult
from agenteval.results.model import Coverage, EndedBy

ANY_FLIP = ComparePolicy(name="any-flip")
STATISTICS = ComparePolicy(confirm="off")
MANY = 60


def of(status: CaseStatus, found: TurnResult) -> Callable[[str], CaseResult]:
    return lambda name: case(name, status).model_copy(update={"iterations": [iteration(status, found)]})


def limited(cause: NotAskedCause) -> TurnResult:
    return turn(response=None, error="not run", not_asked=NotAsked(cause=cause, limit="the limit"))


JUDGED = turn(score(), score("quality"))
# Results of one case.
CASES: dict[str, Callable[[str], CaseResult]] = {
    "failed": of("failed", turn(score(value=0.0, passed=False), score("quality"))),
    "crashed": of("error", turn(response=None, error="crash")),
    "judge is dead": of("passed", turn(score(), broken("quality"))),
    "not judged": of("skipped", turn(score(), not_asked("quality", "budget"))),
    "not asked": of("error", limited("budget")),
    "not run": of("error", limited("time")),
    "skipped": of("skipped", turn(score("quality", None, None, status="skipped"))),
}
ENDED: dict[str, EndedBy] = {"not judged": "budget", "not asked": "budget", "not run": "time"}


@dataclass(frozen=True)
class Run:
    """What happened in a run: in single cases, and to the suite."""

    causes: frozenset[str]

    def status(self, policy: ComparePolicy | None = ANY_FLIP) -> int:
        """The exit status; without a policy there is no baseline."""
        then = results(*(of("passed", JUDGED)(f"c{number}") for number in range(MANY)), run_id="then")
        kinds = sorted(self.causes & CASES.keys())
        cases = [CASES[kind](f"c{number}") for number, kind in enumerate(kinds)]
        left = range(len(kinds), MANY * 7 // 10 if "cases removed" in self.causes else MANY)
        cases += [of("passed", JUDGED)(f"c{number}") for number in left]
        now = results(*cases)
        ended_by = next((ENDED[kind] for kind in sorted(ENDED, reverse=True) if kind in kinds), None)
        coverage = Coverage(cases=len(cases), selected=len(cases), finished=len(cases), ended_by=ended_by)
        criteria = [Criterion(name="quality", met=None)] if "criterion unchecked" in self.causes else []
        now = now.model_copy(
            update={
                "run": now.run.model_copy(update={"coverage": coverage, "complete": ended_by != "time"}),
                "suites": [now.suites[0].model_copy(update={"criteria": criteria})],
            }
        )
        if policy is not None:
            known = {item.id for _, item in now.cases()}
            now = now.model_copy(update={"comparison": Comparer(now, then, known, policy).decide()})
        return decide_gate(now, GatePolicy()).exit_status


OUTSIDE = {"judge is dead", "not judged", "not asked", "not run"}
LIMITS = {"not judged", "not asked", "not run"}
BY_CHANGE = {"failed", "cases removed", "skipped", "criterion unchecked"}
ALL = sorted({*OUTSIDE, *BY_CHANGE, "crashed"})


def expected(causes: frozenset[str]) -> int:
    """The rule: failures, then errors of the agent, then what the change did, then what is outside."""
    limited = bool(causes & LIMITS)
    at_fault = causes & BY_CHANGE
    if limited:
        # Without judgements, criteria have no data.
        at_fault -= {"criterion unchecked"}
    if at_fault & {"failed", "criterion unchecked"}:
        return 1
    if "crashed" in causes:
        return 1 if limited else 3
    if at_fault:
        return 1
    return 3 if causes & OUTSIDE else 0


# Decides 512 runs.
@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ALL) + 1))
def test_every_combination_of_causes(number: int) -> None:
    for chosen in combinations(ALL, number):
        causes = frozenset(chosen)
        assert Run(causes).status() == expected(causes), chosen


@pytest.mark.parametrize("cause", ALL)
def test_the_statistics_blame_no_one_else(cause: str) -> None:
    causes = frozenset({cause})
    # A case that fails now and did not run again is neither proven nor refuted.
    assert Run(causes).status(STATISTICS) == (3 if cause == "failed" else expected(causes))


@pytest.mark.parametrize("cause", sorted(OUTSIDE - {"judge is dead"}))
def test_limits_exit_with_3_without_a_baseline_too(cause: str) -> None:
    assert Run(frozenset({cause})).status(None) == 3
    assert Run(frozenset({cause, "failed"})).status(None) == 1
    assert Run(frozenset({cause, "criterion unchecked"})).status(None) == 3


@pytest.mark.parametrize(
    ("found", "status", "ended_by", "expected_status"),
    [
        (not_asked("numeric", "budget"), "skipped", "budget", 3),
        (not_asked("numeric", "limit"), "skipped", None, 1),
        (score(value=None, passed=None, status="skipped"), "skipped", None, 1),
        (broken(), "error", None, 3),
    ],
)
def test_who_left_nothing_checked(
    found: object, status: CaseStatus, ended_by: EndedBy | None, expected_status: int
) -> None:
    only = case("a", status).model_copy(update={"iterations": [iteration(status, turn(found))]})  # type: ignore[arg-type]
    now = results(only)
    coverage = Coverage(cases=1, selected=1, finished=1, ended_by=ended_by)
    now = now.model_copy(update={"run": now.run.model_copy(update={"coverage": coverage})})
    gate = decide_gate(now, GatePolicy(max_error_rate=1, fail_on=frozenset({"unproven"})))
    assert (gate.verdict, gate.exit_status) == ("unproven", expected_status)


@pytest.mark.parametrize(
    ("fail_on", "rule", "expected_status"),
    [
        ({"unproven"}, "fail-on: unproven", 3),
        ({"errors"}, "fail-on does not contain unproven", 0),
        ({"failures", "regressions"}, "fail-on does not contain unproven", 0),
    ],
)
def test_each_reason_says_whether_it_fails_the_job(fail_on: set[FailOn], rule: str, expected_status: int) -> None:
    unjudged = case("a").model_copy(update={"iterations": [iteration("passed", turn(broken()))]})
    gate = decide_gate(results(unjudged), GatePolicy(max_error_rate=1, fail_on=frozenset(fail_on)))
    assert (gate.verdict, gate.exit_status) == ("unproven", expected_status)
    assert {condition.rule for condition in gate.conditions} == {rule}
