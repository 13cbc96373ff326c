"""The scores of one run as arrays, one per metric: cases by iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agenteval.compare.regression.model import Evidence, Failures, Scores
from agenteval.core.statistics import ROUNDING

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """One run, or several that are joined.

    Args:
        scores: per metric, cases by iterations; NaN if an iteration was lost or is not part of the run.
        lost: per metric, whether an iteration is part of the run and has no score.
    """

    scores: tuple[Numbers, ...]
    lost: tuple[Flags, ...]

    def filled(self, score: float) -> Run:
        """Return the run with a score in place of every lost iteration."""
        pairs = zip(self.scores, self.lost, strict=True)
        return Run(
            tuple(np.where(lost, score, scores) for scores, lost in pairs),
            tuple(np.zeros_like(lost) for lost in self.lost),
        )

    def first_iterations(self, limits: Sequence[Integers]) -> Run:
        """Return the run with at most so many iterations of each case, per metric."""
        inside = [
            np.arange(scores.shape[1])[None] < limit[:, None]
            for scores, limit in zip(self.scores, limits, strict=True)
        ]
        return Run(
            tuple(np.where(keep, scores, np.nan) for scores, keep in zip(self.scores, inside, strict=True)),
            tuple(lost & keep for lost, keep in zip(self.lost, inside, strict=True)),
        )

    @cached_property
    def means(self) -> tuple[Numbers, ...]:
        """Per metric, the mean of each case; NaN without a score."""
        return tuple(mean_of_rows(scores) for scores in self.scores)

    @cached_property
    def scored(self) -> tuple[Integers, ...]:
        """Per metric, the number of scored iterations of each case."""
        return tuple((~np.isnan(scores)).sum(axis=1) for scores in self.scores)

    @cached_property
    def asked(self) -> tuple[Integers, ...]:
        """Per metric, the number of iterations of each case, lost ones included."""
        return tuple(scored + lost.sum(axis=1) for scored, lost in zip(self.scored, self.lost, strict=True))


def join(runs: Sequence[Run]) -> Run:
    """Return the iterations of several runs as one run."""
    return Run(
        tuple(np.concatenate(parts, axis=1) for parts in zip(*(run.scores for run in runs), strict=True)),
        tuple(np.concatenate(parts, axis=1) for parts in zip(*(run.lost for run in runs), strict=True)),
    )


def mean_of_rows(values: Numbers) -> Numbers:
    """Return the mean of each row without its NaN; NaN for a row without numbers."""
    count = (~np.isnan(values)).sum(axis=1)
    total = np.nansum(values, axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Layout:
    """What the rows and arrays of all runs of a comparison stand for.

    Args:
        thresholds: metrics by cases; NaN if a case has no pass or fail.
        mirrored: whether scores are read as 1 − score, and a case fails where it passes.
    """

    case_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    thresholds: Numbers
    unit_of: Integers
    mirrored: bool

    @property
    def worst(self) -> float:
        """The score that a failure has."""
        return 1.0 if self.mirrored else 0.0

    def read(self, scores: Scores, expected: Mapping[str, int] | None = None) -> Run:
        """Return a run as arrays. A score that is NaN or outside 0..1 is lost.

        Args:
            scores: the run; other cases and metrics are ignored.
            expected: the iterations that were asked for: missing ones are lost, further ones are ignored.
        """
        columns = [self._column(scores, metric, expected) for metric in self.metrics]
        return Run(*(tuple(parts) for parts in zip(*columns, strict=True))) if columns else Run((), ())

    def _column(self, scores: Scores, metric: str, expected: Mapping[str, int] | None) -> tuple[Numbers, Flags]:
        rows = [_iterations(scores, case, metric, expected) for case in self.case_ids]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        part = np.arange(max(1, int(lengths.max(initial=0))))[None] < lengths[:, None]
        values = np.full(part.shape, np.nan)
        # None becomes NaN.
        values[part] = np.array([score for row in rows for score in row], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            inside = (values >= -ROUNDING) & (values <= 1 + ROUNDING)
        values = np.where(inside, np.clip(values, 0.0, 1.0), np.nan)
        return (1 - values if self.mirrored else values), part & ~inside

    def fails(self, scores: Numbers, metric: int) -> Numbers:
        """Return 1 for each failed iteration of a metric, 0 for each other, NaN without a score or a threshold."""
        limit = self.thresholds[metric][:, None]
        failed = scores <= 1 - limit + ROUNDING if self.mirrored else scores < limit - ROUNDING
        return np.where(np.isnan(scores) | np.isnan(limit), np.nan, failed)

    def failures(self, run: Run, metric: int) -> tuple[Integers, Integers]:
        """Return the failed iterations of each case, and the iterations that passed or failed."""
        failed = self.fails(run.scores[metric], metric)
        return np.nansum(failed, axis=1).astype(np.int64), (~np.isnan(failed)).sum(axis=1)

    def as_scored(self, failures: Failures) -> Failures:
        """Return failures of the scores as they are."""
        return Failures(failures.of - failures.failed, failures.of) if self.mirrored else failures


def _iterations(
    scores: Scores, case: str, metric: str, expected: Mapping[str, int] | None
) -> tuple[float | None, ...]:
    row = scores.get(case, {}).get(metric, ())
    if expected is None:
        return row
    wanted = expected.get(case, 0)
    return (*row, *[None] * wanted)[:wanted]


def layout_of(evidence: Evidence, *, mirrored: bool) -> Layout:
    """Return the layout of the cases in the first run and the pool."""
    known = {*evidence.first, *(case for run in evidence.pool for case in run), *evidence.iterations}
    case_ids = tuple(sorted(known))
    # A cluster may have the same name as a case outside of it.
    keys = [(case not in evidence.clusters, evidence.clusters.get(case, case)) for case in case_ids]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    thresholds = [[metric.thresholds.get(case, math.nan) for case in case_ids] for metric in evidence.metrics]
    return Layout(
        case_ids=case_ids,
        metrics=tuple(metric.id for metric in evidence.metrics),
        thresholds=np.array(thresholds, dtype=np.float64).reshape(len(evidence.metrics), len(case_ids)),
        unit_of=np.array([numbers[key] for key in keys], dtype=np.int64),
        mirrored=mirrored,
    )
