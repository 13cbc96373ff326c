"""Holm's correction, compared with its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.statistics import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=8)
ALPHAS = st.sampled_from([0.01, 0.02, 0.2])


@given(p_values=P_VALUES, alpha=ALPHAS, spare=st.integers(0, 5))
def test_every_adjusted_p_decides_alone(p_values: list[float], alpha: float, spare: int) -> None:
    family = len(p_values) + spare
    expected = []
    for p in p_values:
        # The adjusted p is the largest step-down product up to this one.
        smaller = sorted(q for q in p_values if q <= p)
        expected.append(max(q * (family - rank) for rank, q in enumerate(smaller)) <= alpha)
    # Equal p-values have different ranks, but if one is rejected, the others are as well.
    if len(set(p_values)) == len(p_values):
        assert holm(p_values, alpha, family) == expected


@pytest.mark.parametrize(
    ("p_values", "family", "rejected"),
    [
        ([0.001, 0.009, 0.04], 3, [True, False, False]),
        ([0.04, 0.001, 0.009], 3, [False, True, False]),
        ([0.003, 0.004, 0.009], 3, [True, True, True]),
        ([0.009], 1, [True]),
        ([0.009], 2, [False]),
        ([], 5, []),
    ],
)
def test_by_hand(p_values: list[float], family: int, rejected: list[bool]) -> None:
    assert holm(p_values, 0.01, family) == rejected
