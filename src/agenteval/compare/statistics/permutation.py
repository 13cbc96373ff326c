"""The run-label permutation test.

If the pull request changes nothing, its runs and the baseline runs are exchangeable within a case: any of them could
be the pull request's. The test compares the observed difference of means with the differences for all assignments of
the labels, independently per unit, as approximate randomization does for pairs (Noreen 1989), with half the weight on
ties (mid-p, Lancaster 1961).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.run_table import Numbers, RunTable
from agenteval.core.statistics import ROUNDING

_CHUNK = 1000
# Drawing labels that fit into a byte is faster.
_BYTE = 256


@dataclass(frozen=True)
class PermutationTest:
    """Mid-p values of a drop and of a rise, and the number of labelings.

    Args:
        p_low: probability of a difference this low or lower without a change.
        p_high: probability of a difference this high or higher without a change.
        labelings: number of evaluated labelings; 0 if no labeling can change the difference.
        exact: whether these were all labelings.
    """

    p_low: float
    p_high: float
    labelings: int
    exact: bool


def seed_of(suite_hash: str, metric: str, baseline_run_ids: Sequence[str], current_run_id: str) -> int:
    """Return the seed of a comparison, which depends only on its input, not on time or process."""
    parts = ["agenteval-gate-v1", suite_hash, metric, *baseline_run_ids, current_run_id]
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:8], "big")


def permutation_test(table: RunTable, seed: Sequence[int], parameters: GateParameters) -> PermutationTest:
    """Test the difference of means of a table.

    Args:
        table: the scores of both runs.
        seed: seed of the random labelings, used if there are too many to enumerate.
        parameters: ``exact_limit`` and ``draws`` are used.
    """
    contributions = label_contributions(table)
    values = [row[~np.isnan(row)] for row in contributions]
    informative = [index for index, row in enumerate(values) if np.ptp(row) > ROUNDING]
    if not informative:
        return PermutationTest(1.0, 1.0, 0, exact=True)
    observed = float(contributions[informative, 0].sum())
    labelings = math.prod(len(values[index]) for index in informative)
    exact = labelings <= parameters.exact_limit
    if exact:
        chunks = iter([_all_sums([values[index] for index in informative])])
    else:
        chunks = _random_sums(values, informative, np.random.default_rng(seed), parameters.draws)
        # The observed assignment is one of the labelings, too.
        labelings = parameters.draws + 1
    below = above = 0
    for sums in chunks:
        below += int(np.count_nonzero(sums < observed - ROUNDING))
        above += int(np.count_nonzero(sums > observed + ROUNDING))
    ties = labelings - below - above
    return PermutationTest((below + ties / 2) / labelings, (above + ties / 2) / labelings, labelings, exact)


def label_contributions(table: RunTable) -> Numbers:
    """Return units by labelings: each unit's contribution to the difference of means.

    A labeling chooses as many current runs of the unit as the pull request has. Column 0 is the observed labeling.
    NaN marks labelings that are impossible for a unit, because one of its cases has no such run.
    """
    scores = np.hstack([table.current, table.baseline])
    chosen_runs = table.current.shape[1]
    available = (~np.isnan(scores)).sum(axis=1)
    totals = np.nansum(scores, axis=1)
    columns = []
    for chosen in combinations(range(scores.shape[1]), chosen_runs):
        ours = scores[:, list(chosen)].sum(axis=1)
        theirs = (totals - ours) / (available - chosen_runs)
        columns.append(table.per_unit((ours / chosen_runs - theirs) / table.cases))
    return np.column_stack(columns)


def _all_sums(values: Sequence[Numbers]) -> Numbers:
    sums = np.zeros(1)
    for row in values:
        sums = np.add.outer(sums, row).ravel()
    return sums


def _random_sums(
    values: Sequence[Numbers], informative: Sequence[int], generator: np.random.Generator, draws: int
) -> Iterator[Numbers]:
    # Labels are drawn for every unit, so that they do not depend on the scores: with fixed labels, a lower
    # score can only decrease the p-value of a drop.
    counts = np.array([len(row) for row in values])
    width = int(counts.max())
    padded = np.zeros((len(informative), width))
    for place, index in enumerate(informative):
        padded[place, : counts[index]] = values[index]
    offsets = np.arange(len(informative)) * width
    same = counts.min() == width <= _BYTE
    for start in range(0, draws, _CHUNK):
        size = (min(_CHUNK, draws - start), len(counts))
        if same:
            labels = generator.integers(0, width, size, dtype=np.uint8)[:, informative].astype(np.int64)
        else:
            labels = (generator.random(size) * counts)[:, informative].astype(np.int64)
        yield padded.ravel()[offsets + labels].sum(axis=1)
