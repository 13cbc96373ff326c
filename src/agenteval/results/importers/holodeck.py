"""Reads HoloDeck test reports: the output of ``holodeck test --output``, and files of its ``results`` folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import AliasChoices, Field

from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score, Text, ToolCall, TurnResult
from agenteval.results.importers import base
from agenteval.results.rollup import mean_score
from agenteval.suite.cases import excerpt, turns_id
from agenteval.suite.model import MetricKind

# The shapes are parts of those in ``holodeck.models.test_result`` and ``eval_run`` of HoloDeck 0.7.1.

_FORMAT: Final = "holodeck"
_TOKENS = {"input": "prompt", "output": "completion"}
_KINDS: Mapping[str | None, MetricKind] = {"rag": "rag", "geval": "geval", "code": "code"}
_SCALE = re.compile(r"\s*\d+(?:\.\d+)?\s*(?:-|–|\.\.|to)\s*(?P<high>\d+(?:\.\d+)?)\s*")
_NO_ROUGE = "every rouge score of the report is 0, which HoloDeck up to 0.7.1 writes whatever the answer is"


class _Metric(base.ImportedShape):
    metric_name: Text
    kind: base.OptionalText = None
    score: base.Number = None
    threshold: base.Number = None
    passed: bool | None = None
    scale: base.OptionalText = None
    error: base.OptionalText = None
    evaluation_time_ms: base.Amount = None
    model_used: base.OptionalText = None
    reasoning: base.OptionalText = None
    # Why the score says nothing; files do not contain it.
    absent: str | None = base.at("")

    def score_of(self, unique: str) -> Score:
        scale = _SCALE.fullmatch(self.scale or "")
        return base.score_of(
            unique,
            _KINDS.get(self.kind, "standard"),
            self.score,
            highest=(float(scale["high"]) if scale else 0.0) or 1.0,
            threshold=self.threshold,
            passed=self.passed,
            reason=self.reasoning,
            absent=self.absent,
            error=self.error,
            model=self.model_used,
            duration_ms=self.evaluation_time_ms,
        )


class _Call(ToolCall):
    error: base.OptionalText = None
    duration_ms: base.Amount = None


class _Turn(base.ImportedShape):
    # A turn and a test of a single turn have different names for input and response.
    input: base.AnyText = Field("", validation_alias=AliasChoices("test_input", "input"))
    response: base.OptionalText = Field(None, validation_alias=AliasChoices("agent_response", "response"))
    ground_truth: base.OptionalText = None
    tool_calls: base.Listed[Text] = ()
    tool_invocations: base.Listed[_Call] = ()
    tools_matched: bool | None = None
    metrics: base.Listed[_Metric] = base.at("metric_results", default=())
    passed: bool
    execution_time_ms: base.Amount = None
    errors: base.Listed[base.AnyText] = ()
    token_usage: dict[str, base.Count] | None = None

    def result(self, index: int, *, is_single: bool) -> TurnResult:
        # The time of a single-turn test includes its metrics.
        metrics_ms = sum(metric.evaluation_time_ms or 0.0 for metric in self.metrics) if is_single else 0.0
        time, used = self.execution_time_ms, self.token_usage
        repeats = base.Repeats()
        scores = [metric.score_of(repeats.unique(metric.metric_name)) for metric in self.metrics]
        if self.tools_matched is not None:
            matched = self.tools_matched
            scores.append(base.score_of(repeats.unique("tools"), "tools", float(matched), passed=matched))
        calls = [ToolCall(**call.model_dump()) for call in self.tool_invocations]
        tokens = {f"{ours}_tokens": (used or {}).get(f"{theirs}_tokens") for ours, theirs in _TOKENS.items()}
        answer = self.model_dump(include={"input", "ground_truth", "response"}) | {"usage": used and tokens}
        # An error beside an answer did not prevent it, nor did a missing tool call.
        is_broken = not self.response and (self.response is None or self.tools_matched is not False)
        return TurnResult(
            **answer,
            index=index,
            tool_calls=calls or [ToolCall(name=name) for name in self.tool_calls],
            latency_ms=None if time is None else max(time - metrics_ms, 0.0),
            error="; ".join(self.errors) if self.errors and is_broken else None,
            scores=scores,
        )


class _Test(_Turn):
    """A test; if it has several turns, they contain the answers."""

    test_name: base.OptionalText = None
    turns: base.Listed[_Turn] = ()

    @property
    def answers(self) -> Sequence[_Turn]:
        return self.turns or [self]

    def status(self, turns: Sequence[TurnResult], *, may_be_rouge: bool) -> CaseStatus:
        """Return HoloDeck's verdict. It has no errors, and counts a test without checks as passed."""
        metrics = [metric for answer in self.answers for metric in answer.metrics]
        if any(turn.error is not None for turn in turns):
            return "error"
        if any(answer.tools_matched is False for answer in self.answers):
            return "failed"
        if any(metric.passed is False and not metric.error and not metric.absent for metric in metrics):
            return "failed"
        if not self.passed and any(metric.error for metric in metrics):
            return "error"
        if not self.passed and (any(answer.errors for answer in self.answers) or not may_be_rouge):
            return "failed"
        statuses = {score.status for turn in turns for score in turn.scores}
        return "passed" if "scored" in statuses else "error" if "error" in statuses else "skipped"


