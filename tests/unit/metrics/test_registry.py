"""The metric registry: every entry can be loaded."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import cast, get_args

import pytest

from agenteval.core.errors import ConfigError
from agenteval.metrics.registry import METRICS, REGISTRY, MetricType, build, metric_type
from agenteval.metrics.resources import Resources
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
