"""Runs the program's own gate on simulated pull requests, which hold their values in arrays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from benchmarks.gate import reference

from agenteval.gate.decide import Evidence, decide, prove
from agenteval.gate.proof import Ask, GateOutcome
from agenteval.gate.values import Constants, GateMetric, Pass, Values

Arrays = dict[str, np.ndarray]
Again = Callable[[str, np.ndarray], Arrays]
Found = TypeVar("Found")
_SHARDS = 3


def values_of(array: np.ndarray) -> Values:
    """Return an array (cases, passes) as values; cases are called by their row."""
    return {
        f"{row:03}": [None if np.isnan(value) else float(value) for value in values]
        for row, values in enumerate(array)
    }


def run_of(arrays: Arrays) -> dict[str, Values]:
    """Return a run of arrays as values by metric."""
    return {name: values_of(array) for name, array in arrays.items()}


def metrics_of(metrics: Mapping[str, reference.Metric]) -> dict[str, GateMetric]:
    """Return the metrics of the reference as those of the program."""
    return {name: GateMetric(metric.threshold, metric.slack) for name, metric in metrics.items()}


def answered(asking: Generator[Ask, Pass, Found], again: Again) -> Found:
    """Answer what a generator asks for with simulated passes, and return what it returns."""
    try:
        ask = next(asking)
        while True:
            rows = np.array([int(case) for case in ask.cases])
            seen = again(ask.side, rows)
            ask = asking.send(
                {
                    name: {case: None if np.isnan(x) else float(x) for case, x in zip(ask.cases, column, strict=True)}
                    for name, column in seen.items()
                }
            )
    except StopIteration as end:
        found: Found = end.value
        return found


def gate(
    first: Arrays,
    baseline: Sequence[Arrays],
    metrics: Mapping[str, reference.Metric],
    again: Again | None,
    rules: Constants | None = None,
    *,
    has_base: bool = True,
    seed: int | None = None,
) -> GateOutcome:
    """Decide with the arguments of the reference."""
    evidence = Evidence(
        first=run_of(first),
        baseline=[run_of(run) for run in baseline],
        metrics=metrics_of(metrics),
        no_base="" if has_base else "the base cannot run",
        can_run=again is not None,
    )
    return answered(decide(evidence, rules, seed), again or _never)


def merged_gate(
    first: Arrays, pool: Sequence[Arrays], metrics: Mapping[str, reference.Metric], again: Again, seed: int
) -> GateOutcome:
    """Decide on a merged run by its files, and prove what is suspicious in shards, each in a separate session."""

    def in_shards(side: str, rows: np.ndarray) -> Arrays:
        seen: Arrays = {}
        for number in range(min(_SHARDS, len(rows))):
            for name, values in again(side, rows[number::_SHARDS]).items():
                seen.setdefault(name, np.full(len(rows), np.nan))[number::_SHARDS] = values
        return seen

    out = gate(first, pool, metrics, None)
    if out.state == "clear":
        return out
    evidence = Evidence(run_of(first), [], metrics_of(metrics))
    return answered(prove(evidence, out.suspicions, seed=seed), in_shards)


def _never(_: str, __: np.ndarray) -> Arrays:
    raise AssertionError("nothing may be asked for")
