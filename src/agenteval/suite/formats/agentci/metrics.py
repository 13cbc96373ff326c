"""Converts the expectations of an AgentCI case to metrics."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import Problem
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.core.records import dataclass, field, replace
from agenteval.suite.formats.agentci.output import Expected, exact_text, judge_options
from agenteval.suite.formats.agentci.schema import EvalEntry, EvaluationCase, LatencyEntry, RangeEntry, TokensEntry
from agenteval.suite.formats.base import Findings
from agenteval.suite.forms import FieldSpec, TextMatch
from agenteval.suite.model import AnswerPlace, MetricConfig, MetricKind, Place

_FILE = "safety_templates.toml"


class SafetyCase(BaseModel):
    """One case of a template; its file describes the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocked: bool
    prompt: str | None = None
    tool: str | None = None
    agents_only: bool = False
    filler: str = ""
    filler_times: int = Field(0, ge=0)
    marks: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    traceless: bool = False
    slow_ms: float | None = None

    def question(self, kind: str) -> str | None:
        """Return the question for an ``agent`` or a ``tool``; ``None`` if the case is not for it."""
        if kind == "tool":
            return None if self.agents_only else (self.tool or self._full_prompt())
        return self._full_prompt()

    def _full_prompt(self) -> str | None:
        return None if self.prompt is None else self.filler * self.filler_times + self.prompt


