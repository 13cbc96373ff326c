"""What an attempt of a pull request leaves for the next one."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.baselines import results

from agenteval.compare.memory import burden_of, can_resume, is_decided, next_burden, proven, with_burden
from agenteval.compare.regression.model import Burden, CaseFinding, Decision, Failures, MetricFinding
from agenteval.results.coverage import Coverage
from agenteval.results.memory import Memory
from agenteval.results.model import Results
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


@pytest.mark.parametrize(
    ("verdict", "expected"), [("passed", True), ("failed", True), ("unproven", False), ("error", False)]
)
def test_only_a_verdict_for_or_against_the_change_is_a_decision(verdict: Verdict, expected: bool) -> None:
    assert is_decided(gate(verdict)) == expected
    assert not is_decided(None)


def ended(verdict: Verdict, ended_by: str | None = None, errors: int = 0) -> Results:
    found = results("a" * 40)
    coverage = Coverage.model_validate({"cases": 1, "selected": 1, "finished": 1, "ended_by": ended_by})
    run = found.run.model_copy(update={"coverage": coverage})
    summary = found.summary.model_copy(update={"errors": errors})
    return found.model_copy(update={"gate": gate(verdict), "run": run, "summary": summary})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ended("passed"), False),
        (ended("failed", "time"), False),
        (ended("error", "signal"), True),
        (ended("unproven", "budget", errors=1), True),
        (ended("unproven"), True),
        (ended("error", errors=1), False),
    ],
)
def test_what_was_ended_is_resumed(found: Results, expected: bool) -> None:
    assert can_resume(found) == expected
