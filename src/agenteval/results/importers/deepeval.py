"""Reads the last test run of DeepEval: ``.deepeval/.latest_test_run.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.case import CaseStatus, IterationResult, Json, Score, ToolCall, TurnResult, Usage
from agenteval.results.importers import base
from agenteval.results.rollup import mean_score

_FORMAT: Final = "deepeval"
_RUN, _LINK = "testRunData", "testRunLink"
_PARTS = frozenset({"testCases", "conversationalTestCases"})
_ONLY_A_LINK = (
    "has a link to Confident AI, not the results; name the file .latest_run_full.json beside it, "
    "or run `deepeval logout` and the tests again"
)
# The name of a test case without one has its place in the list.
_NUMBERED = re.compile(r"(?:conversational_)?test_case_\d+")


class _Metric(base.ImportedShape):
    name: base.AnyText
    score: base.Number = None
    threshold: base.Number = None
    success: bool | None = None
    reason: base.OptionalText = None
    error: base.OptionalText = None
    # Such a metric never decides.
    flaky: bool | None = None
    model: base.OptionalText = base.at("evaluationModel")
    cost: base.Amount = base.at("evaluationCost")

    @property
    def favours_less(self) -> bool:
        """Whether it passes below its threshold, as hallucination did."""
        if self.score is None or self.threshold is None or self.success is None or self.score == self.threshold:
            return False
        return self.success != (self.score > self.threshold)

    def score_of(self, repeats: base.Repeats, less: frozenset[str]) -> Score:
        score, threshold = self.score, self.threshold
        if self.name in less:
            score = None if score is None else 1 - score
            threshold = None if threshold is None else 1 - threshold
        return base.score_of(
            repeats.unique(self.name),
            "custom",
            score,
            threshold=threshold if threshold is not None and 0 <= threshold <= 1 else None,
            passed=self.success,
            reason=self.reason,
            error=self.error,
            gating=not self.flaky,
            model=self.model,
            cost_usd=self.cost,
        )


class _Tool(base.ImportedShape):
    name: base.AnyText
    args: Json = base.at("inputParameters")
    result: Json = base.at("output")


class _Message(base.ImportedShape):
    role: base.AnyText
    content: base.AnyText
    context: base.Listed[base.AnyText] = base.at("retrievalContext", default=())
    tools: base.Listed[_Tool] = base.at("toolsCalled", default=())


class _Test(base.ImportedShape):
    name: base.AnyText = ""
    success: bool | None = None
    metrics: base.Listed[_Metric] = base.at("metricsData", default=())
    messages: base.Listed[_Message] = base.at("turns", default=())
    input: base.OptionalText = None
    scenario: base.OptionalText = None
    output: base.OptionalText = base.at("actualOutput")
    expected: base.OptionalText = base.at("expectedOutput")
    context: base.Listed[base.AnyText] = base.at("retrievalContext", default=())
    tools: base.Listed[_Tool] = base.at("toolsCalled", default=())
    seconds: base.Amount = base.at("completionTime")
    input_tokens: base.Count = base.at("inputTokenCount")
    output_tokens: base.Count = base.at("outputTokenCount")
    cost: base.Amount = base.at("tokenCost")

    def found(self, path: str, less: frozenset[str]) -> base.FoundTest:
        repeats = base.Repeats()
        turns = list(self._turns([metric.score_of(repeats, less) for metric in self.metrics]))
        statuses = {score.status for turn in turns for score in turn.scores}
        status: CaseStatus = "skipped"
        if self.success is False or "scored" in statuses:
            status = "failed" if self.success is False else "passed"
        if "error" in statuses and not any(metric.success is False and not metric.error for metric in self.metrics):
            status = "error"
        iteration = IterationResult(index=0, status=status, score=mean_score(turns), turns=turns)
        title = None if _NUMBERED.fullmatch(self.name) else self.name or None
        return base.FoundTest(path, title, tuple(turn.input for turn in turns), iteration)

    def _turns(self, scores: list[Score]) -> Iterator[TurnResult]:
        """Yield the turns; the scores of a conversation are those of its last turn."""
        answers = [index for index, message in enumerate(self.messages) if message.role != "user"]
        if not answers:
            used = (self.input_tokens, self.output_tokens, self.cost)
            yield TurnResult(
                index=0,
                input=self.input or self.scenario or "",
                ground_truth=self.expected,
                response=self.output,
                tool_calls=_calls(self.tools),
                retrieval_context=list(self.context),
                latency_ms=None if self.seconds is None else self.seconds * 1000,
                usage=Usage(input_tokens=used[0], output_tokens=used[1], cost_usd=used[2]) if any(used) else None,
                scores=scores,
            )
            return
        for turn, (after, index) in enumerate(zip([-1, *answers], answers, strict=False)):
            answer = self.messages[index]
            yield TurnResult(
                index=turn,
                input="\n".join(message.content for message in self.messages[after + 1 : index]),
                ground_truth=None,
                response=answer.content,
                tool_calls=_calls(answer.tools),
                retrieval_context=list(answer.context),
                scores=scores if index == answers[-1] else [],
            )


def _calls(tools: Sequence[_Tool]) -> list[ToolCall]:
    return [ToolCall(name=tool.name, args=tool.args, result=tool.result) for tool in tools]


class _Run(base.ImportedShape):
    file: base.AnyText = base.at(_RUN, "testFile", default="")
    tests: base.Listed[_Test] = base.at(_RUN, "testCases", default=())
    conversations: base.Listed[_Test] = base.at(_RUN, "conversationalTestCases", default=())
    seconds: base.Amount = base.at(_RUN, "runDuration")


def _recognises(content: Any) -> bool:
    return isinstance(content, dict) and (_RUN in content or content.keys() == {_LINK} or content.keys() >= _PARTS)


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    if content.keys() == {_LINK}:
        raise ConfigError(Problem(_ONLY_A_LINK, kind=Kind.RESULTS))
    run = _Run.model_validate(content if _RUN in content else {_RUN: content})
    tests = (*run.tests, *run.conversations)
    # In one run, all results of a metric are judged alike.
    less = frozenset(metric.name for test in tests for metric in test.metrics if metric.favours_less)
    found = (test.found(run.file or _FORMAT, less) for test in tests)
    return base.run_of(found, suites, _FORMAT, version="", duration_s=run.seconds or 0.0)


_WHAT = "the last test run of DeepEval (.deepeval/.latest_test_run.json)"
IMPORTER = base.Importer(_FORMAT, "DeepEval", _WHAT, _recognises, _read)
