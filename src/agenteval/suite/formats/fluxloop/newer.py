"""Reads the ``evaluation.yaml`` of FluxLoop 0.2.31 and newer as one of the older format: each metric is a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from agenteval.core.document import Document
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import replace
from agenteval.core.validation import validate
from agenteval.suite.formats.fluxloop.schema import Entry, GoalEntry, Number

# What each metric asks, and FluxLoop's `fair`: the percentage of traces from which the metric is not "poor" any more.
_METRICS: Mapping[str, tuple[str, float]] = {
    "task_completion": ("Did the agent do all of what the user asked for?", 60),
    "hallucination": ("Is every specific fact in the answer backed by what the agent's tools returned?", 15),
    "relevance": ("Is the answer about what the user asked, without much that is not?", 80),
    "tool_usage_appropriateness": ("Did the agent use the right tools, in a safe order and not too often?", 80),
    "user_satisfaction": ("Would this user be content with tone, empathy and length of the answer?", 50),
    "clarity": ("Is the answer well ordered and easy to understand, without contradictions or repetition?", 80),
    "persona_consistency": ("Do tone, depth and words of the answer fit the persona of this user?", 70),
}
# Its thresholds are percentages of traces with a fault.
_OF_FAULTS = "hallucination"
_PROMPT = """\
{question}

Who asked: {{persona}}
The user's message: {{input}}
What was said before: {{history}}
What the agent did: {{observations}}
The agent's answer: {{output}}

Give 1 if so, and 0 if not. Reply with two lines and nothing else:
Score: <number>
Reason: <one sentence>
"""
_MODEL = "gpt-4o"


class SharesEntry(Entry):
    """``thresholds`` of a metric, in percent of the traces."""

    good: Number | None = Field(None, ge=0, le=100)
    fair: Number | None = Field(None, ge=0, le=100)


class RowEntry(Entry):
    """One of ``metrics``"""

    enabled: bool = True
    thresholds: SharesEntry = Field(default_factory=SharesEntry)


class LlmJudgeEntry(Entry):
    """``advanced.llm_judge``"""

    model: str = Field(_MODEL, min_length=1)
    temperature: Number = Field(0.0, ge=0, le=2)
    max_tokens: int | None = Field(None, gt=0)


class NewerAdvancedEntry(Entry):
    """``advanced``"""

    llm_judge: LlmJudgeEntry = Field(default_factory=LlmJudgeEntry)
    filters: dict[str, Any] = Field(default_factory=dict)
    overall_success: dict[str, Any] = Field(default_factory=dict)


class NewerFile(Entry):
    """The whole file."""

    evaluation_goal: str | GoalEntry = ""
    metrics: dict[str, RowEntry] = Field(default_factory=dict)
    efficiency: dict[str, dict[str, Any]] = Field(default_factory=dict)
    output: dict[str, Any] = Field(default_factory=dict)
    advanced: NewerAdvancedEntry = Field(default_factory=NewerAdvancedEntry)
    agent: Any = None


def is_newer(data: Mapping[str, Any]) -> bool:
    """Return whether a file has the keys of the newer format."""
    has_goal = isinstance(data.get("evaluation_goal"), str)
    return "evaluators" not in data and (has_goal or not {"metrics", "efficiency"}.isdisjoint(data))


def as_older(document: Document, problems: Iterable[Problem]) -> Document:
    """Return a file of the newer format as one of the older, with a warning of what has no counterpart in it."""
    file, found = validate(NewerFile, document.data, document)
    if file is None:
        raise ConfigError([*problems, *found])
    rows = {name: row for name in _METRICS if (row := file.metrics.get(name, RowEntry())).enabled}
    unused = ", ".join(_unused(file))
    message = (
        "agenteval reads the format of FluxLoop up to 0.2.30; of this newer one, each of `metrics` is a judge, "
        "and its `fair` the required share"
    )
    note = str(document.problem((), f"{message}{unused and f'; not used: {unused}'}"))
    goal, judge = file.evaluation_goal, file.advanced.llm_judge
    parameters = {"temperature": judge.temperature, "max_tokens": judge.max_tokens}
    evaluators = [
        {
            "name": name,
            "type": "llm_judge",
            "model": judge.model,
            "model_parameters": {key: value for key, value in parameters.items() if value is not None},
            "prompt_template": _PROMPT.format(question=_METRICS[name][0]),
            "max_score": 1,
            "parser": "first_float",
        }
        for name in rows
    ]
    older = {
        "evaluation_goal": {"text": goal.text if isinstance(goal, GoalEntry) else goal},
        "evaluators": evaluators,
        "limits": {"max_llm_calls": None},
        "success_criteria": {"quality": {name: _share(name, row) for name, row in rows.items()}},
        "additional_analysis": {
            "persona": {"enabled": _is_enabled(file, "persona_gap")},
            "performance": {"detect_outliers": _is_enabled(file, "latency")},
        },
        "agent": file.agent,
    }
    return replace(document, data=older, warnings=(*document.warnings, note))


def _share(name: str, row: RowEntry) -> float:
    fair = _METRICS[name][1] if row.thresholds.fair is None else row.thresholds.fair
    return (100 - fair if name == _OF_FAULTS else fair) / 100


def _is_enabled(file: NewerFile, card: str) -> bool:
    return bool(file.efficiency.get(card, {}).get("enabled", True))


def _unused(file: NewerFile) -> Iterator[str]:
    yield from (f"metrics.{name}" for name in file.metrics if name not in _METRICS)
    if any(row.thresholds.good is not None for row in file.metrics.values()):
        yield "metrics.*.thresholds.good"
    yield from (f"efficiency.{name}" for name in file.efficiency if name not in {"persona_gap", "latency"})
    keys = ("outlier_mode", "std_multiplier", "absolute_threshold")
    yield from (f"efficiency.latency.{key}" for key in keys if key in file.efficiency.get("latency", {}))
    if file.output:
        yield "output"
    yield from (f"advanced.filters.{key}" for key, value in file.advanced.filters.items() if value)
    if file.advanced.overall_success.get("custom_rules"):
        yield "advanced.overall_success.custom_rules"
