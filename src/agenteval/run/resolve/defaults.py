"""Applies the keys of ``agenteval.yaml`` that concern every suite: criteria, personas and metrics."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from agenteval.run.config.model import Config
from agenteval.suite.model import Case, Suite


def with_config_defaults(suite: Suite, config: Config) -> Suite:
    """The suite with the metrics of the configuration, and with its criteria and personas where it has none."""
    if config.personas:
        suite = replace(suite, cases=tuple(_with_persona(case, config) for case in suite.cases))
    if config.criteria is not None and suite.evaluation is None:
        from agenteval.suite.evaluation import Evaluation

        suite = replace(suite, evaluation=Evaluation(criteria=config.criteria))
    if config.metrics:
        from agenteval.run.resolve.added_metrics import with_added_metrics

        # After personas, which are tags.
        suite = with_added_metrics(suite, config.metrics)
    return suite


def _with_persona(case: Case, config: Config) -> Case:
    if case.persona is not None:
        return case
    for persona, patterns in config.personas.items():
        if any(fnmatchcase(case.name, pattern) for pattern in patterns):
            return replace(case, persona=persona, tags=(*case.tags, f"persona:{persona}"))
    return case
