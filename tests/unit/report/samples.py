"""Runs to render: each sample is a whole results file with the gate's word on it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import ROOT

from agenteval.report.facts import Report, facts
from agenteval.report.parts import Presentation
from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    Criterion,
    IterationResult,
    Score,
    SuiteResult,
    ToolCall,
    TurnResult,
)
from agenteval.results.comparison import (
    AnswerChange,
    BaselineInfo,
    ComparedCase,
    ComparedMetric,
    Comparison,
    ScoreChange,
)
from agenteval.results.model import MetricSummary, Results, Run, RunUsage, Tool
from agenteval.results.rollup import summarise
from agenteval.results.verdict import Condition, Gate, Verdict

GOLDEN = ROOT / "tests" / "data" / "golden"

SUITE = "examples/support/agent.yaml"
_WRONG_REFUND = "The refund is 42.49 EUR: three items of 12.50 EUR each and the shipping of 4.99 EUR."

#: What an agent or a suite might say to hurt a report or its readers.
HOSTILE_TEXTS = (
    "@octocat and @acme/admins please look at #1, GH-2, acme/widgets#3 and 1a2b3c4d5e6f7a8b",
    "<script>alert(1)</script><img src=x onerror=alert(1)> </details></td></table> <!-- agenteval:comment id= -->",
    "![pixel](https://evil.example/p.png) [link](javascript:alert(1)) https://evil.example ftp://evil.example "
    "www.evil.example a@b.example mailto:a@b.example xmpp:a@b.example",
    "| a | b |\n|---|---|\n````\n```\n~~~\n# heading\n- list\n1. list\n> quote\n---",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x00\x08\x9b1m",
    "abc \u202egnp.exe\u202c \u2066isolated\u2069 \u200fmark \ufeff \U000e0041",
    "::error file=a,line=1::forged\n##[error]forged\r::set-output name=x::y",
    "]]> &amp; &lt; <![CDATA[ ]]> <?xml?> \ufffe \ud800 lone",
    "**bold** _em_ `code` ~~gone~~ $x^2$ $$y$$ :tada: \\ \\| [x] {{ 7 * 7 }} {% raw %}",
    "ends with backticks ``````` and a backslash \\",
)


@dataclass(frozen=True)
class Sample:
    """A run, its verdict and its warnings."""

    results: Results
    gate: Gate
    warnings: tuple[str, ...] = ()

    @property
    def report(self) -> Report:
        return self.presented()

    def presented(self, **look: Any) -> Report:
        return facts(self.results, self.gate, self.warnings, presentation=Presentation(**look))


def own_parts_cut(page: str) -> str:
    """The page without style, script and their hashes, which have separate tests."""
    page = re.sub(r"(?s)<style>.*?</style>", "<style></style>", page)
    page = re.sub(r"(?s)<script>.*?</script>", "<script></script>", page)
    return re.sub(r"sha256-[\w+/=]+", "sha256-…", page)


def check_golden(name: str, text: str) -> None:
    """Compares with ``tests/data/golden/<name>``; ``UPDATE_GOLDEN=1`` writes it instead."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="")
    assert text == path.read_text(encoding="utf-8")


def score(
    name: str = "numeric",
    value: float | None = 1.0,
    threshold: float | None = 1.0,
    *,
    reason: str | None = None,
    error: str | None = None,
    skipped: bool = False,
) -> Score:
    """One metric's score; passed is what the threshold says."""
    scored = value is not None and not error and not skipped
    return Score(
        id=name,
        kind="standard",
        score=value if scored else None,
        threshold=threshold,
        passed=value >= threshold if scored and value is not None and threshold is not None else None,
        status="error" if error else "skipped" if skipped else "scored",
        reason=reason,
        error=error,
    )


def turn(
    question: str,
    expected: str | None,
    answer: str | None,
    *scores: Score,
    index: int = 0,
    error: str | None = None,
    tools: Iterable[ToolCall] = (),
) -> TurnResult:
    """One exchange that took 250 ms."""
    return TurnResult(
        index=index,
        input=question,
        ground_truth=expected,
        response=answer,
        latency_ms=250.0,
        error=error,
        scores=list(scores),
        tool_calls=list(tools),
    )


def iteration(*turns: TurnResult, status: CaseStatus = "passed", index: int = 0) -> IterationResult:
    """One pass through the turns."""
    values = [item.score for each in turns for item in each.scores if item.score is not None]
    mean = sum(values) / len(values) if values else None
    return IterationResult(index=index, status=status, score=mean, turns=list(turns))


