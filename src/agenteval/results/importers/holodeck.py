"""Reads HoloDeck test reports: the output of ``holodeck test --output``, and files of its ``results`` folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import AliasChoices, Field

from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    IterationResult,
    Json,
    Score,
    SuiteResult,
    Text,
    ToolCall,
    TurnResult,
    Usage,
)
from agenteval.results.importers.base import (
    Amount,
    AnyText,
    Count,
    ImportedRun,
    ImportedScore,
    ImportedShape,
    KnownCase,
    KnownSuite,
    Listed,
    Number,
    OptionalText,
    Repeats,
    highest_of,
)
from agenteval.results.rollup import mean_score
from agenteval.suite.cases import excerpt, turns_id
from agenteval.suite.model import MetricKind

# The parts of HoloDeck's test report that are read.
#
# The shape is that of ``holodeck.models.test_result`` and ``eval_run`` in HoloDeck 0.7.1.


class HolodeckMetric(ImportedShape):
    """The result of a metric."""

    metric_name: Text
    kind: OptionalText = None
    score: Number = None
    threshold: Number = None
    passed: bool | None = None
    scale: OptionalText = None
    error: OptionalText = None
    evaluation_time_ms: Amount = None
    model_used: OptionalText = None
    reasoning: OptionalText = None


class Invocation(ImportedShape):
    """A call of a tool."""

    name: Text
    args: Json = None
    result: Json = None
    error: OptionalText = None
    duration_ms: Amount = None


class HolodeckTokens(ImportedShape):
    """The token usage of an answer."""

    prompt_tokens: Count = None
    completion_tokens: Count = None


class HolodeckTurn(ImportedShape):
    """A turn, or a single-turn test: they have different names for input and response."""

    input: AnyText = Field("", validation_alias=AliasChoices("test_input", "input"))
    response: OptionalText = Field(None, validation_alias=AliasChoices("agent_response", "response"))
    ground_truth: OptionalText = None
    tool_calls: Listed[Text] = ()
    tool_invocations: Listed[Invocation] = ()
    tools_matched: bool | None = None
    metric_results: Listed[HolodeckMetric] = ()
    passed: bool
    execution_time_ms: Amount = None
    errors: Listed[AnyText] = ()
    token_usage: HolodeckTokens | None = None


class HolodeckTest(HolodeckTurn):
    """A test; if it has several turns, they contain the answers."""

    test_name: OptionalText = None
    turns: Listed[HolodeckTurn] = ()

    @property
    def answers(self) -> Sequence[HolodeckTurn]:
        """The answers, one for each turn."""
        return self.turns or [self]


class HolodeckTotals(ImportedShape):
    """The summary, without figures that other parts contain."""

    total_duration_ms: Amount = None


class HolodeckReport(ImportedShape):
    """A test report."""

    agent_name: AnyText = ""
    agent_config_path: AnyText = ""
    results: list[HolodeckTest]
    summary: HolodeckTotals = HolodeckTotals()
    timestamp: OptionalText = None
    holodeck_version: AnyText = ""


class HolodeckOrigin(ImportedShape):
    """The origin of a report."""

    git_commit: OptionalText = None


class EvalRun(ImportedShape):
    """A file of HoloDeck's history: the report and its origin."""

    report: HolodeckReport
    metadata: HolodeckOrigin = HolodeckOrigin()


FORMAT: Final = "holodeck"

_KINDS: Mapping[str, MetricKind] = {"standard": "standard", "rag": "rag", "geval": "geval", "code": "code"}
_ROUGE = "rouge"
_NO_ROUGE = "every rouge score of the report is 0, which HoloDeck up to 0.7.1 writes whatever the answer is"


def is_holodeck(content: Any) -> bool:
    """Return whether JSON is a test report."""
    if not isinstance(content, dict):
        return False
    report = content.get("report", content)
    return isinstance(report, dict) and {"agent_name", "results", "summary"} <= report.keys()


def read_holodeck(content: Mapping[str, Any], suites: Sequence[KnownSuite]) -> ImportedRun:
    """Return a test report as a recording.

    Args:
        suites: known suites; the report's cases get the ids of the suite with its agent's name or path.

    Raises:
        ValidationError: a required part is missing or has another type.
    """
    run = EvalRun.model_validate(content if "report" in content else {"report": content})
    report = run.report
    path = PurePosixPath(report.agent_config_path.replace("\\", "/")).as_posix()
    suite = _suite_of(report, path, suites)
    found = _CasesOfTests(suite.path if suite else path, suite.cases if suite else (), _rouge_is_broken(report))
    cases = [found.case(test) for test in report.results]
    return ImportedRun(
        tool=FORMAT,
        version=report.holodeck_version,
        finished_at=report.timestamp,
        duration_s=(report.summary.total_duration_ms or 0.0) / 1000,
        commit=run.metadata.git_commit,
        suites=[
            SuiteResult(
                path=found.path,
                name=suite.name if suite else report.agent_name,
                format=FORMAT,
                fingerprint="",
                cases=cases,
            )
        ],
        questions=found.questions,
    )


def _suite_of(report: HolodeckReport, path: str, suites: Sequence[KnownSuite]) -> KnownSuite | None:
    """Return the suite with the agent's name, else one with the same path ending and a case of the report."""
    names = {test.test_name for test in report.results if test.test_name}

    def shared_cases(suite: KnownSuite) -> int:
        return len(names & {case.name for case in suite.cases})

    def closeness(suite: KnownSuite) -> tuple[int, int]:
        return _common_tail(path, suite.path), shared_cases(suite)

    ours = [suite for suite in suites if suite.format == FORMAT]
    named = [suite for suite in ours if suite.name == report.agent_name]
    similar = [suite for suite in ours if _common_tail(path, suite.path) and shared_cases(suite)]
    return max(named or similar, key=closeness, default=None)


