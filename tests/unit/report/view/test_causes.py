"""Cases with one cause are one group, in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import runs
from tests.unit.report import samples

from agenteval.gate.failures import Required
from agenteval.report.cases import KINDS, Kind, Kinds, Wrong
from agenteval.report.causes import CaseChange, Cause, alike, by_cause, causes_of
from agenteval.results.case import CaseResult, Score, TurnResult
from agenteval.results.comparison import (
    BaselineInfo,
    CaseMove,
    ComparedCase,
    ComparedMetric,
    Comparison,
    FailedOf,
    History,
    Proof,
)
from agenteval.results.model import Results


def wrong(id_: str, reason: str | None = None, kind: str = "standard", **more: Any) -> Score:
    return Score(id=id_, kind=kind, score=0.2, threshold=0.5, passed=False, status="scored", reason=reason, **more)


def unscored(reason: str) -> Score:
    return Score(id="polite", kind="standard", score=None, passed=None, status="skipped", reason=reason)


def failed(name: str, *turns: TurnResult, status: Any = "failed") -> CaseResult:
    whole = runs.case(name, status)
    return whole.model_copy(update={"iterations": [runs.iteration(status, *turns)]})


def told(name: str, reason: str, response: str | None = None, metric: str = "polite") -> CaseResult:
    return failed(name, runs.turn(wrong(metric, reason), response=response or f"answer of {name}"))


def errored(name: str, error: str) -> CaseResult:
    return failed(name, runs.turn(response=None, error=error), status="error")


def compared(case: CaseResult, **more: Any) -> ComparedCase:
    values: dict[str, Any] = {
        "id": case.id,
        "name": case.name,
        "change": "broke",
        "status_before": "passed",
        "status_after": case.status,
        "score_before": 1.0,
        "score_after": 0.0,
    }
    return ComparedCase(**values | more)


def run_of(cases: Sequence[CaseResult], pairs: Iterable[ComparedCase] = (), **more: Any) -> Results:
    comparison = Comparison(
        baseline=BaselineInfo(run_id="b", created_at="2026-01-01T00:00:00Z"),
        state="proven",
        headline="broke",
        cases=list(pairs),
        **{"metrics": [], **more},
    )
    return runs.results(*cases).model_copy(update={"comparison": comparison})


def names(causes: Iterable[Cause]) -> list[list[str]]:
    return [[found.name for found in cause.cases] for cause in causes]


def test_what_is_one_cause() -> None:
    answer = "Model gpt-x is not available."
    table: dict[str, tuple[list[CaseResult], list[list[str]]]] = {
        "the same error, but for numbers, quotes, ids and addresses": (
            [
                errored("a", "connect to http://127.0.0.1:9001/x failed for 'first' (after 3 attempts)"),
                errored("b", "connect to http://127.0.0.1:80/y failed for 'second one'"),
                errored("c", "request req_011CSHoEeqs5 timed out"),
                errored("d", "request req_92XkkqPqMd1 timed out"),
                errored("e", "out of memory"),
            ],
            [["a", "b"], ["c", "d"], ["e"]],
        ),
        "three times the same answer, whatever the metrics say": (
            [
                told("a", "cold", answer),
                told("b", "off topic", answer),
                told("c", "rude", answer, "f1"),
                told("d", "cold"),
            ],
            [["a", "b", "c"], ["d"]],
        ),
        "skipped for one reason, although some give the same answer": (
            [
                *(failed(name, runs.turn(unscored("budget"), response=answer), status="skipped") for name in "abc"),
                failed("d", runs.turn(unscored("budget"), response="other"), status="skipped"),
                failed("e", runs.turn(unscored("no ground_truth"), response=answer), status="skipped"),
            ],
            [["a", "b", "c", "d"], ["e"]],
        ),
        "twice the same answer is no cause": (
            [told("a", "cold", answer), told("b", "off topic", answer)],
            [["a"], ["b"]],
        ),
        "the same reason of the same metric": (
            [told("a", "expected 42, found 7"), told("b", "expected 1,000.5, found 0"), told("c", "expected words")],
            [["a", "b"], ["c"]],
        ),
        "another metric is another cause": ([told("a", "cold"), told("b", "cold", metric="kind")], [["a"], ["b"]]),
        "another turn is another cause": (
            [
                failed("a", runs.turn(wrong("polite", "cold")), runs.turn(index=1)),
                failed("b", runs.turn(runs.score()), runs.turn(wrong("polite", "cold"), index=1)),
            ],
            [["a"], ["b"]],
        ),
        "an apostrophe begins no quote": (
            [told("a", "it doesn't greet and can't end"), told("b", "it doesn't end and can't greet")],
            [["a"], ["b"]],
        ),
    }  # fmt: skip
    wrong_rows = {
        title: names(causes_of(runs.results(*cases)))
        for title, (cases, expected) in table.items()
        if names(causes_of(runs.results(*cases))) != expected
    }
    assert not wrong_rows


def test_what_went_wrong_first_is_said() -> None:
    tools = wrong("tools", "cancel_order was not called; called: find_order", "tools")
    later = runs.turn(wrong("polite", "cold", "judge"), index=1)
    table: dict[str, tuple[CaseResult, str]] = {
        "the first wrong turn, not a later one": (
            failed("a", runs.turn(tools, response="same"), later),
            "turn 1: cancel_order was not called; called: find_order",
        ),
        "words of a judge before words about figures": (
            failed("a", runs.turn(wrong("numeric", "expected 1, found 2"), wrong("polite", "cold", "judge"))),
            "cold",
        ),
        "words before bare figures": (
            failed("a", runs.turn(wrong("f1"), wrong("numeric", "expected 1"))),
            "expected 1",
        ),
        "figures if there is nothing else": (failed("a", runs.turn(wrong("f1"))), "f1 0.20 < 0.50"),
        "the agent's error before scores": (
            failed("a", runs.turn(wrong("polite", "cold"), error="crashed (after 5 attempts)")),
            "crashed",
        ),
        "an informational metric that broke is not what failed": (
            failed("a", runs.turn(runs.broken("info", gating=False)), later),
            "turn 2: cold",
        ),
        "a judge that broke": (
            failed("a", runs.turn(runs.broken("polite")), status="error"),
            "polite: boom",
        ),
    }  # fmt: skip
    shown = {title: causes_of(runs.results(case))[0].text for title, (case, _) in table.items()}
    assert shown == {title: expected for title, (_, expected) in table.items()}


def test_every_kind_is_told_apart() -> None:
    bad, good = told("x", "cold"), runs.case("x")
    error, skipped = errored("x", "down"), runs.case("x", "skipped")
    metric = ComparedMetric(
        id="polite", n=8, baseline=1.0, current=0.4, difference=-0.6, state="proven",
        moved=[CaseMove(id=bad.id, baseline=1.0, current=0.2)],
    )  # fmt: skip
    table: list[tuple[Kind | None, CaseResult, dict[str, Any] | None]] = [
        ("broke", bad, {}),
        ("broke", error, {}),
        ("failed", bad, None),
        ("failed", bad, {"change": "new", "status_before": None}),
        ("failed", bad, {"change": "changed"}),
        ("cleared", bad, {"change": "same", "status_before": "error"}),
        ("error", error, None),
        ("error", error, {"change": "same", "status_before": "error"}),
        ("suspicious", bad, {"change": "same", "notes": ["suspicious", "flaky"]}),
        ("cleared", bad, {"change": "same"}),
        ("suspicious", good, {"change": "same", "notes": ["suspicious"]}),
        ("failed", bad, {"change": "same", "status_before": "skipped"}),
        ("cleared", bad, {"change": "same", "status_before": "failed", "notes": ["flaky"]}),
        ("known", bad, {"change": "same", "status_before": "failed"}),
        ("quarantined", bad, {"notes": ["quarantined"]}),
        ("accepted", bad, {"notes": ["accepted"]}),
        ("skipped", skipped, {"change": "same"}),
        ("changed", good, {"change": "changed"}),
        ("repaired", good, {"change": "repaired", "status_before": "failed"}),
        ("new", good, {"change": "new", "status_before": None}),
        (None, good, {"change": "same", "notes": ["flaky"]}),
        (None, good, None),
    ]
    found = []
    for _, case, more in table:
        pairs = [] if more is None else [compared(case, **more)]
        found.append(next((cause.kind for cause in causes_of(run_of([case], pairs))), None))
    assert found == [kind for kind, _, _ in table]
    assert Kinds(frozenset({bad.id})).kind(bad, None) == "quarantined"
    unmoved = compared(bad, change="same")
    assert [cause.kind for cause in causes_of(run_of([bad], [unmoved], metrics=[metric]))] == ["fell"]
    gone = [compared(bad, change="removed", status_before=status) for status in ("passed", "failed")]
    assert [causes_of(run_of([], [case]))[0].kind for case in gone] == ["removed", "gone"]


def test_tries_are_those_that_ran_side_by_side_or_else_of_the_earlier_runs() -> None:
    first, second = told("a", "cold"), told("b", "cold")
    history = History(runs=3, iterations=9, pass_rate=8 / 9)
    proof = Proof(
        case=first.id, metric="polite", difference=-0.9, p=0.001, limit=0.017, failed=9, base_failed=1,
        pr=[0.0] * 9, base=[0.0] + [1.0] * 8, proven=True,
    )  # fmt: skip
    weaker = proof.model_copy(update={"metric": "f1", "proven": False})
    pairs = [compared(first, history=history), compared(second, history=history)]
    (cause,) = causes_of(run_of([first, second], pairs, proofs=[weaker, proof]))
    assert [(str(found.before), str(found.now)) for found in cause.cases] == [("8/9", "0/9"), ("8/9", "0/1")]
    assert (cause.before, cause.now) == ("8/9", "0/1 to 0/9")
    assert causes_of(run_of([first, second]))[0].now == "0/1 each"
    assert causes_of(run_of([first]))[0].before == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("expected 42, found 1,000.50", "expected #, found #"),
        ('no "first order" in `x y`, “z”', "no # in #, #"),
        ("see https://a.example/b?c=1 or ops@a.example", "see # or #"),
        ("at 0x7ffde42 of 123e4567-e89b-12d3-a456-426614174000", "at # of #"),
        ("nothing   varies\nhere", "nothing varies here"),
    ],
)
def test_what_varies_is_replaced(text: str, expected: str) -> None:
    assert alike(text) == expected


_WRONGS = st.none() | st.builds(
    Wrong,
    st.sampled_from(["agent", "polite", "f1"]),
    st.sampled_from(["expected 1", "expected 2", "cold", ""]),
    st.none() | st.integers(1, 2),
    st.booleans(),
)
_FINDINGS = st.lists(
    st.builds(
        CaseChange,
        id=st.uuids().map(str),
        name=st.text(max_size=3),
        kind=st.sampled_from(get_args(Kind)),
        wrong=_WRONGS,
        before=st.none() | st.builds(FailedOf, failed=st.integers(0, 3), of=st.just(3)),
        answer=st.just("answer"),
        answer_hash=st.sampled_from(["", "one", "two"]),
        fell_with=st.sampled_from(["f1", "bleu"]),
    ),
    unique_by=lambda found: found.id,
)


@given(_FINDINGS, st.randoms())
def test_causes_are_a_partition_that_no_order_changes(findings: list[CaseChange], random: Any) -> None:
    shuffled = random.sample(findings, len(findings))
    one, other = (
        {frozenset(found.id for found in cause.cases) for cause in by_cause(order)} for order in (findings, shuffled)
    )
    assert one == other
    assert sorted(id_ for group in one for id_ in group) == sorted(found.id for found in findings)
    causes = by_cause(findings)
    order = list(KINDS)
    places = [(order.index(cause.kind), not cause.is_common, -len(cause.cases)) for cause in causes]
    assert places == sorted(places)
    assert all({found.kind for found in cause.cases} == {cause.kind} for cause in causes)


def test_a_case_that_must_pass_stands_in_the_table_although_a_mean_fell() -> None:
    case = samples.failed_case("late", "one", "two")
    fallen = {case.id: "f1_score"}
    assert Kinds(fallen=fallen).kind(case, None) == "fell"
    assert Kinds(fallen=fallen, required=Required(patterns=("la*",))).kind(case, None) == "failed"
    renamed = Required(patterns=("old",), base_names={case.id: ("agent.yaml::old", "old")})
    assert Required(patterns=renamed.texts).names(case)
