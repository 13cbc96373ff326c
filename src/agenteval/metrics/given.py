"""Metrics that a caller in this process gives as objects."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import ConfigError, Problem
from agenteval.suite.model import MetricConfig

if TYPE_CHECKING:
    from agenteval.metrics.base import CaseMetric, Metric
    from agenteval.metrics.resources.resources import Resources

_RESOURCES = "resources"
# As for metrics of agenteval.yaml.
_TIMEOUT_S = 60.0
# Between the words of `TokenCount`, but not inside an abbreviation.
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def given_metric(metric: Metric | CaseMetric | MetricConfig) -> MetricConfig:
    """Return the configuration of a metric that a caller gives.

    A metric is named by its class, ``token_count`` for ``TokenCount``; its errors make a case an error.

    Raises:
        ConfigError: it has neither ``measure`` nor ``measure_all``.
    """
    if isinstance(metric, MetricConfig):
        # A caller's metric that fails must not pass unnoticed; suites say otherwise themselves.
        return replace(metric, fail_on_error=True, timeout_s=metric.timeout_s or _TIMEOUT_S)
    cls = type(metric)
    if isinstance(metric, type) or not (hasattr(metric, "measure") or hasattr(metric, "measure_all")):
        what = f"the class {metric.__name__}" if isinstance(metric, type) else repr(cls.__name__)
        raise ConfigError(Problem(f"metrics: {what} is not a metric; give an instance with `measure`"))
    return MetricConfig(
        id=_WORD.sub("_", cls.__name__).lower(),
        type=f"{cls.__module__}.{cls.__qualname__}",
        kind="custom",
        options={name: getattr(metric, name) for name in _fields(metric) if name != _RESOURCES},
        fail_on_error=True,
        timeout_s=_TIMEOUT_S,
        metric=metric,
    )


def with_resources(metric: Any, resources: Resources) -> Any:
    """Return a metric that a caller gave; its field ``resources``, if it has one, receives those of the run."""
    return replace(metric, resources=resources) if _RESOURCES in _fields(metric) else metric


def _fields(metric: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(metric) if item.init) if is_dataclass(metric) else ()