def _common_tail(one: str, other: str) -> int:
    """Return the number of common path parts at the end if one path ends with the whole other path; else 0."""
    ends = [[part for part in reversed(PurePosixPath(path).parts) if part != "/"] for path in (one, other)]
    shortest = min(map(len, ends))
    return shortest if ends[0][:shortest] == ends[1][:shortest] else 0


def _rouge_is_broken(report: HolodeckReport) -> bool:
    scores = [
        metric.score
        for test in report.results
        for answer in (test, *test.turns)
        for metric in answer.metric_results
        if metric.metric_name == _ROUGE
    ]
    return bool(scores) and not any(scores)


class _CasesOfTests:
    """Builds cases from tests, with the case ids of the suite."""

    def __init__(self, path: str, known: Iterable[KnownCase], rouge_is_broken: bool) -> None:
        self.path = path
        self.questions: dict[str, str] = {}
        self._known = {case.id: case for case in known}
        self._repeats = Repeats()
        self._rouge_is_broken = rouge_is_broken

    def case(self, test: HolodeckTest) -> CaseResult:
        inputs = tuple(answer.input for answer in test.answers)
        case_id = self._repeats.unique(f"{self.path}::{test.test_name or turns_id(inputs)}")
        known = self._known.get(case_id)
        if known is not None and _differs(known, test.answers):
            self.questions[case_id] = "\x1f".join(inputs)
        turns = [self._turn(index, test, answer) for index, answer in enumerate(test.answers)]
        status, score = self._status(test, turns), mean_score(turns)
        return CaseResult(
            id=case_id,
            name=test.test_name or excerpt(inputs[0]) or case_id,
            status=status,
            score=score,
            iterations=[IterationResult(index=0, status=status, score=score, turns=turns)],
        )

    def _turn(self, index: int, test: HolodeckTest, answer: HolodeckTurn) -> TurnResult:
        calls = [ToolCall(**call.model_dump()) for call in answer.tool_invocations]
        usage = answer.token_usage
        return TurnResult(
            index=index,
            input=answer.input,
            ground_truth=answer.ground_truth,
            response=answer.response,
            tool_calls=calls or [ToolCall(name=name) for name in answer.tool_calls],
            latency_ms=answer.execution_time_ms if test.turns else _without_metrics_ms(answer),
            usage=Usage(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens) if usage else None,
            error="; ".join(answer.errors) if _is_broken(answer) else None,
            scores=self._scores(answer),
        )

    def _scores(self, answer: HolodeckTurn) -> list[Score]:
        repeats = Repeats()
        scores = [self._grade(metric, repeats.unique(metric.metric_name)).score for metric in answer.metric_results]
        if answer.tools_matched is not None:
            matched = answer.tools_matched
            value = 1.0 if matched else 0.0
            scores.append(
                Score(id=repeats.unique("tools"), kind="tools", score=value, passed=matched, status="scored")
            )
        return scores

    def _grade(self, metric: HolodeckMetric, unique: str) -> ImportedScore:
        return ImportedScore(
            id=unique,
            kind=_KINDS.get(metric.kind or "", "standard"),
            value=metric.score,
            highest=highest_of(metric.scale),
            threshold=metric.threshold,
            passed=metric.passed,
            reason=metric.reasoning,
            absent=_NO_ROUGE if self._says_nothing(metric) else None,
            error=metric.error,
            model=metric.model_used,
            duration_ms=metric.evaluation_time_ms,
        )

    def _says_nothing(self, metric: HolodeckMetric) -> bool:
        return self._rouge_is_broken and metric.metric_name == _ROUGE

    def _status(self, test: HolodeckTest, turns: Sequence[TurnResult]) -> CaseStatus:
        """Return HoloDeck's verdict. It has no errors, and counts a test without checks as passed."""
        if any(turn.error is not None for turn in turns):
            return "error"
        metrics = [metric for answer in test.answers for metric in answer.metric_results]
        if any(answer.tools_matched is False for answer in test.answers):
            return "failed"
        if any(metric.passed is False and not metric.error and not self._says_nothing(metric) for metric in metrics):
            return "failed"
        if not test.passed and any(metric.error for metric in metrics):
            return "error"
        # Without other errors, rouge alone caused the failure.
        if not test.passed and (any(answer.errors for answer in test.answers) or not self._rouge_is_broken):
            return "failed"
        statuses = {score.status for turn in turns for score in turn.scores}
        if "scored" in statuses:
            return "passed"
        return "error" if "error" in statuses else "skipped"


def _is_broken(answer: HolodeckTurn) -> bool:
    """Return whether an error prevented the answer. A missing tool call does not prevent an answer."""
    if not answer.errors:
        return False
    return answer.response is None or (not answer.response and answer.tools_matched is not False)


def _without_metrics_ms(test: HolodeckTurn) -> float | None:
    """Return the time of the agent, without the metrics that a single-turn test's time includes."""
    if test.execution_time_ms is None:
        return None
    metrics = sum(metric.evaluation_time_ms or 0.0 for metric in test.metric_results)
    return max(test.execution_time_ms - metrics, 0.0)


def _differs(known: KnownCase, answers: Sequence[HolodeckTurn]) -> bool:
    """Return whether the test of that name has another question or expectation."""
    if known.inputs and known.inputs != tuple(answer.input for answer in answers):
        return True
    truths = tuple(answer.ground_truth for answer in answers)
    return bool(known.ground_truths) and known.ground_truths != truths