class _Report(base.ImportedShape):
    agent_name: base.AnyText = base.at("report", "agent_name", default="")
    agent_config_path: base.AnyText = base.at("report", "agent_config_path", default="")
    tests: list[_Test] = base.at("report", "results", default=...)
    duration_ms: base.Amount = base.at("report", "summary", "total_duration_ms")
    timestamp: base.OptionalText = base.at("report", "timestamp")
    version: base.AnyText = base.at("report", "holodeck_version", default="")
    commit: base.OptionalText = base.at("metadata", "git_commit")


def _recognises(content: Any) -> bool:
    report = content.get("report", content) if isinstance(content, dict) else None
    return isinstance(report, dict) and {"agent_name", "results", "summary"} <= report.keys()


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    report = _Report.model_validate(content if "report" in content else {"report": content})
    path = PurePosixPath(report.agent_config_path.replace("\\", "/")).as_posix()
    suite = _suite_of(report, path, suites) or base.KnownSuite(path, report.agent_name, _FORMAT)
    answers = [answer for test in report.tests for answer in (test, *test.turns)]
    rouge = [metric for answer in answers for metric in answer.metrics if metric.metric_name == "rouge"]
    rouge_is_broken = bool(rouge) and not any(metric.score for metric in rouge)
    # Then it may be the cause of a failure.
    for metric in rouge:
        metric.absent = _NO_ROUGE if rouge_is_broken else None
    known = {case.id: case for case in suite.cases}
    questions: dict[str, str] = {}
    cases: list[CaseResult] = []
    repeats = base.Repeats()
    for test in report.tests:
        inputs = tuple(answer.input for answer in test.answers)
        truths = tuple(answer.ground_truth for answer in test.answers)
        case_id = repeats.unique(f"{suite.path}::{test.test_name or turns_id(inputs)}")
        same = known.get(case_id)
        expected = same and (same.inputs or inputs, same.ground_truths or truths)
        if expected and expected != (inputs, truths):
            questions[case_id] = "\x1f".join(inputs)
        turns = [answer.result(index, is_single=not test.turns) for index, answer in enumerate(test.answers)]
        status = test.status(turns, may_be_rouge=rouge_is_broken)
        iteration = IterationResult(index=0, status=status, score=mean_score(turns), turns=turns)
        cases.append(base.case_of(case_id, test.test_name or excerpt(inputs[0]) or case_id, [iteration]))
    return base.ImportedRun(
        version=report.version,
        finished_at=report.timestamp,
        duration_s=(report.duration_ms or 0.0) / 1000,
        commit=report.commit,
        suites=[suite.result(cases)],
        questions=questions,
    )


def _suite_of(report: _Report, path: str, suites: Sequence[base.KnownSuite]) -> base.KnownSuite | None:
    """Return the suite with the agent's name, else its path; of several, the one with most of the report's cases."""
    names = {test.test_name for test in report.tests if test.test_name}

    def closeness(suite: base.KnownSuite) -> tuple[bool, int, bool]:
        is_there = f"/{path}".endswith(f"/{suite.path}")
        return suite.name == report.agent_name, len(names & {case.name for case in suite.cases}), is_there

    ours = [suite for suite in suites if suite.format == _FORMAT and (closeness(suite)[0] or closeness(suite)[2])]
    return max(ours, key=closeness, default=None)


_WHAT = "a test report of HoloDeck (holodeck test --output report.json)"
IMPORTER = base.Importer(_FORMAT, "HoloDeck", _WHAT, _recognises, _read)
