"""Gives every suite what ``agenteval.yaml`` wants of all of them: criteria on the run, and who asks which case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from agenteval.metrics.registry import is_case_metric
from agenteval.run.config.model import Config
from agenteval.suite.model import Case, MetricConfig, Suite


def with_config_defaults(suite: Suite, config: Config) -> Suite:
    """The suite with the criteria and personas of the configuration, where it has none of its own."""
    if config.personas:
        suite = replace(suite, cases=tuple(_with_persona(case, config) for case in suite.cases))
    if config.criteria is not None and suite.evaluation is None:
        from agenteval.suite.evaluation import Evaluation

        suite = replace(suite, evaluation=Evaluation(criteria=config.criteria))
    return suite


def _with_persona(case: Case, config: Config) -> Case:
    if case.persona is not None:
        return case
    for persona, patterns in config.personas.items():
        if any(fnmatchcase(case.name, pattern) for pattern in patterns):
            return replace(case, persona=persona, tags=(*case.tags, f"persona:{persona}"))
    return case


def with_metrics(suite: Suite, metrics: Sequence[MetricConfig]) -> Suite:
    """Return the suite with further metrics on every case; a second one of the same id gets ``#2``."""
    if not metrics:
        return suite
    return replace(suite, cases=tuple(_with_metrics(case, metrics) for case in suite.cases))


def _with_metrics(case: Case, metrics: Sequence[MetricConfig]) -> Case:
    taken = {metric.id for metric in case.all_metrics}
    of_turns: list[MetricConfig] = []
    of_case: list[MetricConfig] = []
    for metric in metrics:
        number, id_ = 1, metric.id
        while id_ in taken:
            number += 1
            id_ = f"{metric.id}#{number}"
        taken.add(id_)
        (of_case if is_case_metric(metric) else of_turns).append(replace(metric, id=id_))
    turns = tuple(replace(turn, metrics=(*turn.metrics, *of_turns)) for turn in case.turns)
    return replace(case, turns=turns, metrics=(*case.metrics, *of_case))
