"""Runs as they come, for golden comments and summaries: each with the place that links may lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.unit import runs as unit_runs
from tests.unit.compare import gate_runs
from tests.unit.report import samples
from tests.unit.report.samples import Sample

from agenteval.compare.compared import Compared
from agenteval.compare.gate import GatePolicy, decide_gate, rules_of
from agenteval.compare.regression.model import (
    CaseFinding,
    Decision,
    Failures,
    FinerBound,
    MetricFinding,
    Stage,
    Unavailable,
)
from agenteval.compare.statistical import Decided, compared_metric, proof_of, unproven_points
from agenteval.compare.words import words_of
from agenteval.report.report import Site
from agenteval.report.view.view import GateView, view_of
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.comparison import (
    AnswerChange,
    BaselineInfo,
    ComparedCase,
    ComparedResource,
    Comparison,
    History,
    RunVerdict,
    ScoreChange,
)
from agenteval.results.model import Results, RunUsage

_BASE = "89abcdef0123456789abcdef0123456789abcdef"
_RUNS = 5


@dataclass(frozen=True)
class Scenario:
    """A run, and where it is shown."""

    sample: Sample
    site: Site = field(default_factory=lambda: Site(repository="acme/widgets"))


def green() -> Scenario:
    """Everything passed, as before."""
    return Scenario(compared_run(samples.green().results, "unchanged"))


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
    resources = [
        ComparedResource(
            name="latency_ms", n=2, baseline=250.0, current=500.0, change=1.0, allowed=0.5, exceeded=True
        ),
        ComparedResource(
            name="cost_usd", n=2, baseline=0.001, current=0.0011, change=0.1, allowed=None, exceeded=False
        ),
    ]
    return Scenario(compared_run(run_of(cases), "regressed", changes, resources=resources))


def improved() -> Scenario:
    """A case that failed passes; nothing else changed."""
    run = samples.green().results
    first = run.suites[0].cases[0]
    better = ScoreChange(id="numeric", before=0.4, after=1.0, passed_before=False, passed_after=True)
    changes = {first.id: {"change": "improved", "status_before": "failed", "score_before": 0.4, "metrics": [better]}}
    return Scenario(compared_run(run, "improved", changes))


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
    return Scenario(compared_run(run_of(cases), "unproven", changes))


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
    gate = samples.closed("failed", "12 errors", ("12 of 12 cases could not be run",))
    return Scenario(Sample(run_of(cases), gate))


def many() -> Scenario:
    """5,000 cases, of which 400 broke and 100 fail as before."""
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
    return Scenario(compared_run(run_of([*wrong, *right]), "regressed", changes | known))


def empty() -> Scenario:
    """A suite without a single case."""
    return Scenario(Sample(run_of([]), GateView("passed", "nothing was evaluated", (), ("the suite has no case",))))


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
    gate = samples.closed("failed", "1 case failed", ("1 case failed: Return label",))
    return Scenario(Sample(run_of([case]), gate))


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
    return Scenario(compared_run(run_of(cases), "regressed", changes))


def mean() -> Scenario:
    """The mean is proven lower side by side, and no single case is."""
    names = gate_runs.names(24)
    return _decided(gate_runs.weaker_in(24), gate_runs.Agents(weak={"current": names}))


def cleared() -> Scenario:
    """The mean looked lower, and does so on both sides."""
    names = gate_runs.names(24)
    return _decided(gate_runs.weaker_in(24), gate_runs.Agents(weak={"current": names, "control": names}))


def broken_case() -> Scenario:
    """One case is proven broken; its name contains what the outputs must not read as markup."""
    return _decided(gate_runs.worse_in(1), gate_runs.Agents({"current": gate_runs.names(1)}), {"c00": _HOSTILE})


_HOSTILE = "`night` <b>return</b> @team | #1"

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
    "mean": mean,
    "cleared": cleared,
    "broken-case": broken_case,
}
#: Those whose whole texts are in no golden file: ``tests/scenarios/outlets`` shows runs like them.
SHOWN_BY_SCENARIOS = frozenset({"no-baseline", "all-errors", "multi-turn", "unicode"})


def run_of(cases: list[CaseResult], usage: RunUsage | None = None) -> Results:
    """A run of one suite on GitHub."""
    results = samples.results(samples.suite(*cases), usage=usage or RunUsage())
    run = results.run.model_copy(update={"workflow_run_id": "7001"})
    return results.model_copy(update={"run": run})


def _decided(cases: list[CaseResult], agents: gate_runs.Agents, names: Mapping[str, str] | None = None) -> Scenario:
    """A run, and the real decision about it with the runs of some agents."""
    renamed = names or {}
    shown = [case.model_copy(update={"name": renamed.get(case.name, case.name)}) for case in cases]
    run = unit_runs.results(*shown)
    deciding = gate_runs.comparer(run, gate_runs.PAST)
    comparison = deciding.concluded(replace(deciding.prove(agents.answer), control=_BASE))
    return Scenario(gated(run.model_copy(update={"comparison": comparison})))


def gated(run: Results, policy: GatePolicy | None = None) -> Sample:
    """A run with the decision of the gate."""
    rules = policy or GatePolicy()
    gate = decide_gate(run, rules).model_copy(update={"rules": rules_of(rules, ())})
    decided = run.model_copy(update={"gate": gate})
    return Sample(decided, view_of(gate, decided))


def compared_run(
    run: Results,
    verdict: RunVerdict,
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
    decision = _decision(run, verdict, changed, means=means)
    words = Compared({case.id: case.name for _, case in run.cases()}, _BASE, _RUNS)
    comparison = Comparison(
        baseline=BaselineInfo(commit=_BASE, ref="main", run_id="1017", created_at="2026-11-18T09:00:00Z", distance=2),
        verdict=verdict,
        unproven=unproven_points(decision, words),
        metrics=[compared_metric(decision, finding, words, 3) for finding in decision.metrics],
        cases=[*(_case(case, changed.get(case.id, {})) for _, case in run.cases()), *gone],
        **proof_of(Decided(decision, control=_BASE)),
        policy={
            "name": "statistics",
            "confirm": "against-base",
            "baseline_runs": _RUNS,
            **words_of(decision, words),
            "resources": [item.model_dump() for item in resources or []],
        },
    )
    return gated(run.model_copy(update={"comparison": comparison}))


def _decision(
    run: Results, verdict: RunVerdict, changes: Mapping[str, Mapping[str, Any]], *, means: bool
) -> Decision:
    """A decision with this verdict: a regression by the means, everything else by the changed cases."""
    stage: Stage = "head-to-head" if verdict == "regressed" else "screen"
    marked = [
        case_id
        for case_id, change in changes.items()
        if "suspect" in change.get("notes", ()) or (change.get("change") == verdict != "unchanged")
    ]
    return Decision(
        verdict=verdict,
        stage=stage,
        metrics=tuple(
            _finding(name, metric.n, stage if means else "screen") for name, metric in run.summary.metrics.items()
        ),
        cases=tuple(_case_finding(case_id, verdict) for case_id in marked),
        missing=Unavailable("limit", "the LLM budget is exhausted") if verdict == "unproven" else None,
    )


def _finding(name: str, n: int, stage: Stage) -> MetricFinding:
    same = MetricFinding(
        metric=name, cases=n, units=n, baseline=1.0, first=1.0, current=1.0, control=1.0, detectable_drop=0.06
    )
    if stage == "screen":
        return replace(same, bound=0.073, finer=FinerBound(5, 0.048))
    return replace(
        same,
        stage=stage,
        first=0.5,
        current=0.5,
        runs=3,
        interval=(-0.8, -0.2),
        p=0.002,
        limit=0.009,
        suspicious=True,
        proven=True,
    )


def _case_finding(case_id: str, verdict: RunVerdict) -> CaseFinding:
    always, never = Failures(9, 9), Failures(0, 9)
    known = CaseFinding(metric="numeric", case_id=case_id, pool=Failures(0, 15), first=Failures(3, 3))
    if verdict == "unproven":
        return known
    sides = (always, never) if verdict == "regressed" else (never, always)
    return replace(known, current=sides[0], control=sides[1], q=0.0001, limit=0.001, proven=True)


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
