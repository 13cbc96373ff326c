"""Runs as they come, for golden comments and summaries: each with the place that links may lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.unit.report import samples
from tests.unit.report.samples import Sample

from agenteval.report.presentation import Site
from agenteval.report.view.view import GateView
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.comparison import (
    AnswerChange,
    BaselineInfo,
    ComparedCase,
    ComparedMetric,
    ComparedResource,
    Comparison,
    History,
    RunVerdict,
    ScoreChange,
)
from agenteval.results.model import Results

_PROVEN = (
    "{} fell: side by side with 89abcde it scored 50 points less (3 runs a side; at least 20 points, p = 0.002, "
    "needed ≤ 0.009)"
)
_POLICY: Mapping[str, Any] = {
    "name": "statistics",
    "confirm": "against-base",
    "baseline_runs": 5,
}


@dataclass(frozen=True)
class Scenario:
    """A run, and where it is shown."""

    sample: Sample
    site: Site = field(default_factory=lambda: Site(repository="acme/widgets"))


def green() -> Scenario:
    """Everything passed, as before."""
    return Scenario(_compared(samples.green(), "unchanged"))


def regressed() -> Scenario:
    """A number and a promise changed, with statistics behind the verdict; the time went up as well."""
    before = "Thanks for asking! You get 37.50 EUR back, and the money is on your account within 5 days."
    after = "Thanks for asking! You get 42.49 EUR back, and the money is on your account within 14 days."
    wrong = samples.failed_case(
        "Refund total",
        "37.50 within 5 days",
        after,
        samples.score(value=0.0, reason="The amount is wrong: the shipping fee is not paid back."),
        line=12,
    )
    cases = [wrong, samples.passed_case("Opening hours", "9 to 17", line=20)]
    changes = {
        wrong.id: {
            "change": "regressed",
            "history": History(runs=5, iterations=15, pass_rate=1.0),
            "metrics": [
                ScoreChange(
                    id="numeric",
                    before=1.0,
                    after=0.0,
                    passed_before=True,
                    passed_after=False,
                    reason="The amount is wrong: the shipping fee is not paid back.",
                )
            ],
            "answers": [AnswerChange(turn=0, input="What about Refund total?", before=before, after=after)],
        }
    }
    gate = GateView("failed", "1 case got worse", ("1 case got worse: Refund total",), ())
    resources = [
        ComparedResource(
            name="latency_ms", n=2, baseline=250.0, current=500.0, change=1.0, allowed=0.5, exceeded=True
        ),
        ComparedResource(
            name="cost_usd", n=2, baseline=0.001, current=0.0011, change=0.1, allowed=None, exceeded=False
        ),
    ]
    sample = Sample(_run(cases), gate)
    return Scenario(_compared(sample, "regressed", changes, resources=resources))


def improved() -> Scenario:
    """A case that failed passes; nothing else changed."""
    sample = samples.green()
    first = sample.results.suites[0].cases[0]
    better = ScoreChange(id="numeric", before=0.4, after=1.0, passed_before=False, passed_after=True)
    changes = {first.id: {"change": "improved", "status_before": "failed", "score_before": 0.4, "metrics": [better]}}
    return Scenario(_compared(sample, "improved", changes))


def unproven() -> Scenario:
    """A case that passed before fails, and the confirmation run could not be made."""
    cases = [
        samples.failed_case("Warranty", "2 years", "3 years", line=60),
        samples.passed_case("Opening hours", "9 to 17"),
    ]
    history = History(runs=2, iterations=6, pass_rate=5 / 6)
    changes = {
        cases[0].id: {"notes": ["suspect"], "status_before": "passed", "score_before": 0.9, "history": history}
    }
    gate = GateView(
        "unproven",
        "a suspected regression was not confirmed (the LLM budget is exhausted)",
        ("1 of 2 cases passed",),
        (),
    )
    return Scenario(_compared(Sample(_run(cases), gate), "unproven", changes))


def no_baseline() -> Scenario:
    """There is nothing to compare with, and the report says why."""
    sample = samples.green()
    warning = "nothing was compared: there is no artifact agenteval of a successful run on main"
    return Scenario(replace(sample, gate=replace(sample.gate, warnings=(warning,))))


def all_errors() -> Scenario:
    """The agent cannot be reached at all."""
    error = "cannot reach http://localhost:8000/answer: connection refused"
    cases = [
        samples.case(
            f"Order {number}",
            samples.iteration(samples.turn("Where is it?", "here", None, error=error), status="error"),
            status="error",
            line=number,
        )
        for number in range(1, 13)
    ]
    gate = GateView("failed", "12 errors", ("12 of 12 cases could not be evaluated",), ())
    return Scenario(Sample(_run(cases), gate))


def many() -> Scenario:
    """5,000 cases, of which 400 got worse and 100 fail as before."""
    wrong = [samples.failed_case(f"Case {number}", "42", f"{number}", line=number) for number in range(1, 501)]
    right = [samples.passed_case(f"Case {number}", line=number) for number in range(501, 5_001)]
    changes: dict[str, dict[str, Any]] = {
        case.id: {
            "change": "regressed",
            "metrics": [ScoreChange(id="numeric", before=1.0, after=0.0, passed_before=True, passed_after=False)],
            "answers": [AnswerChange(turn=0, input="?", before="The answer is 42.", after=f"The answer is {n}.")],
        }
        for n, case in enumerate(wrong[:400])
    }
    known: dict[str, dict[str, Any]] = {
        case.id: {"status_before": "failed", "score_before": 0.0} for case in wrong[400:]
    }
    gate = GateView("failed", "400 cases got worse", ("400 cases got worse: Case 1, Case 2 and 398 more",), ())
    return Scenario(_compared(Sample(_run([*wrong, *right]), gate), "regressed", changes | known))


def empty() -> Scenario:
    """A suite without a single case."""
    return Scenario(Sample(_run([]), GateView("passed", "nothing was evaluated", (), ("the suite has no case",))))


def fork() -> Scenario:
    """Results that a stranger's workflow made: they name another repository, and nothing leads there."""
    sample = regressed().sample
    run = sample.results.run.model_copy(update={"repository": "evil/widgets", "workflow_run_id": "666"})
    return Scenario(replace(sample, results=sample.results.model_copy(update={"run": run})))


