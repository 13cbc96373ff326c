"""Holm's correction for several tests at once."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.statistics.model import ROUNDING


def holm(p_values: Sequence[float], alpha: float, family: int) -> list[bool]:
    """Which hypotheses are rejected while the chance of any false rejection stays at ``alpha`` (Holm 1979).

    Args:
        p_values: of the tests that were made; equal ones are taken in their order.
        alpha: error rate of the whole family.
        family: number of tests that could have been made, at least ``len(p_values)`` for the promise to hold.
    """
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * max(family - rank, 1) > alpha + ROUNDING:
            break
        rejected[index] = True
    return rejected
