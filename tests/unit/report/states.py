"""A support bot in each state that a pull request can be in, with realistic cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.unit.report import samples
from tests.unit.report.samples import SUITE, turn
from tests.unit.report.scenarios import SCENARIOS, Scenario, compared_run, gated, run_of

from agenteval.gate.verdict import GatePolicy
from agenteval.results.case import CaseResult, CaseStatus, Score, ToolCall, TurnResult
from agenteval.results.comparison import (
    AnswerChange,
    CaseMove,
    ComparedCase,
    ComparedResource,
    FailedOf,
    History,
    ScoreChange,
)
from agenteval.results.model import Acceptance, Difference, Results, RunUsage

_OLD_POLICY = "You can return a {} in 30 days of delivery, free of charge, and we refund the full price."
_NEW_POLICY = "You can return a {} within 14 days of delivery; the return postage is yours to pay."
_REASON = "contradicts the policy: returns are free for 30 days, the answer says 14 days at the customer's cost"
_DOWN = "503 Service Unavailable: upstream model overloaded (after 5 attempts)"
_UNREACHABLE = "cannot connect to http://127.0.0.1:8000/chat: connection refused"
_PAST = History(runs=3, iterations=9, pass_rate=1.0)


def _judged(value: float, reason: str | None = None) -> Score:
    passed = value >= 0.5
    return Score(
        id="helpful", kind="judge", score=value, threshold=0.5, passed=passed, status="scored", reason=reason
    )


def _tools(value: float, reason: str | None = None) -> Score:
    return Score(
        id="tools", kind="tools", score=value, threshold=1.0, passed=value == 1, status="scored", reason=reason
    )


def _case(name: str, *turns: TurnResult, status: CaseStatus = "passed", line: int = 11, tries: int = 3) -> CaseResult:
    iterations = [samples.iteration(*turns, status=status, index=index) for index in range(tries)]
    return samples.case(name, *iterations, status=status, line=line)


def _good(amount: int) -> list[CaseResult]:
    answer = "Our shop opens at 9 and closes at 17."
    return [
        _case(f"opening-{number}", turn("When do you open?", answer, answer, _judged(0.9)), line=100 + number)
        for number in range(amount)
    ]


def _refund(thing: str, line: int) -> CaseResult:
    question = f"How long do I have to return a {thing}?"
    call = ToolCall(name="search_help", args={"query": question, "top_k": 3})
    wrong = turn(
        question,
        _OLD_POLICY.format(thing),
        _NEW_POLICY.format(thing),
        samples.score("f1_score", 0.47, 0.3),
        _judged(0.2, _REASON),
        tools=[call],
    )
    return _case(f"refunds-{thing.replace(' ', '-')}", wrong, status="failed", line=line)


_CONVERSATION = (
    ("Please cancel order 4711.", "Order 4711 is cancelled.", "Order 4711 is cancelled."),
    (
        "And when do I get my money back?",
        "The full price of 189.00 EUR is refunded within 5 working days.",
        "Your order 4711 is still open, so there is nothing to refund. Shall I cancel it?",
    ),
    (
        "Send me that by mail.",
        "I have sent the confirmation to your mail address.",
        "I have sent a summary of order 4711 to your mail address.",
    ),
)


def _cancel() -> CaseResult:
    calls = [[ToolCall(name="find_order", args={"order": 4711})], [], [ToolCall(name="send_mail", args={"to": "me"})]]
    scores = [
        [_tools(0.0, "cancel_order was not called; called: find_order")],
        [_judged(0.1, "the answer contradicts the turn before")],
        [_judged(0.9)],
    ]
    turns = [
        turn(question, None, now, *scores[index], index=index, tools=calls[index])
        for index, (question, _, now) in enumerate(_CONVERSATION)
    ]
    return _case("cancel-then-refund", *turns, status="failed", line=497)


def _broke(
    case: CaseResult, before: Sequence[str], calls: Mapping[int, list[ToolCall]], **scores: float
) -> dict[str, Any]:
    turns = case.iterations[0].turns
    return {
        "change": "broke",
        "history": _PAST,
        "answers": [
            AnswerChange(
                turn=each.index, input=each.input, before=old, after=each.response,
                calls_before=calls.get(each.index, each.tool_calls), latency_before=800.0,
            )
            for each, old in zip(turns, before, strict=True)
        ],
        "metrics": [
            ScoreChange(id=score.id, before=scores.get(score.id, 0.9), after=score.score)
            for score in {score.id: score for each in turns for score in each.scores}.values()
        ],
    }  # fmt: skip


def broke() -> Scenario:
    """Three cases broke, two for one reason; others could not be run, are gone, flaky or new; it costs more."""
    desk, chair, cancel = _refund("standing desk", 11), _refund("office chair", 40), _cancel()
    down = [
        _case(f"shipping-{number}", turn("Where is it?", None, None, error=_DOWN), status="error", line=60 + number)
        for number in (2, 3)
    ]
    flaky = _case("warranty-webcam", turn("Warranty?", "2 years", "3 years", _judged(0.3)), status="failed", line=80)
    new = [_case(f"gift-card-{number}", turn("Gift?", "yes", "yes", _judged(1.0))) for number in range(1, 5)]
    cases = [desk, chair, cancel, *down, flaky, *new, *_good(20)]
    find, cancelled = (
        ToolCall(name="find_order", args={"order": 4711}),
        ToolCall(name="cancel_order", args={"order": 4711}),
    )
    changes: dict[str, dict[str, Any]] = {
        desk.id: _broke(desk, [_OLD_POLICY.format("standing desk")], {}, f1_score=0.98),
        chair.id: _broke(chair, [_OLD_POLICY.format("office chair")], {}, f1_score=0.98),
        cancel.id: _broke(cancel, [old for _, old, _ in _CONVERSATION], {0: [find, cancelled]}, tools=1.0),
        flaky.id: {"notes": ["flaky"], "history": History(runs=3, iterations=9, pass_rate=5 / 9)},
    }
    changes |= {case.id: {"change": "new", "status_before": None, "score_before": None} for case in new}
    changes |= {case.id: {"status_before": "passed", "tries_before": FailedOf(failed=0, of=9)} for case in down}
    resources = [
        ComparedResource(name="cost_usd", n=30, baseline=0.001, current=0.00162, change=0.62),
        ComparedResource(name="tokens", n=30, baseline=400, current=700, change=0.75),
        ComparedResource(name="latency_ms", n=30, baseline=900, current=1413, change=0.57),
    ]
    gone = [
        ComparedCase(
            id=f"{SUITE}::billing-{number}", name=f"billing-{number}", change="removed", status_before="passed",
            status_after=None, score_before=1.0, score_after=None, tries_before=FailedOf(failed=0, of=3),
        )
        for number in (2, 3)
    ]  # fmt: skip
    run = _named(run_of(cases, usage=RunUsage(input_tokens=9000, output_tokens=1000, cost_usd=1.29)))
    return Scenario(compared_run(run, "proven", changes, resources=resources, means=False, gone=gone))


def maybe() -> Scenario:
    """Three cases failed that passed before, and nothing is proven: the gate tolerates what is unproven."""
    answer = "I am not sure about that, sorry."
    cases = [
        _case(f"{name}", turn("Who pays?", "You do.", answer, _judged(0.1)), status="failed", line=20, tries=1)
        for name in ("refunds-webcam", "warranty-headset", "shipping-footrest")
    ]
    changes = {
        case.id: {
            "notes": ["suspicious"],
            "status_before": "passed",
            "history": History(runs=1, iterations=1, pass_rate=1.0),
            "answers": [AnswerChange(turn=0, input="Who pays?", before="You pay the postage.", after=answer)],
        }
        for case in cases
    }
    run = _named(run_of([*cases, *_good(17)], usage=RunUsage(cost_usd=0.26)))
    sample = compared_run(run, "unproven", changes)
    policy = GatePolicy(fail_on=frozenset({"failures", "regressions"}))
    return Scenario(gated(sample.results, policy))


def first() -> Scenario:
    """The first run: there is nothing to compare with."""
    mixed = _case(
        "warranty-webcam", turn("Warranty?", "2 years", "Ask us.", _judged(0.3, "does not answer")), tries=1
    )
    good = mixed.iterations[0].model_copy(update={"status": "passed", "index": 1})
    bad = mixed.iterations[0].model_copy(update={"status": "failed"})
    third = bad.model_copy(update={"index": 2})
    flaky = mixed.model_copy(update={"iterations": [bad, good, third], "status": "failed"})
    run = _named(run_of([_refund("standing desk", 11), _refund("office chair", 40), flaky, _cancel(), *_good(20)]))
    sample = gated(run)
    warning = "no results of main yet: looked at 12 runs of this workflow on 50 commits"
    return Scenario(replace(sample, warnings=(warning,)))


def rules() -> Scenario:
    """Everything passes by the rules of the base, and the change loosens them."""
    run = _named(run_of(_good(20)))
    differences = [
        Difference(kind="metric", cases=20, metric="helpful", setting="threshold", before="0.5", after="0.3",
                   effect="base", loosens=True),
        Difference(kind="edited", case=f"{SUITE}::opening-3", before="9 to 17", after="8 to 17", effect="base",
                   fingerprint="f"),
        Difference(kind="removed", case=f"{SUITE}::billing-2", before="passed", after=None, effect="unproven",
                   accepted_by=Acceptance(author="ada", reason="we stopped billing by fax")),
        Difference(kind="setting", setting="gate.fail_on", before="regressions, errors", after="errors",
                   effect="base", loosens=True),
    ]  # fmt: skip
    changed = run.model_copy(update={"run": run.run.model_copy(update={"integrity": differences})})
    return Scenario(compared_run(changed, "clear"))


def infrastructure() -> Scenario:
    """The agent cannot be reached at all."""
    lost = turn("When do you open?", "at 9", None, error=_UNREACHABLE).model_copy(update={"unavailable": True})
    cases = [_case(f"opening-{number}", lost, status="error", line=number, tries=1) for number in range(1, 13)]
    return Scenario(gated(_named(run_of(cases))))


def two_hundred() -> Scenario:
    """All cases give one wrong answer."""
    answer = "Model gpt-x is not available in your region."
    cases = [
        _case(f"q{number:03}", turn(f"Question {number}?", f"{number}", answer, samples.score("equality", 0.0)),
              status="failed", line=number + 7)
        for number in range(200)
    ]  # fmt: skip
    changes = {
        case.id: _broke(case, [f"The answer to question {number} is forty-two."], {}, equality=1.0)
        for number, case in enumerate(cases)
    }
    return Scenario(compared_run(_named(run_of([*cases, *_good(60)])), "proven", changes, means=False))


def accepted() -> Scenario:
    """Two cases broke, and somebody accepted that."""
    desk, chair = _refund("standing desk", 11), _refund("office chair", 40)
    texts = {desk.id: "standing desk", chair.id: "office chair"}
    changes = {
        case.id: _broke(case, [_OLD_POLICY.format(texts[case.id])], {}, f1_score=0.98)
        | {"change": "same", "status_before": "passed", "notes": ["accepted"]}
        for case in (desk, chair)
    }
    resources = [ComparedResource(name="latency_ms", n=22, baseline=900, current=585, change=-0.35)]
    run = _named(run_of([desk, chair, *_good(20)]))
    return Scenario(compared_run(run, "clear", changes, resources=resources))


def mean_of_one_answer() -> Scenario:
    """The mean fell because the agent gives one answer to every question."""
    answer = "Model gpt-x is not available in your region."
    cases = [
        _case(f"q{number:02}", turn(f"Question {number}?", f"{number}", answer, samples.score("equality", 0.0)),
              status="failed", line=number + 7)
        for number in range(30)
    ]  # fmt: skip
    changes = {
        case.id: _broke(case, [f"The answer to question {number} is 42."], {}, equality=1.0) | {"change": "same"}
        for number, case in enumerate(cases)
    }
    sample = compared_run(_named(run_of([*cases, *_good(10)])), "proven", changes)
    comparison = sample.results.comparison
    assert comparison is not None
    metrics = [
        metric.model_copy(
            update={
                "n": len(cases),
                "moved": [CaseMove(id=case.id, baseline=1.0, current=0.0) for case in cases],
            }
        )
        for metric in comparison.metrics
        if metric.id == "equality"
    ]
    changed = comparison.model_copy(update={"metrics": metrics})
    return Scenario(gated(sample.results.model_copy(update={"comparison": changed})))


def _named(run: Results) -> Results:
    suites = [suite.model_copy(update={"name": "support-bot"}) for suite in run.suites]
    return run.model_copy(update={"suites": suites})


STATES: Mapping[str, Callable[[], Scenario]] = {
    "broke": broke,
    "maybe": maybe,
    "first": first,
    "rules": rules,
    "infrastructure": infrastructure,
    "200-broke": two_hundred,
    "accepted": accepted,
    "one-answer": mean_of_one_answer,
}
EVERY: Mapping[str, Callable[[], Scenario]] = {**SCENARIOS, **STATES}