def multi_turn() -> Scenario:
    """A conversation of three turns, repeated, that goes wrong in its second."""
    questions = ("I want to return my order.", "Number 1009, please.", "Thanks!")
    answers = ("Which order is it?", "I cannot help with that.", "You are welcome.")
    expected = ("Which order?", "The label for order 1009 was sent to you.", None)
    scores = (0.8, 0.1, 0.9)
    turns = [
        samples.turn(question, wanted, answer, samples.score("f1_score", value, 0.5), index=index)
        for index, (question, wanted, answer, value) in enumerate(
            zip(questions, expected, answers, scores, strict=True)
        )
    ]
    case = samples.case(
        "Return label",
        *(samples.iteration(*turns, status="failed", index=index) for index in range(3)),
        status="failed",
        line=31,
    )
    gate = GateView("failed", "1 case failed", ("1 case failed: Return label",), ())
    return Scenario(Sample(_run([case]), gate))


def unicode() -> Scenario:
    """Names and answers from right to left, in scripts without blanks, and with combined emoji."""
    texts = {
        "שעות פתיחה": ("פתוח מ-9 עד 17 בימי חול", "פתוח מ-8 עד 17 בימי חול"),
        "返金の合計": ("返金は37.50ユーロです。", "返金は42.49ユーロです。"),
        "ساعات العمل": ("نفتح من ٩ إلى ١٧ كل يوم", "نفتح من ٨ إلى ١٧ كل يوم"),
        "Zoë 👩‍👩‍👧 naïve": ("It’s 20 °C — fine 👍🏽 today", "It’s 30 °C — fine 👍🏿 today"),
    }
    cases = [samples.failed_case(name, before, after, line=3) for name, (before, after) in texts.items()]
    changes = {
        case.id: {
            "change": "regressed",
            "metrics": [
                ScoreChange(
                    id="numeric", before=1.0, after=0.0, passed_before=True, passed_after=False, reason=case.name
                )
            ],
            "answers": [AnswerChange(turn=0, input=case.name, before=before, after=after)],
        }
        for case, (before, after) in zip(cases, texts.values(), strict=True)
    }
    gate = GateView("failed", "4 cases got worse", ("4 cases got worse",), ())
    return Scenario(_compared(Sample(_run(cases), gate), "regressed", changes))


SCENARIOS: Mapping[str, Callable[[], Scenario]] = {
    "all-green": green,
    "statistics": regressed,
    "improved": improved,
    "unproven": unproven,
    "no-baseline": no_baseline,
    "all-errors": all_errors,
    "5000-cases": many,
    "empty-suite": empty,
    "fork": fork,
    "multi-turn": multi_turn,
    "unicode": unicode,
}


def _run(cases: list[CaseResult]) -> Results:
    results = samples.results(samples.suite(*cases))
    run = results.run.model_copy(update={"workflow_run_id": "7001"})
    return results.model_copy(update={"run": run})


def _compared(
    sample: Sample,
    verdict: RunVerdict,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    resources: list[ComparedResource] | None = None,
) -> Sample:
    """The sample with a comparison in which everything but the changes is as before."""
    changed = changes or {}
    comparison = Comparison(
        baseline=BaselineInfo(
            commit="89abcdef0123456789abcdef0123456789abcdef",
            ref="main",
            run_id="1017",
            created_at="2026-11-18T09:00:00Z",
            distance=2,
        ),
        verdict=verdict,
        metrics=[_metric(name, metric.n, verdict) for name, metric in sample.results.summary.metrics.items()],
        cases=[_case(case, changed.get(case.id, {})) for _, case in sample.results.cases()],
        resources=resources or [],
        stage="head-to-head" if verdict == "regressed" else "screen",
        policy=dict(_POLICY),
    )
    return replace(sample, results=sample.results.model_copy(update={"comparison": comparison}))


def _case(case: CaseResult, change: Mapping[str, Any]) -> ComparedCase:
    status: CaseStatus = "passed" if change.get("change") == "regressed" else case.status
    values: dict[str, Any] = {
        "id": case.id,
        "name": case.name,
        "change": "unchanged",
        "status_before": status,
        "status_after": case.status,
        "score_before": 1.0 if status == "passed" else case.score,
        "score_after": case.score,
    }
    return ComparedCase(**values | dict(change))


def _metric(name: str, n: int, verdict: RunVerdict) -> ComparedMetric:
    worse = verdict == "regressed"
    proof = {"interval": (-0.8, -0.2), "p": 0.002, "limit": 0.009, "runs_a_side": 3} if worse else {"bound": 0.04}
    return ComparedMetric(
        id=name,
        n=n,
        baseline=1.0,
        current=0.5 if worse else 1.0,
        difference=-0.5 if worse else 0.0,
        verdict=verdict,
        reason=_PROVEN.format(name) if worse else f"{name} 100.0, base 100.0 (5 runs)",
        gating=True,
        runs=5,
        iterations=3,
        detectable_drop=0.06,
        **proof,
    )
