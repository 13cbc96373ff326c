"""Converts metric entries of a HoloDeck suite to metric configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.documents.document import variables_of_files
from agenteval.core.llm.spec import UNNAMED_JUDGE, ModelSpec
from agenteval.suite.formats.holodeck.legacy import is_legacy, legacy_config
from agenteval.suite.formats.holodeck.schema import (
    AgentFile,
    AnyMetric,
    CodeMetric,
    ExpectedTool,
    GEvalMetric,
    ModelEntry,
    RagMetric,
    StandardMetric,
)
from agenteval.suite.model import MetricConfig, Place, Scope

# Metrics that need a ground truth.
NEED_GROUND_TRUTH = frozenset({"equality", "numeric", "f1_score", "bleu", "rouge", "meteor", "similarity"})

# Options of each standard metric.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "equality": ("case_insensitive", "strip_whitespace", "strip_punctuation"),
    "numeric": (
        "absolute_tolerance",
        "relative_tolerance",
        "accept_percent",
        "accept_thousands_separators",
    ),
    "rouge": ("variant",),
}
_JUDGE_THRESHOLD = 0.5


def metric_name(entry: AnyMetric) -> str:
    """Return the name of a metric in reports: its name, else its kind."""
    if isinstance(entry, StandardMetric):
        return entry.metric
    if isinstance(entry, RagMetric):
        return entry.metric_type
    if isinstance(entry, CodeMetric):
        return entry.name or entry.grader.partition(":")[2]
    return entry.name


def metric_config(entry: AnyMetric, unique: str, scope: Scope, judge: ModelSpec, where: Place) -> MetricConfig:
    """Return the configuration of a metric entry.

    Args:
        entry: the metric as written.
        unique: id inside the case.
        scope: level of the suite that lists it.
        judge: default judge model.
        where: position in the suite.
    """
    asked = MetricConfig(
        id=unique,
        type=entry.type,
        kind=entry.type,
        fail_on_error=entry.fail_on_error,
        requested_by=scope,
        where=where,
    )
    if isinstance(entry, StandardMetric):
        standard = replace(
            asked,
            type=entry.metric,
            threshold=_scaled_threshold(entry),
            options={name: getattr(entry, name) for name in _OPTIONS.get(entry.metric, ())},
            response_path=entry.response_path,
            retries=entry.retry_on_failure or 0,
            timeout_s=entry.timeout_ms / 1000 if entry.timeout_ms else None,
        )
        return legacy_config(standard, entry, judge_of(entry, judge)) if is_legacy(entry) else standard
    if isinstance(entry, CodeMetric):
        return replace(asked, threshold=entry.threshold, options={"grader": entry.grader})
    threshold = _JUDGE_THRESHOLD if entry.threshold is None else entry.threshold
    return replace(asked, threshold=threshold, options={**_judge_options(entry), "model": judge_of(entry, judge)})


def judge_of(entry: StandardMetric | GEvalMetric | RagMetric, default: ModelSpec) -> ModelSpec:
    """Return the judge model of a metric: its model, else the default."""
    return default if entry.model is None else judge_spec(entry.model)


def _judge_options(entry: GEvalMetric | RagMetric) -> dict[str, Any]:
    if isinstance(entry, RagMetric):
        return {"metric_type": entry.metric_type, "include_reason": entry.include_reason}
    return {
        "name": entry.name,
        "criteria": entry.criteria,
        "evaluation_steps": tuple(entry.evaluation_steps) if entry.evaluation_steps else None,
        "evaluation_params": tuple(entry.evaluation_params),
        "strict_mode": entry.strict_mode,
    }


def judge_spec(entry: ModelEntry, temperature: float = 0.0) -> ModelSpec:
    """Return a judge model, by default at temperature 0."""
    return ModelSpec(
        provider=entry.provider,
        name=entry.name,
        temperature=temperature if entry.temperature is None else entry.temperature,
        max_tokens=entry.max_tokens,
        top_p=entry.top_p,
        endpoint=entry.endpoint,
        api_key=entry.api_key,
        api_version=entry.api_version,
    ).with_key_of(variables_of_files())


def default_judge(entry: AgentFile | None) -> ModelSpec:
    """Return the default judge: ``evaluations.model``, else the agent's model, else Ollama's."""
    if entry is not None and entry.evaluations is not None and entry.evaluations.model is not None:
        return judge_spec(entry.evaluations.model)
    if entry is not None and entry.model is not None:
        # The agent's temperature is for answers, not for judging.
        return replace(judge_spec(entry.model), temperature=0.0)
    return UNNAMED_JUDGE


def _scaled_threshold(entry: StandardMetric) -> float | None:
    """Return the threshold on 0..1: with ``scale: 5``, 4 means 4 of 5."""
    if entry.threshold is None or entry.scale is None or entry.threshold <= 1:
        return entry.threshold
    return entry.threshold / entry.scale


def expected_tools(expected: Sequence[ExpectedTool], others: Sequence[MetricConfig], where: Place) -> MetricConfig:
    """Return the metric for ``expected_tools``; another metric with the name ``tools`` keeps it."""
    taken = any(metric.id == "tools" for metric in others)
    return MetricConfig(
        id="tools#2" if taken else "tools",
        type="tools",
        kind="tools",
        options={"expected": [entry.model_dump() for entry in expected]},
        requested_by="turn",
        where=where,
    )
