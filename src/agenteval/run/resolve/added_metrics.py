"""Adds the metrics of ``agenteval.yaml`` to suites."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from agenteval.run.config.model import AddedMetric
from agenteval.suite.model import OVERALL, Case, MetricConfig, Suite


def with_added_metrics(suite: Suite, added: Iterable[AddedMetric]) -> Suite:
    """Return the suite with the added metrics that apply to it, after the suite's metrics.

    If a case already has a metric with the same id, the id of the added metric gets the suffix ``#2``.
    """
    chosen = [item for item in added if item.applies_to(suite.path, suite.name)]
    if not chosen:
        return suite
    renamed = _Renamed()
    taken = {metric.id for metric in suite.metrics} | ({OVERALL} if suite.aggregate else set())
    on_traces = [item.metric for item in chosen if not item.over_iterations] if suite.metrics else []
    return replace(
        suite,
        cases=tuple(_with(case, chosen, renamed) for case in suite.cases),
        metrics=(*suite.metrics, *renamed.all(on_traces, taken)),
    )


def _with(case: Case, added: Iterable[AddedMetric], renamed: _Renamed) -> Case:
    wanted = [item for item in added if item.metric.is_for(case.id, case.name, case.tags)]
    taken = {metric.id for metric in case.all_metrics} | ({OVERALL} if case.aggregate else set())
    metrics = renamed.all([item.metric for item in wanted], taken)
    by_turn = [metric for item, metric in zip(wanted, metrics, strict=True) if not item.over_iterations]
    over_iterations = [metric for item, metric in zip(wanted, metrics, strict=True) if item.over_iterations]
    turns = (replace(turn, metrics=(*turn.metrics, *by_turn)) for turn in case.turns) if by_turn else case.turns
    return replace(case, turns=tuple(turns), metrics=(*case.metrics, *over_iterations))


class _Renamed:
    """Renames metrics whose ids are taken; cases that need the same id share the renamed metric."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], MetricConfig] = {}

    def all(self, metrics: Iterable[MetricConfig], taken: Collection[str]) -> list[MetricConfig]:
        """Return the metrics with unique ids that are not taken."""
        used = set(taken)
        found = []
        for metric in metrics:
            name, number = metric.id, 1
            while name in used:
                number += 1
                name = f"{metric.id}#{number}"
            used.add(name)
            found.append(metric if name == metric.id else self._with_id(metric, name))
        return found

    def _with_id(self, metric: MetricConfig, name: str) -> MetricConfig:
        return self._known.setdefault((id(metric), name), replace(metric, id=name))
