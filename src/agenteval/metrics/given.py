"""Metrics that a caller in this process passes as objects."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator

from agenteval.core.arguments import problems
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.metrics.base import CaseMetric, Metric, metric_problem
from agenteval.suite.model import MetricConfig

if TYPE_CHECKING:
    from agenteval.metrics.resources.resources import Resources

_RESOURCES = "resources"
# The same limit as for metrics of agenteval.yaml.
_TIMEOUT_S = 60.0
# The boundary between the words of `TokenCount`; none inside an abbreviation.
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _checked(metric: Any) -> Any:
    """Raise ``ValueError`` if a value is neither a metric nor its configuration."""
    if isinstance(metric, MetricConfig):
        found = problems(metric, MetricConfig, "metric")
        if found:
            raise ValueError("; ".join(map(str, found)))
        problem = metric_problem(metric.metric) if metric.metric is not None else None
    else:
        problem = metric_problem(metric)
    if problem is not None:
        raise ValueError(problem)
    return metric


#: A metric of a caller: an instance, or a configuration that names it.
GivenMetric = Annotated[Metric | CaseMetric | MetricConfig, PlainValidator(_checked)]


def given_metric(metric: GivenMetric) -> MetricConfig:
    """Return the configuration of a metric that a caller passes.

    The metric is named after its class, ``token_count`` for ``TokenCount``; its errors make the case an error.

    Raises:
        ConfigError: its options cannot be identified.
    """
    if isinstance(metric, MetricConfig):
        return replace(metric, timeout_s=metric.timeout_s or _TIMEOUT_S)
    cls = type(metric)
    config = MetricConfig(
        id=_WORD.sub("_", cls.__name__).lower(),
        type=f"{cls.__module__}.{cls.__qualname__}",
        kind="custom",
        options={name: getattr(metric, name) for name in _fields(metric) if name != _RESOURCES},
        timeout_s=_TIMEOUT_S,
        metric=metric,
    )
    try:
        # Compared with that of other runs.
        _ = config.content
    except Exception as error:  # noqa: BLE001 - the options may be any objects
        raise ConfigError(
            Problem(f"the options of {cls.__name__} have no text form: {error}", path="metrics", kind=Kind.USER_CODE)
        ) from None
    return config


def with_resources(metric: Any, resources: Resources) -> Any:
    """Return a caller's metric; its field ``resources``, if it has one, is set to those of the run.

    Raises:
        ConfigError: the metric refuses them.
    """
    if _RESOURCES not in _fields(metric):
        return metric
    try:
        return replace(metric, resources=resources)
    except Exception as error:  # noqa: BLE001 - code of the caller
        message = f"{type(metric).__name__} cannot be made with `resources`: {type(error).__name__}: {error}"
        raise ConfigError(Problem(message, path="metrics", kind=Kind.USER_CODE)) from None


def _fields(metric: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(metric) if item.init) if is_dataclass(metric) else ()