def case(
    name: str,
    *iterations: IterationResult,
    status: CaseStatus = "passed",
    line: int | None = None,
    suite: str = SUITE,
) -> CaseResult:
    """A case; its score is the mean over its iterations."""
    values = [each.score for each in iterations if each.score is not None]
    return CaseResult(
        id=f"{suite}::{name}",
        name=name,
        line=line,
        status=status,
        score=sum(values) / len(values) if values else None,
        iterations=list(iterations),
    )


def suite(
    *cases: CaseResult,
    path: str = SUITE,
    name: str = "support",
    criteria: Iterable[Criterion] = (),
    goal: str | None = None,
) -> SuiteResult:
    """A suite of the cases."""
    return SuiteResult(
        path=path,
        name=name,
        format="holodeck",
        fingerprint="f" * 16,
        cases=list(cases),
        criteria=list(criteria),
        goal=goal,
    )


def results(
    *suites: SuiteResult,
    complete: bool = True,
    comparison: Comparison | None = None,
    usage: RunUsage | None = None,
) -> Results:
    """A results file whose summary counts what is in the suites."""
    return Results(
        tool=Tool(version="0.1.0"),
        run=Run(
            id="run-2",
            started_at="2026-11-21T10:00:00Z",
            finished_at="2026-11-21T10:00:03Z",
            duration_s=3.21,
            complete=complete,
            commit="0123456789abcdef0123456789abcdef01234567",
            ref="refs/pull/7/merge",
            repository="acme/widgets",
        ),
        summary=summarise([each for one in suites for each in one.cases], usage or RunUsage()),
        suites=list(suites),
        comparison=comparison,
    )


def passed_case(name: str, answer: str = "42", line: int | None = None) -> CaseResult:
    """A case with one right answer."""
    return case(name, iteration(turn(f"What about {name}?", answer, answer, score())), line=line)


def failed_case(name: str, expected: str, answer: str, *scores: Score, line: int | None = None) -> CaseResult:
    """A case with one wrong answer."""
    given = scores or (score(value=0.0, reason=f"expected {expected}, found {answer}"),)
    return case(
        name,
        iteration(turn(f"What about {name}?", expected, answer, *given), status="failed"),
        status="failed",
        line=line,
    )


def gate_of(
    verdict: Verdict, headline: str, reasons: Iterable[str] = (), conditions: Iterable[Condition] = ()
) -> Gate:
    """A decision."""
    status = {"passed": 0, "error": 3}.get(verdict, 1)
    told = {"headline": headline, "reasons": tuple(reasons), "conditions": tuple(conditions)}
    return Gate.model_validate({"verdict": verdict, "exit_status": status, **told})


def closed(verdict: Verdict, headline: str, reasons: tuple[str, ...]) -> Gate:
    """A gate that does not pass, for these reasons alone."""
    return gate_of(verdict, headline, reasons, [Condition(found=text) for text in reasons])


def green() -> Sample:
    """Everything passed; there is no baseline."""
    cases = [passed_case(f"Order {number}", line=10 + number) for number in range(3)]
    usage = RunUsage(input_tokens=1234, output_tokens=567, llm_calls=3, cost_usd=0.0123)
    return Sample(results(suite(*cases), usage=usage), gate_of("passed", "passed"))


def regressed() -> Sample:
    """Two cases broke, one of them in its second turn; others are new, gone, better or failed as before."""
    cases = [
        _refund(),
        _return_label(),
        passed_case("Opening hours", "9 to 17"),
        passed_case("Shipping to Norway", "4 to 6 days"),
        failed_case("Warranty", "2 years", "3 years", line=60),
        passed_case("Gift cards", "yes"),
    ]
    return Sample(
        results(suite(*cases), comparison=_comparison(), usage=RunUsage(input_tokens=5120, output_tokens=880)),
        gate_of(
            "failed",
            "2 cases broke",
            ("2 cases broke: Refund total, Return label", "1 case failed"),
            conditions=(
                Condition(found="2 of 5 cases broke", rule="fail-on: regressions", about="cases"),
                Condition(
                    found="the mean of numeric fell from 1.00 to 0.75",
                    rule="at most 0.05 lower; fail-on: regressions",
                    about="metrics",
                ),
            ),
        ),
        ("the baseline is 3 commits old",),
    )


def _refund() -> CaseResult:
    call = ToolCall(name="calculator", args={"expression": "3 * 12.50 + 4.99"}, result="42.49")
    return case(
        "Refund total",
        iteration(
            turn(
                "I returned three items of 12.50 each. What do I get back?",
                "37.50",
                _WRONG_REFUND,
                score(value=0.0, reason="expected 37.5, found 42.49"),
                score("f1_score", 0.118, 0.5),
                score("bleu", 0.03, None),
                tools=[call],
            ),
            status="failed",
        ),
        status="failed",
        line=12,
    )


