"""Name → metric: where each built-in metric is, loaded when a suite asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from agenteval.metrics.resources.resources import Resources
from agenteval.suite.model import MetricConfig

# Metric type → module and class; imported when a suite asks for it, so that nobody pays for the rest.
REGISTRY: Mapping[str, tuple[str, str]] = {
    "equality": ("agenteval.metrics.text.equality", "Equality"),
    "numeric": ("agenteval.metrics.text.equality", "Numeric"),
    "f1_score": ("agenteval.metrics.text.overlap", "TokenF1"),
    "bleu": ("agenteval.metrics.text.overlap", "Bleu"),
    "rouge": ("agenteval.metrics.text.overlap", "Rouge"),
    "meteor": ("agenteval.metrics.text.meteor", "Meteor"),
    "geval": ("agenteval.metrics.judges.deepeval", "GEval"),
    "rag": ("agenteval.metrics.judges.deepeval", "Rag"),
    "groundedness": ("agenteval.metrics.azure", "AzureMetric"),
    "relevance": ("agenteval.metrics.azure", "AzureMetric"),
    "coherence": ("agenteval.metrics.azure", "AzureMetric"),
    "fluency": ("agenteval.metrics.azure", "AzureMetric"),
    "similarity": ("agenteval.metrics.azure", "AzureMetric"),
    "code": ("agenteval.metrics.code", "CodeGrader"),
    "tools": ("agenteval.metrics.tool_calls", "ExpectedTools"),
    "text_match": ("agenteval.metrics.text.match", "TextMatchMetric"),
    "similar": ("agenteval.metrics.similarity", "Similar"),
    "schema": ("agenteval.metrics.schema", "Schema"),
    "tool_calls": ("agenteval.metrics.tool_calls", "ToolCalls"),
    "safety": ("agenteval.metrics.safety.blocked", "Safety"),
    "judge": ("agenteval.metrics.judges.prompt", "PromptJudge"),
    "custom": ("agenteval.metrics.code", "CustomFunction"),
    "rules": ("agenteval.metrics.rules.rules", "RuleBased"),
    "trace_judge": ("agenteval.metrics.judges.trace", "TraceJudge"),
    # Over all iterations of a case:
    "latency": ("agenteval.metrics.performance", "Latency"),
    "tokens": ("agenteval.metrics.performance", "Tokens"),
    "consistency": ("agenteval.metrics.similarity", "Consistency"),
}


def build(config: MetricConfig, resources: Resources) -> Any:
    """The metric that a configuration describes: a ``Metric``, or a ``CaseMetric``.

    A metric with a field ``resources`` gets those of the run, one with a field ``where`` gets the place
    of its configuration.

    Raises:
        ConfigError: what the metric needs on this machine is missing.
    """
    module, name = REGISTRY[config.type]
    kind = getattr(import_module(module), name)
    offered = {"resources": resources, "where": config.where}
    wanted = {item.name for item in fields(kind)}
    return kind(**config.options, **{key: value for key, value in offered.items() if key in wanted})
