"""Applies the keys of ``agenteval.yaml`` that concern every suite: criteria, personas, tags and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from agenteval.metrics.registry import is_case_metric
from agenteval.run.config.model import AddedMetric, Config
from agenteval.suite.case_ids import persona_tag
from agenteval.suite.model import Case, MetricConfig, Suite


def with_config_defaults(suite: Suite, config: Config) -> Suite:
    """Return the suite with the configured tags and metrics added; configured criteria and personas are defaults."""
    if config.personas:
        suite = replace(suite, cases=tuple(_with_persona(case, config) for case in suite.cases))
    if config.tags:
        suite = replace(suite, cases=tuple(_with_tags(case, config) for case in suite.cases))
    if config.criteria is not None and suite.evaluation is None:
        from agenteval.suite.evaluation import Evaluation

        suite = replace(suite, evaluation=Evaluation(criteria=config.criteria))
    if config.metrics:
        from agenteval.run.resolve.added_metrics import with_added_metrics

        # After the personas and tags: both are tags, which metrics can select.
        suite = with_added_metrics(suite, config.metrics)
    return suite


def _with_persona(case: Case, config: Config) -> Case:
    if case.persona is not None:
        return case
    for persona, patterns in config.personas.items():
        if any(fnmatchcase(case.name, pattern) for pattern in patterns):
            return replace(case, persona=persona, tags=(*case.tags, persona_tag(persona)))
    return case


def _with_tags(case: Case, config: Config) -> Case:
    found = (
        tag
        for tag, patterns in config.tags.items()
        if any(fnmatchcase(text, pattern) for text in (case.name, case.id) for pattern in patterns)
    )
    return replace(case, tags=tuple(dict.fromkeys((*case.tags, *found))))


def with_metrics(suite: Suite, metrics: Sequence[MetricConfig]) -> Suite:
    """Return the suite with the caller's metrics added."""
    if not metrics:
        return suite
    from agenteval.run.resolve.added_metrics import with_added_metrics

    added = (
        AddedMetric(replace(metric, requested_by="config"), over_iterations=is_case_metric(metric))
        for metric in metrics
    )
    return with_added_metrics(suite, added)