def _return_label() -> CaseResult:
    good = turn("I want to return my order.", "Which order?", "Which order is it?", score("f1_score", 0.8, 0.5))
    bad = turn(
        "Number 1009, please.",
        "The label for order 1009 was sent to you.",
        "I cannot help with that.",
        score("f1_score", 0.15, 0.5, reason="2 of 9 words"),
        index=1,
    )
    fine = turn("Number 1009, please.", bad.ground_truth, bad.ground_truth, score("f1_score", 1.0, 0.5), index=1)
    return case(
        "Return label",
        iteration(good, bad, status="failed", index=0),
        iteration(good, fine, status="passed", index=1),
        iteration(good, bad, status="failed", index=2),
        status="failed",
        line=31,
    )


def _comparison() -> Comparison:
    return Comparison(
        baseline=BaselineInfo(
            commit="89abcdef0123456789abcdef0123456789abcdef",
            ref="main",
            run_id="1017",
            created_at="2026-11-20T09:00:00Z",
            distance=3,
        ),
        state="proven",
        headline="the mean of numeric fell",
        metrics=[
            ComparedMetric(id="numeric", n=4, baseline=1.0, current=0.75, difference=-0.25, state="proven"),
            ComparedMetric(id="f1_score", n=7, baseline=0.86, current=0.52, difference=-0.34, state="proven"),
        ],
        cases=[
            _compared("Refund total", "broke", ("passed", "failed"), (0.94, 0.05), line=12).model_copy(
                update={
                    "metrics": [
                        ScoreChange(
                            id="numeric",
                            before=1.0,
                            after=0.0,
                            passed_before=True,
                            passed_after=False,
                            reason="expected 37.5, found 42.49",
                        ),
                        ScoreChange(id="f1_score", before=0.88, after=0.118, passed_before=True, passed_after=False),
                        ScoreChange(id="bleu", before=0.03, after=0.03),
                    ],
                    "answers": [
                        AnswerChange(
                            turn=0,
                            input="I returned three items of 12.50 each. What do I get back?",
                            before="You get 37.50 EUR back.",
                            after=_WRONG_REFUND,
                        )
                    ],
                }
            ),
            _compared("Return label", "broke", ("passed", "failed"), (0.9, 0.62), line=31).model_copy(
                update={
                    "metrics": [
                        ScoreChange(
                            id="f1_score",
                            before=0.9,
                            after=0.62,
                            passed_before=True,
                            passed_after=False,
                            reason="turn 2: 2 of 9 words",
                        )
                    ],
                    "answers": [
                        AnswerChange(
                            turn=1,
                            input="Number 1009, please.",
                            before="The label for order 1009 was sent to you.",
                            after="I cannot help with that.",
                        ),
                    ],
                }
            ),
            _compared("Opening hours", "repaired", ("failed", "passed"), (0.0, 1.0)).model_copy(
                update={
                    "metrics": [
                        ScoreChange(id="numeric", before=0.0, after=1.0, passed_before=False, passed_after=True)
                    ]
                }
            ),
            _compared("Shipping to Norway", "same", ("passed", "passed"), (1.0, 1.0)),
            _compared("Warranty", "same", ("failed", "failed"), (0.0, 0.0), line=60),
            _compared("Gift cards", "new", (None, "passed"), (None, 1.0)),
            _compared("Fax number", "removed", ("passed", None), (1.0, None)),
        ],
    )


def _compared(
    name: str,
    change: str,
    statuses: tuple[CaseStatus | None, CaseStatus | None],
    scores: tuple[float | None, float | None],
    line: int | None = None,
) -> ComparedCase:
    return ComparedCase.model_validate(
        {
            "id": f"{SUITE}::{name}",
            "name": name,
            "change": change,
            "status_before": statuses[0],
            "status_after": statuses[1],
            "score_before": scores[0],
            "score_after": scores[1],
            "line": line,
        }
    )


