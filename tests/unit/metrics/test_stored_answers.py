"""Which metrics score stored answers again, and which need more than the answer."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.metrics.registry import METRICS
from agenteval.metrics.rules import scores_stored_answers
from agenteval.suite.forms import FieldSpec, TextMatch
from agenteval.suite.model import MetricConfig

# Type → whether it scores stored answers; the others ask a model, reach a service, or run user code.
KINDS = {
    **dict.fromkeys(("equality", "numeric", "f1_score", "bleu", "rouge", "meteor", "text_match"), True),
    **dict.fromkeys(("tools", "tool_calls", "latency", "tokens", "schema", "rules"), True),
    **dict.fromkeys(("geval", "rag", "judge", "trace_judge", "safety"), False),
    **dict.fromkeys(("groundedness", "relevance", "coherence", "fluency", "similarity"), False),
    **dict.fromkeys(("similar", "consistency", "code", "custom", "python"), False),
}
PLAIN: dict[str, dict[str, Any]] = {"schema": {"schema": FieldSpec()}, "rules": {"rules": [{"check": "contains"}]}}


def config(name: str, **options: Any) -> MetricConfig:
    return MetricConfig(name, name, "standard", options=options)


def test_every_registered_metric() -> None:
    assert {
        item.name: scores_stored_answers(config(item.name, **PLAIN.get(item.name, {}))) for item in METRICS
    } == KINDS


@pytest.mark.parametrize(
    ("metric", "scores"),
    [
        (config("schema", schema=FieldSpec(fields={"a": FieldSpec(text=TextMatch("similar", ("x",)))})), False),
        (
            config("rules", rules=[{"check": "similarity", "method": "embedding", "expected_path": "expected.a"}]),
            False,
        ),
        (config("rules", rules=[{"check": "success"}, {"check": "contains", "target": "metadata.plan"}]), False),
        (MetricConfig("equality", "equality", "standard", metric=object()), False),
    ],
)
def test_the_options_and_the_object_of_a_caller_decide(metric: MetricConfig, *, scores: bool) -> None:
    assert scores_stored_answers(metric) is scores
