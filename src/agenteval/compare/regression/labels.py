"""The run-label test: whether the mean of some runs is lower than that of others, for all metrics at once.

Without a change, any runs of a case could be those of the agent under test. The test compares the observed difference
with the differences for other labels, drawn independently per unit and shared by all metrics (approximate
randomization, Noreen 1989). The adjusted p of a metric uses the smallest studentised difference over the metrics
(Westfall and Young 1993, single step), with half the weight on ties (mid-p, Lancaster 1961).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from agenteval.compare.regression.runs import Flags, Integers, Numbers, Run
from agenteval.compare.regression.settings import GateSettings
from agenteval.core.statistics import ROUNDING

# Numbers that are looked up at once; they fit into the cache of a processor.
_CHUNK = 200_000
_LEAST_VARIANCE = 1e-18

Seed = tuple[int, ...]


@dataclass(frozen=True)
class LabelTest:
    """The result of a test, per metric.

    Args:
        p: of a drop, adjusted for the number of metrics.
        differences: mean of the one side − mean of the other, over the compared cases.
        tables: per metric, units by labels: what a unit adds to the difference; NaN if a label is impossible.
    """

    p: Numbers
    differences: Numbers
    tables: tuple[Numbers, ...]


def compare_runs(
    own: Sequence[Run], other: Sequence[Run], unit_of: Integers, seed: Seed, settings: GateSettings
) -> LabelTest:
    """Test whether the runs of one side are lower than those of the other.

    Args:
        own: the runs that may be lower; a case needs all of them.
        other: the runs of the other side; a case needs at least one.
        settings: ``draws`` and ``exact_limit`` are used.
    """
    tables = contribution_tables([run.means for run in own], [run.means for run in other], unit_of)
    p = adjusted_p(tables, seed, settings)
    differences = np.array([float(table[:, 0].sum()) if len(table) else 0.0 for table in tables])
    return LabelTest(p, differences, tuple(tables))


def contribution_tables(
    own: Sequence[Sequence[Numbers]], other: Sequence[Sequence[Numbers]], unit_of: Integers
) -> list[Numbers]:
    """Return, per metric, units by labels: what a unit adds to the difference of means; label 0 is what happened."""
    metrics = range(len(own[0]))
    return [
        _per_unit(
            _contributions(np.column_stack([run[metric] for run in (*own, *other)]), len(own)),
            unit_of,
        )
        for metric in metrics
    ]


def _contributions(means: Numbers, own: int) -> Numbers:
    """Return cases by labels; a case that is not compared adds 0 under every label."""
    present = ~np.isnan(means)
    total, count = np.nansum(means, axis=1), present.sum(axis=1)
    rest = count - own
    compared = present[:, :own].all(axis=1) & (rest > 0)
    paired = max(int(compared.sum()), 1)
    columns = []
    for chosen in combinations(range(means.shape[1]), own):
        ours = means[:, list(chosen)].sum(axis=1)
        columns.append((ours / own - (total - ours) / np.maximum(rest, 1)) / paired)
    return np.where(compared[:, None], np.column_stack(columns), 0.0)


def _per_unit(values: Numbers, unit_of: Integers) -> Numbers:
    units = int(unit_of.max()) + 1 if len(unit_of) else 0
    sums = np.zeros((units, values.shape[1]))
    np.add.at(sums, unit_of, values)
    return sums


@dataclass(frozen=True)
class Labelled:
    """The units that can change a difference, with their possible labels moved to the front.

    Args:
        values: units by labels by metrics; 0 at impossible labels.
    """

    values: Numbers
    counts: Integers
    units: Integers

    @property
    def observed(self) -> Numbers:
        """The sum of what happened, per metric."""
        return np.asarray(self.values[:, 0].sum(axis=0), dtype=np.float64)

    def covariance(self, one: int, two: int) -> float:
        """Return the covariance of two columns under random labels."""
        inside = self.inside
        first, second = (self.values[:, :, column] for column in (one, two))
        centred = [
            (value - (value * inside).sum(axis=1, keepdims=True) / self.counts[:, None]) for value in (first, second)
        ]
        return float(((centred[0] * centred[1] * inside).sum(axis=1) / self.counts).sum())

    @property
    def inside(self) -> Flags:
        """Units by labels: whether the label is possible."""
        return np.asarray(np.arange(self.values.shape[1])[None] < self.counts[:, None], dtype=np.bool_)

    @property
    def log_labelings(self) -> float:
        """Logarithm of the number of labelings."""
        return float(np.log(self.counts).sum())


def moving_units(tables: Sequence[Numbers]) -> Flags:
    """Return which units can change the difference of any metric."""
    possible = np.all([~np.isnan(table) for table in tables], axis=0)
    spread = [
        np.where(possible, table, -9.0).max(axis=1) - np.where(possible, table, 9.0).min(axis=1) for table in tables
    ]
    return np.asarray(np.any([values > ROUNDING for values in spread], axis=0), dtype=np.bool_)


def labelled(tables: Sequence[Numbers], possible: Flags, units: Flags) -> Labelled:
    """Return some units of tables, with the labels that are possible in all metrics in front."""
    chosen = possible[units]
    order = np.argsort(~chosen, axis=1, kind="stable")
    values = [np.take_along_axis(np.nan_to_num(table[units]), order, axis=1) for table in tables]
    return Labelled(np.stack(values, axis=2), chosen.sum(axis=1), np.flatnonzero(units))


def adjusted_p(tables: Sequence[Numbers], seed: Seed, settings: GateSettings) -> Numbers:
    """Return the adjusted p of a drop for each metric; 1 if no label can change anything."""
    metrics = len(tables)
    moving = moving_units(tables) if metrics and len(tables[0]) else np.zeros(0, dtype=np.bool_)
    if not moving.any():
        return np.ones(metrics)
    possible = np.all([~np.isnan(table) for table in tables], axis=0)
    units = labelled(tables, possible, moving)
    variances = np.array([units.covariance(metric, metric) for metric in range(metrics)])
    scale = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    # A metric without variation has no difference but that of rounding.
    scale = np.where(variances <= _LEAST_VARIANCE, np.inf, scale)
    exact = units.log_labelings <= math.log(settings.exact_limit)
    smallest = [(sums / scale).min(axis=1) for sums in label_sums(units, seed, settings)]
    return mid_p(np.concatenate(smallest), units.observed / scale, 0 if exact else 1)


def mid_p(sums: Numbers, observed: Numbers, extra: int) -> Numbers:
    """Return the share of sums below each observed value, ties half; ``extra`` ties are added to the sums."""
    ordered = np.sort(sums)
    below = np.searchsorted(ordered, observed - ROUNDING, side="left")
    ties = np.searchsorted(ordered, observed + ROUNDING, side="right") - below
    return np.asarray((below + 0.5 * (ties + extra)) / (len(sums) + extra), dtype=np.float64)


def label_sums(units: Labelled, seed: Seed, settings: GateSettings) -> Iterator[Numbers]:
    """Yield labelings by metrics in parts: the sums for all labelings, or for random ones if there are too many."""
    if units.log_labelings <= math.log(settings.exact_limit):
        yield _all_sums(units)
    else:
        yield from random_sums(units, np.random.default_rng(seed), settings.draws)


def _all_sums(units: Labelled) -> Numbers:
    sums = np.zeros((1, units.values.shape[2]))
    for values, count in zip(units.values, units.counts, strict=True):
        sums = (sums[:, None] + values[None, :count]).reshape(-1, sums.shape[1])
    return sums


def random_sums(units: Labelled, generator: np.random.Generator, draws: int) -> Iterator[Numbers]:
    """Yield the sums of random labelings in parts, so that memory stays bounded."""
    count, labels, metrics = units.values.shape
    columns = [np.ascontiguousarray(units.values[:, :, metric]).ravel() for metric in range(metrics)]
    starts = np.arange(count, dtype=np.intp) * labels
    step = max(1, _CHUNK // max(count, 1))
    for start in range(0, draws, step):
        shape = (min(step, draws - start), count)
        index = (generator.random(shape, dtype=np.float32) * units.counts).astype(np.intp)
        index += starts
        yield np.column_stack([column.take(index).sum(axis=1) for column in columns])