def hostile() -> Sample:
    """Every hostile text in every place that a suite, an agent, a judge or a baseline can write to."""
    path = "suites/@octocat|<b>.yaml"
    cases = []
    compared = []
    for index, text in enumerate(HOSTILE_TEXTS):
        name = f"{text} ({index})"
        cases.append(
            case(
                name,
                iteration(
                    turn(
                        text,
                        text,
                        text,
                        score(text, 0.0, 1.0, reason=text),
                        score(error=text),
                        error=text if index % 3 == 2 else None,
                        tools=[ToolCall(name=text, args={text: text}, result=text, error=text)],
                    ),
                    status="failed",
                ),
                status="failed",
                line=index,
                suite=path,
            )
        )
        compared.append(
            ComparedCase(
                id=f"{path}::{name}" if index < 7 else text,
                name=name,
                change=("broke", "repaired", "new", "removed", "changed")[index % 5],
                status_before="passed",
                status_after="failed",
                score_before=1.0,
                score_after=0.0,
                metrics=[
                    ScoreChange(id=text, before=1.0, after=0.0, passed_before=True, passed_after=False, reason=text)
                ],
                answers=[AnswerChange(turn=0, input=text, before=text, after=f"new {text}")],
            )
        )
    everything = "\n".join(HOSTILE_TEXTS)
    comparison = Comparison(
        baseline=BaselineInfo(
            commit=everything, ref=everything, run_id=everything, created_at=everything, distance=1
        ),
        state="proven",
        headline="the mean of numeric fell",
        metrics=[],
        cases=compared,
    )
    return Sample(
        results(
            suite(
                *cases, path=path, name=everything, criteria=[Criterion(name=everything, met=False)], goal=everything
            ),
            comparison=comparison,
        ),
        closed("failed", everything, HOSTILE_TEXTS),
        HOSTILE_TEXTS,
    )


def broken() -> Sample:
    """An interrupted run with an agent's error, a judge's error, a skipped case and one that passed."""
    agent_error = "the command exited with status 1: Traceback (most recent call last):\n  ModuleNotFoundError: tools"
    cases = [
        passed_case("Fine", line=5),
        case(
            "Crash",
            iteration(turn("Go.", None, None, error=agent_error), status="error"),
            status="error",
            line=9,
        ),
        case(
            "Judge down",
            iteration(
                turn("Be kind.", None, "Sure.", score("helpfulness", error="429 Too Many Requests")), status="error"
            ),
            status="error",
            line=14,
        ),
        case(
            "Nothing to check",
            iteration(
                turn("Hello", None, "Hi", score(skipped=True, reason="the case has no ground_truth")),
                status="skipped",
            ),
            status="skipped",
            line=18,
        ),
        case(
            "Half checked",
            iteration(turn("2 + 2", "4", "4", score(), score("meteor", error="WordNet is not installed"))),
            line=22,
        ),
    ]
    met = Criterion(name="error_rate", met=False, value=0.4, threshold=0.05)
    return Sample(
        results(suite(*cases, criteria=[met]), complete=False),
        closed("error", "2 errors", ("2 cases could not be run",)),
    )


SAMPLES = {"green": green, "regressed": regressed, "hostile": hostile, "broken": broken}


def many(amount: int, *, status: CaseStatus = "passed", answer: str = "42") -> Sample:
    """So many cases that ended alike, with the same answer."""
    value = 1.0 if status == "passed" else 0.0
    one = turn("What is it?", "42", answer, score(value=value, reason="" if status == "passed" else answer))
    cases = [case(f"Case {number}", iteration(one, status=status), status=status) for number in range(amount)]
    good = status == "passed"
    return Sample(
        results(suite(*cases)),
        gate_of("passed" if good else "failed", "passed" if good else f"{amount} cases failed"),
    )


def many_regressions(amount: int, answer: str) -> Sample:
    """So many cases that broke, with the answer in every place."""
    sample = many(amount, status="failed", answer=answer)
    other = f"{answer}."
    compared = [
        ComparedCase(
            id=each.id,
            name=answer,
            change="broke",
            status_before="passed",
            status_after="failed",
            score_before=1.0,
            score_after=0.0,
            metrics=[ScoreChange(id=answer, before=1.0, after=0.0, reason=answer)],
            answers=[AnswerChange(turn=0, input=answer, before=answer, after=other)],
        )
        for _, each in sample.results.cases()
    ]
    comparison = Comparison(
        baseline=BaselineInfo(run_id=answer, created_at=answer, ref=answer, commit=answer),
        state="proven",
        headline="the mean of numeric fell",
        metrics=[],
        cases=compared,
    )
    metrics = {f"{number} {answer}": MetricSummary(n=1, mean=0.0, pass_rate=0.0) for number in range(3)}
    changed = sample.results.model_copy(
        update={
            "comparison": comparison,
            "summary": sample.results.summary.model_copy(update={"metrics": metrics}),
        }
    )
    warnings = tuple(f"{answer} {number}" for number in range(1000))
    return Sample(changed, closed("failed", answer, (answer,) * 1000), warnings)


def write_page(sample: Sample, directory: Path) -> Path:
    """Write the HTML report of a run; return its file."""
    from agenteval.report import html

    path = directory / "report.html"
    path.write_text("".join(html.render(sample.report)), encoding="utf-8")
    return path
