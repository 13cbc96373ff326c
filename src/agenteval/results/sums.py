"""Sums that are the same in whatever order their numbers come."""

from __future__ import annotations

import math
from collections.abc import Sequence


def total(numbers: Sequence[float]) -> float:
    """The sum, rounded once (Shewchuk 1997, "Adaptive precision floating-point arithmetic", as in `math.fsum`)."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        # Infinite, on the way or from the start.
        return sum(numbers)
