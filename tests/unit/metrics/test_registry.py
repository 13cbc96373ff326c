"""The metric registry: every entry can be loaded, and says what it needs."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, cast, get_args

import pytest

from agenteval.core.errors import ConfigError
from agenteval.metrics.registry import METRICS, REGISTRY, MetricType, build, metric_type
from agenteval.metrics.resources import Resources
from agenteval.metrics.rules import scores_stored_answers
from agenteval.suite.forms import FieldSpec, TextMatch
from agenteval.suite.model import MetricConfig, MetricKind


@pytest.mark.parametrize("item", METRICS, ids=lambda item: item.name)
def test_every_line_leads_to_a_metric(item: MetricType) -> None:
    found = item.load()
    assert is_dataclass(found)
    assert hasattr(found, "measure") != hasattr(found, "measure_all")
    assert item.kind in get_args(MetricKind)
    assert "." not in item.name, "names with a dot belong to other distributions"
    assert item.summary


def test_every_name_is_registered_once() -> None:
    assert len(REGISTRY) == len(METRICS)


def test_requirements_and_options() -> None:
    assert REGISTRY["numeric"].requires == frozenset({"ground_truth"})
    assert REGISTRY["latency"].requires == frozenset()
    assert REGISTRY["rag"].requires is None
    assert REGISTRY["rouge"].options == ("variant",)
    assert REGISTRY["code"].options == ("grader",)


def test_an_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(ConfigError, match=r"^no metric 'f1_scor'; did you mean 'f1_score'\?$"):
        metric_type("f1_scor")
    with pytest.raises(ConfigError, match=r"no metric 'acme.toxicity'"):
        build(MetricConfig("a", "acme.toxicity", "custom"), cast(Resources, None))


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
