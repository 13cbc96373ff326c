"""Runs as they come, for golden comments and summaries: each with the place that links may lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.unit.report import samples
from tests.unit.report.samples import Sample

from agenteval.gate.proof import GateOutcome, GateSuspicion, Test
from agenteval.gate.rows import proofs_of
from agenteval.gate.verdict import GatePolicy, decide_gate, rules_of
from agenteval.gate.words import Telling, headline, sentences
from agenteval.report.facts import Report
from agenteval.report.parts import Site
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.comparison import (
    AnswerChange,
    BaselineInfo,
    ComparedCase,
    ComparedMetric,
    ComparedResource,
    Comparison,
    History,
    ScoreChange,
    State,
)
from agenteval.results.model import Results, RunUsage
from agenteval.results.verdict import Unproven

_BASE = "89abcdef0123456789abcdef0123456789abcdef"
_RUNS = 5
_BUDGET = "raise llm.max_calls or llm.max_cost_usd in agenteval.yaml"


@dataclass(frozen=True)
class Scenario:
    """A run, and where it is shown."""

    sample: Sample
    site: Site = field(default_factory=lambda: Site(repository="acme/widgets"))

    @property
    def report(self) -> Report:
        """What every report shows of it."""
        return self.sample.presented(site=self.site)


def green() -> Scenario:
    """Everything passed, as before."""
    return Scenario(compared_run(samples.green().results, "clear"))


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
            "change": "broke",
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
    resources = [
        ComparedResource(name="latency_ms", n=2, baseline=250.0, current=500.0, change=1.0),
        ComparedResource(name="cost_usd", n=2, baseline=0.001, current=0.0011, change=0.1),
    ]
    return Scenario(compared_run(run_of(cases), "proven", changes, resources=resources))


def improved() -> Scenario:
    """A case that failed passes; nothing else changed."""
    run = samples.green().results
    first = run.suites[0].cases[0]
    better = ScoreChange(id="numeric", before=0.4, after=1.0, passed_before=False, passed_after=True)
    changes = {first.id: {"change": "repaired", "status_before": "failed", "score_before": 0.4, "metrics": [better]}}
    return Scenario(compared_run(run, "clear", changes))


def unproven() -> Scenario:
    """A case that passed before fails, and the passes side by side could not be made."""
    cases = [
        samples.failed_case("Warranty", "2 years", "3 years", line=60),
        samples.passed_case("Opening hours", "9 to 17"),
    ]
    history = History(runs=2, iterations=6, pass_rate=5 / 6)
    changes = {
        cases[0].id: {"notes": ["suspicious"], "status_before": "passed", "score_before": 0.9, "history": history}
    }
    return Scenario(compared_run(run_of(cases), "unproven", changes))


def no_baseline() -> Scenario:
    """There is nothing to compare with, and the report says why."""
    sample = samples.green()
    warning = "nothing was compared: there is no artifact agenteval of a successful run on main"
    return Scenario(replace(sample, warnings=(warning,)))


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
    gate = samples.closed("failed", "12 errors", ("12 of 12 cases could not be run",))
    return Scenario(Sample(run_of(cases), gate))


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
            "change": "broke",
            "metrics": [
                ScoreChange(
                    id="numeric", before=1.0, after=0.0, passed_before=True, passed_after=False, reason=case.name
                )
            ],
            "answers": [AnswerChange(turn=0, input=case.name, before=before, after=after)],
        }
        for case, (before, after) in zip(cases, texts.values(), strict=True)
    }
    return Scenario(compared_run(run_of(cases), "proven", changes))


def mean() -> Scenario:
    """The mean is proven lower side by side, and no single case is."""
    return Scenario(compared_run(samples.green().results, "proven"))


SCENARIOS: Mapping[str, Callable[[], Scenario]] = {
    "all-green": green,
    "statistics": regressed,
    "improved": improved,
    "unproven": unproven,
    "no-baseline": no_baseline,
    "all-errors": all_errors,
    "unicode": unicode,
    "mean": mean,
}


def run_of(cases: list[CaseResult], usage: RunUsage | None = None) -> Results:
    """A run of one suite on GitHub."""
    results = samples.results(samples.suite(*cases), usage=usage or RunUsage())
    run = results.run.model_copy(update={"workflow_run_id": "7001"})
    return results.model_copy(update={"run": run})


def gated(run: Results, policy: GatePolicy | None = None) -> Sample:
    """A run with the decision of the gate."""
    rules = policy or GatePolicy()
    gate = decide_gate(run, rules).model_copy(update={"rules": rules_of(rules, ())})
    decided = run.model_copy(update={"gate": gate})
    return Sample(decided, gate)


def compared_run(
    run: Results,
    word: State,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    resources: list[ComparedResource] | None = None,
    *,
    means: bool = True,
    gone: Sequence[ComparedCase] = (),
) -> Sample:
    """The run with a comparison in which everything but the changes is as before.

    ``means``: whether a regression is proven by the means as well. ``gone``: removed cases.
    """
    changed = changes or {}
    out = _outcome(run, word, changed, means=means)
    told = Telling(
        {case.id: case.name for _, case in run.cases()},
        "main",
        _BASE,
        lower=dict.fromkeys(run.summary.metrics, -0.5),
        cases=sum(changed.get(case.id, {}).get("change") != "new" for _, case in run.cases()),
        drop=0.06,
    )
    text, certain = headline(out, told), sentences(out, told)
    points = [Unproven(what="proof", text=text, details=tuple(certain), mended_by="outside")]
    comparison = Comparison(
        baseline=BaselineInfo(commit=_BASE, ref="main", run_id="1017", created_at="2026-11-18T09:00:00Z", distance=2),
        state=word,
        stage=out.stage,
        headline=text,
        sentences=certain,
        unproven=points if word == "unproven" else [],
        metrics=[_metric(name, metric.n, word, out) for name, metric in run.summary.metrics.items()],
        cases=[*(_case(case, changed.get(case.id, {})) for _, case in run.cases()), *gone],
        base_sha=_BASE if word in {"proven", "cleared"} else None,
        baseline_runs=[f"run-{number}" for number in range(_RUNS)],
        proofs=proofs_of(out),
        resources=resources or [],
    )
    return gated(run.model_copy(update={"comparison": comparison}))


def _outcome(run: Results, word: State, changes: Mapping[str, Mapping[str, Any]], *, means: bool) -> GateOutcome:
    """An outcome with this word: a regression by the means, and by the changed cases."""
    marked = [key for key, change in changes.items() if "suspicious" in change.get("notes", ())]
    broke = [key for key, change in changes.items() if change.get("change") == "broke"]
    names = list(run.summary.metrics) if means and word in {"proven", "cleared"} else []
    here, there = (0.5,) * 16, (1.0 if word == "proven" else 0.51,) * 16
    tests = [Test(name, None, here[0] - there[0], 0.002, 0.017, here, there, -0.8, -0.2) for name in names]
    tests += [
        Test("numeric", key, -1.0, 0.0001, 0.006, (0.0,) * 8, (1.0,) * 8, failed=8, base_failed=0) for key in broke
    ]
    return GateOutcome(
        word,
        f"the LLM budget is exhausted; {_BUDGET}" if word == "unproven" else "",
        suspicions=[
            *(GateSuspicion(name, None, 0.01) for name in names),
            *(GateSuspicion("numeric", key, 0.01) for key in [*marked, *broke]),
        ],
        tests=[replace(test, proven=word == "proven") for test in tests],
        stage="beside" if word in {"proven", "cleared"} else "first",
    )


def _metric(name: str, n: int, word: State, out: GateOutcome) -> ComparedMetric:
    test = next((test for test in out.tests if test.metric == name and test.case is None), None)
    shown: dict[str, Any] = {"id": name, "n": n, "runs": _RUNS, "iterations": 3, "detectable_drop": 0.06}
    if test is None:
        return ComparedMetric(**shown, baseline=1.0, current=1.0, difference=0.0, state="clear")
    proven = {"baseline": 1.0, "current": 0.5, "difference": -0.5, "low": -0.8, "high": -0.2}
    return ComparedMetric(**shown, **proven, p=test.p, limit=test.limit, passes=16, state=word)


def _case(case: CaseResult, change: Mapping[str, Any]) -> ComparedCase:
    status: CaseStatus = "passed" if change.get("change") == "broke" else case.status
    values: dict[str, Any] = {
        "id": case.id,
        "name": case.name,
        "change": "same",
        "status_before": status,
        "status_after": case.status,
        "score_before": 1.0 if status == "passed" else case.score,
        "score_after": case.score,
    }
    return ComparedCase(**values | dict(change))
