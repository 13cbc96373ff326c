"""When the base branch looks lower than at the beginning of its epoch: a cumulative sum (Page 1954), and a count.

The sum costs no run, and proves nothing: a long look decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

#: The first runs of the epoch, which say what is usual.
REFERENCE_RUNS = 10
# Fewer runs do not show how much runs differ.
_LEAST_RUNS = 3
_SLACK = 0.5
_LIMIT = 4.0
# Merges after which a long look is due without any suspicion.
_MERGES = 10
_LEAST_DEVIATION = 1e-3


def next_sum(total: float, reference: Sequence[float], level: float, min_effect: float) -> float:
    """Return the cumulative sum after one more run: S = max(0, S + (μ − x) / s − ½).

    μ is the mean of the reference, and s its standard deviation times sqrt(1 + 1/n), at least half of the smallest
    drop that counts: an agent that hardly varies would make every tiny drop suspicious.

    Args:
        total: the sum so far, in standard deviations.
        reference: the means of the epoch's first runs, 0..1; with fewer than three the sum stays.
        level: the mean of the new run, 0..1.
        min_effect: smallest drop that counts, 0..1.
    """
    known = reference[:REFERENCE_RUNS]
    if len(known) < _LEAST_RUNS:
        return total
    deviation = max(stdev(known) * math.sqrt(1 + 1 / len(known)), min_effect / 2, _LEAST_DEVIATION)
    return max(0.0, total + (fmean(known) - level) / deviation - _SLACK)


def is_due(sums: Iterable[float], merges: int) -> bool:
    """Return whether a long look is due.

    Args:
        sums: the cumulative sums of the gating metrics.
        merges: merges since the last long look.
    """
    return merges >= _MERGES or any(total > _LIMIT for total in sums)


def may_become_due(sums: Iterable[float], merges: int) -> bool:
    """Return whether one more run may make a long look due; a sum of 0 does not pass the limit at once."""
    return merges + 1 >= _MERGES or any(total > 0 for total in sums)
