"""Reads a log of Inspect in JSON: ``inspect eval --log-format json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agenteval.core.text import text_of
from agenteval.results.case import CaseStatus, IterationResult, Json, Score, ToolCall, TurnResult, Usage
from agenteval.results.importers import base
from agenteval.results.rollup import mean_score

_FORMAT: Final = "inspect"
# Correct, partially correct, incorrect, no answer; and the texts that Inspect takes for truth values.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_UNSCORED = "the scorer gave no value"


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _GRADES.get(value, _GRADES.get(value.lower()))
    return base.finite(value)


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return text_of(content)
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


class _Score(base.ImportedShape):
    value: Json = None
    explanation: base.OptionalText = None

    def scores(self, name: str) -> Iterator[Score]:
        """Yield a score for each value. Grades, and the numbers 0 and 1, are verdicts; Inspect has no threshold."""
        values = {f"{name}.{key}": value for key, value in self.value.items()} if isinstance(self.value, dict) else {}
        for each, value in (values or {name: self.value}).items():
            number = _number(value)
            yield base.score_of(
                each,
                "custom",
                number,
                passed=number == 1 if number in (0, 1) or isinstance(value, str) else None,
                reason=self.explanation,
                absent=_UNSCORED if value is None or value == {} else None,
                error=None if number is not None else "the file's score is not a number or a grade",
            )


class _Message(base.ImportedShape):
    role: base.AnyText = ""
    content: Json = None
    calls: base.Listed[Json] = base.at("tool_calls", default=())
    call_id: base.OptionalText = base.at("tool_call_id")


class _Used(base.ImportedShape):
    input_tokens: base.Count = None
    output_tokens: base.Count = None


class _Sample(base.ImportedShape):
    id: base.AnyText
    epoch: base.Count = None
    input: Json
    target: Json = None
    messages: base.Listed[_Message] = ()
    completion: base.OptionalText = base.at("output", "completion")
    answer: Json = base.at("output", "choices", 0, "message", "content")
    scores: base.Mapped[_Score] = base.at("scores", default={})
    used: base.Mapped[_Used] = base.at("model_usage", default={})
    error: base.OptionalText = base.at("error", "message")

    @property
    def asked(self) -> str:
        """The question: the input, or its last message of the user."""
        if not isinstance(self.input, list):
            return text_of(self.input)
        messages = [message for message in self.input if isinstance(message, dict)]
        users = [message for message in messages if message.get("role") == "user"]
        return _text((users or messages or [{}])[-1].get("content"))

    def found(self, task: str, model: str) -> base.FoundTest:
        scores = [score for name, each in self.scores.items() for score in each.scores(name)]
        used = self.used.get(model)
        turn = TurnResult(
            index=0,
            input=self.asked,
            ground_truth=text_of(self.target) or None if not isinstance(self.target, list) else None,
            response=None if self.error else self.completion or _text(self.answer),
            tool_calls=list(self._calls()),
            usage=Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens) if used else None,
            error=self.error,
            scores=scores,
        )
        status: CaseStatus = "failed" if any(score.passed is False for score in scores) else "passed"
        if self.error or not any(score.status == "scored" for score in scores):
            status = "error" if self.error or any(score.status == "error" for score in scores) else "skipped"
        iteration = IterationResult(index=0, status=status, score=mean_score([turn]), turns=[turn])
        return base.FoundTest(task, self.id, (turn.input,), iteration)

    def _calls(self) -> Iterator[ToolCall]:
        results = {message.call_id: _text(message.content) for message in self.messages if message.role == "tool"}
        for call in (call for message in self.messages for call in message.calls if isinstance(call, dict)):
            result = results.get(text_of(call.get("id")))
            yield ToolCall(name=text_of(call.get("function")), args=call.get("arguments"), result=result)


class _Log(base.ImportedShape):
    task: base.AnyText = base.at("eval", "task", default=...)
    model: base.AnyText = base.at("eval", "model", default="")
    created: base.OptionalText = base.at("eval", "created")
    version: base.AnyText = base.at("eval", "packages", "inspect_ai", default="")
    started: base.OptionalText = base.at("stats", "started_at")
    samples: base.Listed[_Sample] = ()


def _recognises(content: Any) -> bool:
    evaluation = content.get("eval") if isinstance(content, dict) else None
    return isinstance(evaluation, dict) and "task" in evaluation and {"version", "status"} <= content.keys()


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    log = _Log.model_validate(content)
    # Samples are in the order in which they finished.
    found = [sample.found(log.task, log.model) for sample in sorted(log.samples, key=lambda each: each.epoch or 0)]
    started = log.started or log.created
    return base.run_of(found, suites, _FORMAT, version=log.version, started_at=started)


_WHAT = "a log of Inspect in JSON (inspect eval --log-format json)"
IMPORTER = base.Importer(_FORMAT, "Inspect", _WHAT, _recognises, _read)