class SafetyTemplate(BaseModel):
    """Cases of one kind of attack; its ``marks`` and ``safe`` apply to all cases that must be blocked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    marks: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    cases: tuple[SafetyCase, ...]

    def all_cases(self) -> tuple[SafetyCase, ...]:
        """Return the cases with their common fields."""
        return tuple(
            case.model_copy(update={"marks": case.marks + self.marks, "safe": case.safe + self.safe})
            if case.blocked
            else case
            for case in self.cases
        )


def template_names() -> Sequence[str]:
    """Return the names of all templates."""
    return tuple(_templates())


def template_cases(name: str) -> Sequence[SafetyCase]:
    """Return the cases of one template."""
    return _templates()[name]


@cache
def _templates() -> dict[str, tuple[SafetyCase, ...]]:
    text = files("agenteval.suite.formats.agentci").joinpath(_FILE).read_text(encoding="utf-8")
    return {name: SafetyTemplate.model_validate(entry).all_cases() for name, entry in tomllib.loads(text).items()}


_DEFAULT_SIMILARITY = 1.0
# Types of evaluations that compare the answer with `output`.
_COMPARE_OUTPUT = frozenset({"accuracy", "semantic"})
_MINIMA = frozenset({"minimum", "input_min", "output_min"})


@dataclass(frozen=True)
class Question:
    """One case, for an agent or a tool.

    Attributes:
        prompt: question for an agent; default: the context.
        argument: argument of a tool in a case without context; ``None`` means the prompt.
        tools: the metric of an agent's tool calls; not used for a tool.
        answer_at: where the file has the whole text that is expected; ``None`` if it expects anything else.
    """

    prompt: str | None = None
    argument: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    metrics: tuple[MetricConfig, ...] = ()
    tools: tuple[MetricConfig, ...] = ()
    case_metrics: tuple[MetricConfig, ...] = ()
    agents_only: bool = False
    tools_only: bool = False
    answer_at: AnswerPlace | None = None

    def input(self, kind: str) -> str | None:
        """Return the question for an ``agent`` or a ``tool``; ``None`` if the case is not for it."""
        if (kind == "agent" and self.tools_only) or (kind == "tool" and self.agents_only):
            return None
        if kind == "tool" and self.argument is not None:
            return self.argument
        if self.prompt is not None:
            return self.prompt
        return json.dumps(self.context, ensure_ascii=False) if self.context else ""

    def turn_metrics(self, kind: str) -> tuple[MetricConfig, ...]:
        """Return the metrics of an answer of an ``agent`` or a ``tool``."""
        return self.metrics if kind == "tool" else (*self.metrics, *self.tools)


class MetricReader(Findings):
    """Reads the expectations of one file."""

    def __init__(
        self, entry: EvalEntry, document: Document, base: Path, problems: list[Problem], warnings: list[str]
    ) -> None:
        self._entry = entry
        self.document = document
        self._base = base
        self.problems = problems
        self.warnings = warnings
        self._embedder = self._embedding_model()
        self._judge = self._judge_model()
        self._judge_options = judge_options(entry, document, problems, warnings) if entry.type == "llm" else None

    def question(self, case: EvaluationCase, expected: Expected, at: KeyPath) -> Question:
        """Return the question and metrics of a case; ``expected`` is its ``output``."""
        metrics, tools, over_iterations = self._metrics(case, expected, at)
        return Question(
            prompt=case.prompt,
            context=case.context or {},
            line=self.document.line(at),
            metrics=metrics,
            tools=tools,
            case_metrics=over_iterations,
            answer_at=self._answer_at(case, at),
        )

    def _answer_at(self, case: EvaluationCase, at: KeyPath) -> AnswerPlace | None:
        found = exact_text(case.output, (*at, "output")) if self._entry.type in _COMPARE_OUTPUT else None
        return None if found is None else AnswerPlace(self.document.file, tuple(found[0]), found[1])

    def template_question(self, case: SafetyCase, at: KeyPath) -> Question:
        """Return a case of a safety template."""
        options = {
            "blocked": case.blocked,
            "marks": case.marks,
            "safe": case.safe,
            "traceless": case.traceless,
            "slow_ms": case.slow_ms,
            **self._safety_judge(None),
        }
        return Question(
            prompt=case.question("agent"),
            argument=case.question("tool"),
            line=self.document.line(at),
            metrics=(self._config("safety", "safety", options, at),),
            tools_only=case.prompt is None,
            agents_only=case.agents_only,
        )

    def _metrics(
        self, case: EvaluationCase, expected: Expected, at: KeyPath
    ) -> tuple[tuple[MetricConfig, ...], tuple[MetricConfig, ...], tuple[MetricConfig, ...]]:
        """Return the metrics of one answer, of an agent's tool calls, and of all iterations."""
        kind = self._entry.type
        if kind in _COMPARE_OUTPUT:
            return self._accuracy(case, expected, at)
        if kind == "performance":
            return (), (), self._performance(case, at)
        if kind == "safety":
            return self._safety(case, at), (), ()
        if kind == "consistency":
            return (), (), (self._consistency(case, at),)
        if kind == "llm":
            return self._llm(case, at), (), ()
        return self._custom(case), (), ()

    def _accuracy(
        self, case: EvaluationCase, expected: Expected, at: KeyPath
    ) -> tuple[tuple[MetricConfig, ...], tuple[MetricConfig, ...], tuple[MetricConfig, ...]]:
        metrics = () if expected is None else (self._expected(expected, (*at, "output")),)
        calls: tuple[MetricConfig, ...] = ()
        if case.tools == []:
            self._warn((*at, "tools"), "an empty list checks nothing")
        if case.tools:
            expected_calls = tuple({"name": call.name, "args": call.args} for call in case.tools)
            calls = (self._config("tools", "tool_calls", {"expected": expected_calls}, (*at, "tools")),)
            if not self._entry.targets.agents:
                self._warn((*at, "tools"), "only agents call tools, and no agent is a target; not checked")
        if case.output is None and not case.tools:
            if self._entry.type == "accuracy" and not self._has_name_of_other_tools(at):
                self._problem(at, "a case of type accuracy needs `output` or `tools`")
            else:
                self._warn(at, "this case expects nothing, so nothing can be checked")
        return metrics, calls, ()

    def _expected(self, expected: TextMatch | FieldSpec, at: KeyPath) -> MetricConfig:
        if isinstance(expected, FieldSpec):
            return self._config("schema", "schema", {"schema": expected, "model": self._embedder}, at)
        if expected.strategy == "similar":
            options = {"reference": expected.expected[0], "model": self._embedder}
            return self._config("match", "similar", options, at, threshold=expected.threshold, name="similar")
        config = self._config("match", "text_match", {"match": expected}, at)
        return replace(config, gating=not expected.matches_everything)

    def _performance(self, case: EvaluationCase, at: KeyPath) -> tuple[MetricConfig, ...]:
        if case.latency is None and case.tokens is None:
            self._problem(at, "a case of type performance needs `latency` or `tokens`")
        found = []
        if case.latency is not None and (limits := _latency_limits(case.latency)):
            found.append(self._limited("latency", limits, (*at, "latency")))
        if case.tokens is not None and (counts := _token_limits(case.tokens)):
            found.append(self._limited("tokens", counts, (*at, "tokens")))
        if not found and (case.latency is not None or case.tokens is not None):
            self._warn(at, "no limit is given, so nothing can be checked")
        return tuple(found)

    def _limited(self, name: str, limits: Mapping[str, float], at: KeyPath) -> MetricConfig:
        config = self._config("performance", name, limits, at, name=name)
        if any(limit > 0 or key not in _MINIMA for key, limit in limits.items()):
            return config
        self._warn(at, "no value is below 0, so this checks nothing")
        return replace(config, gating=False)

    def _safety(self, case: EvaluationCase, at: KeyPath) -> tuple[MetricConfig, ...]:
        if case.blocked is None:
            self._problem(at, "a case of type safety needs `blocked = true` or `blocked = false`")
            return ()
        if case.response_type not in {None, "blocked"} and self._judge is None:
            message = f"that the answer is a {case.response_type!r} is checked only with a judge"
            self._warn((*at, "response_type"), message)
        options = {"blocked": case.blocked, **self._safety_judge(case.response_type)}
        return (self._config("safety", "safety", options, (*at, "blocked")),)

    def _safety_judge(self, response_type: str | None) -> dict[str, Any]:
        prompt = self._entry.llm.prompt if self._entry.llm is not None else None
        return {"model": self._judge, "judge_prompt": prompt, "response_type": response_type}

    def _consistency(self, case: EvaluationCase, at: KeyPath) -> MetricConfig:
        least = _DEFAULT_SIMILARITY if case.min_similarity is None else case.min_similarity
        if not least:
            self._warn((*at, "min_similarity"), "all answers reach a similarity of 0, so this checks nothing")
        options = {"min_similarity": least, "model": self._embedder}
        return self._config("consistency", "consistency", options, at, threshold=least)

    def _llm(self, case: EvaluationCase, at: KeyPath) -> tuple[MetricConfig, ...]:
        if case.score is None:
            self._problem(at, "a case of type llm needs `score`, for instance { min = 7 }")
        if case.score is None or self._judge is None or self._judge_options is None:
            return ()
        limits = case.score.model_dump()
        if all(limit is None for limit in limits.values()):
            self._warn((*at, "score"), "no limit is given, so the score is only shown")
        options = {
            **self._judge_options,
            "model": self._judge,
            "limits": limits,
            "criteria": tuple(case.criteria or ()),
            "reference": case.reference_response,
            "context": case.context or {},
        }
        config = self._config("judge", "judge", options, (*at, "score"))
        low, high = self._judge_options["scale"]
        if not _allows_all(case.score, low, high):
            return (config,)
        self._warn(
            (*at, "score"), f"every score from {low:g} to {high:g} is within the limits, so this checks nothing"
        )
        return (replace(config, gating=False),)

    def _custom(self, case: EvaluationCase) -> tuple[MetricConfig, ...]:
        custom = self._entry.custom
        if custom is None:
            return ()
        options = {
            "function": f"{custom.module}:{custom.function}",
            "parameters": case.parameters or {},
            "prompt": case.prompt,
            "context": case.context,
        }
        return (self._config("custom", "custom", options, ("eval", "custom", "module")),)

    def _config(
        self,
        kind: MetricKind,
        metric: str,
        options: Mapping[str, Any],
        at: KeyPath,
        *,
        threshold: float | None = None,
        name: str | None = None,
    ) -> MetricConfig:
        return MetricConfig(
            id=name or kind,
            type=metric,
            kind=kind,
            threshold=threshold,
            options=options,
            requested_by="case",
            where=Place(str(self._base), self.document.file, self.document.line(at)),
        )

    def _judge_model(self) -> ModelSpec | None:
        llm = self._entry.llm
        if llm is None:
            return None
        temperature = 0.0 if llm.temperature is None else llm.temperature
        try:
            return chat_model(llm.model, temperature, llm.max_tokens)
        except ValueError as error:
            self._problem(("eval", "llm", "model"), str(error))
            return None

    def _embedding_model(self) -> ModelSpec | None:
        named = self._entry.consistency.model if self._entry.consistency is not None else None
        try:
            return None if named is None else embedding_model(named)
        except ValueError as error:
            self._problem(("eval", "consistency", "model"), str(error))
            return None

    def _has_name_of_other_tools(self, at: KeyPath) -> bool:
        """Return whether a case expects something under a name like ``expected``, which is a problem already."""
        start = self.document.problem((*at, "expected"), "").path
        return any(problem.path.startswith(start) for problem in self.problems)


def _allows_all(limits: RangeEntry, low: float, high: float) -> bool:
    """Return whether limits, if there are any, exclude no score of a scale."""
    is_open = (limits.min is None or limits.min <= low) and (limits.max is None or limits.max >= high)
    return is_open and limits.equal is None and (limits.min is not None or limits.max is not None)


def _latency_limits(entry: LatencyEntry) -> dict[str, float]:
    limits = {"minimum": entry.min, "maximum": entry.max, "equal": entry.equal}
    return {name: value for name, value in limits.items() if value is not None}


def _token_limits(entry: TokensEntry) -> dict[str, int]:
    named = {"min": "minimum", "max": "maximum"}
    return {named.get(name, name): value for name, value in entry.model_dump(exclude_none=True).items()}
