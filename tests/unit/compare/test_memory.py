"""What an attempt of a pull request leaves for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.baselines import results

from agenteval.compare.gate_failures import Required
from agenteval.compare.memory import burden_of, can_resume, is_decided, next_burden, proven, with_burden
from agenteval.compare.regression.model import Burden, CaseFinding, Decision, Failures, MetricFinding
from agenteval.results.comparison import Comparison
from agenteval.results.model import Coverage, Memory, Results
from agenteval.results.verdict import Gate, Verdict

MEMORY = Memory(attempt=1, key="0" * 64)
NOT_RUN = Failures(0, 0)
BEFORE = Burden(means={"old": 0.3}, cases={("old", "c"): 0.5})


def metric(name: str, drop: float, *, is_proven: bool) -> MetricFinding:
    return MetricFinding(
        metric=name, cases=10, units=10, baseline=0.9, first=0.5, current=0.75 - drop, control=0.75, proven=is_proven
    )


def case(name: str, *, is_proven: bool, current: Failures = NOT_RUN, control: Failures = NOT_RUN) -> CaseFinding:
    pool, first = Failures(1, 10), Failures(3, 5)
    return CaseFinding(
        metric="m", case_id=name, pool=pool, first=first, current=current, control=control, proven=is_proven
    )


def decision(verdict: Literal["regressed", "unproven", "unchanged"], **changes: Any) -> Decision:
    return Decision(verdict=verdict, stage="head-to-head", **{"metrics": (), **changes})


def gate(verdict: Verdict) -> Gate:
    return Gate(verdict=verdict, exit_status=0 if verdict == "passed" else 1, headline=verdict)


def test_what_is_proven_is_measured_against_the_control() -> None:
    found = proven(
        decision(
            "regressed",
            metrics=(metric("m", 0.25, is_proven=True), metric("other", 0.5, is_proven=False)),
            cases=(
                case("reruns", is_proven=True, current=Failures(9, 12), control=Failures(3, 12)),
                # Of an agent that repeats its answers; nothing was run again.
                case("exact", is_proven=True),
                case("candidate", is_proven=False, current=Failures(5, 12), control=Failures(0, 12)),
            ),
        )
    )
    assert found == Burden(means={"m": 0.25}, cases={("m", "reruns"): 0.5, ("m", "exact"): 0.5})


NEW = {"metrics": (metric("m", 0.25, is_proven=True),)}


@pytest.mark.parametrize(
    ("verdict", "made", "expected"),
    [
        ("passed", decision("unchanged"), Burden()),
        ("passed", decision("regressed", **NEW), Burden()),
        ("passed", None, Burden()),
        ("failed", decision("regressed", **NEW), Burden(means={"m": 0.25})),
        (
            "failed",
            decision("regressed", carried=True, **NEW),
            Burden(means={"old": 0.3, "m": 0.25}, cases={("old", "c"): 0.5}),
        ),
        # It failed for another reason.
        ("failed", decision("unchanged"), Burden()),
        ("failed", decision("unproven"), BEFORE),
        ("failed", None, BEFORE),
        ("unproven", decision("unproven"), BEFORE),
        ("error", decision("unchanged"), BEFORE),
        ("error", None, BEFORE),
    ],
)
def test_what_the_next_attempt_must_refute(verdict: Verdict, made: Decision | None, expected: Burden) -> None:
    assert next_burden(BEFORE, gate(verdict), made) == expected


@given(
    st.builds(
        Burden,
        means=st.dictionaries(st.text(max_size=9), st.floats(0, 1, exclude_min=True), max_size=4),
        cases=st.dictionaries(
            st.tuples(st.text(max_size=9), st.text(max_size=9)), st.floats(0, 1, exclude_min=True), max_size=4
        ),
    )
)
def test_a_burden_survives_the_file(burden: Burden) -> None:
    text = with_burden(MEMORY, burden).model_dump_json()
    assert burden_of(Memory.model_validate_json(text)) == burden


def test_without_a_memory_nothing_is_to_refute() -> None:
    assert burden_of(None) == burden_of(MEMORY) == Burden()


def attempt(
    verdict: Verdict,
    *,
    exit_status: int = 1,
    ended_by: str | None = None,
    failed: int = 0,
    errors: int = 0,
    points: Sequence[str] = (),
) -> Results:
    """An attempt with one case, which passed if nothing else is said."""
    found = results("a" * 40)
    coverage = Coverage.model_validate({"cases": 1, "selected": 1, "finished": 1, "ended_by": ended_by})
    [suite] = found.suites
    status = "failed" if failed else "error" if errors else "passed"
    suite = suite.model_copy(update={"cases": [suite.cases[0].model_copy(update={"status": status})]})
    counts = {"passed": 1 - failed - errors, "failed": failed, "errors": errors}
    unproven = [{"what": what, "text": what, "mended_by": "outside"} for what in points]
    compared = {"baseline": {"run_id": "b", "created_at": "c"}, "verdict": "unproven", "unproven": unproven}
    return found.model_copy(
        update={
            "gate": Gate(verdict=verdict, exit_status=exit_status, headline=verdict),
            "run": found.run.model_copy(update={"coverage": coverage}),
            "summary": found.summary.model_copy(update=counts),
            "suites": [suite],
            "comparison": Comparison.model_validate({**compared, "metrics": [], "cases": [], "policy": {}}),
        }
    )


@pytest.mark.parametrize(
    ("found", "decided", "resumes"),
    [
        (attempt("passed", exit_status=0), True, False),
        (attempt("failed", failed=1), True, False),
        (attempt("failed", failed=1, ended_by="time"), True, False),
        # Nothing was shown: a metric measured nothing, perhaps because its key is missing.
        (attempt("failed"), False, False),
        (attempt("error", exit_status=3, errors=1), False, False),
        (attempt("unproven", points=["confirmation"], errors=1), False, False),
        (attempt("unproven", points=["confirmation", "metric"]), False, False),
        (attempt("unproven", points=["scores"]), False, False),
        (attempt("unproven", points=["confirmation"]), False, True),
        (attempt("unproven", ended_by="budget", errors=1), False, True),
        (attempt("error", exit_status=143, ended_by="signal"), False, True),
        # During the confirmation.
        (attempt("error", exit_status=130), False, True),
        (results("a" * 40), False, False),
    ],
)
def test_what_was_shown_is_decided_and_what_was_ended_is_resumed(
    found: Results, decided: bool, resumes: bool
) -> None:
    assert (is_decided(found, Required(), ()), can_resume(found, Required(), ())) == (decided, resumes)


def test_quarantined_cases_show_nothing() -> None:
    found = attempt("failed", failed=1)
    [(_, case_)] = found.cases()
    assert not is_decided(found, Required(), {case_.id})
