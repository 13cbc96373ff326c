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


@given(p_values=P_VALUES, alpha=ALPHAS)
def test_it_rejects_all_that_bonferroni_does_and_nothing_above_alpha(p_values: list[float], alpha: float) -> None:
    for p, rejected in zip(p_values, holm(p_values, alpha, len(p_values)), strict=True):
        assert rejected or p * len(p_values) > alpha
        assert not rejected or p <= alpha + 1e-9


@given(p_values=P_VALUES, alpha=ALPHAS, order=st.randoms(use_true_random=False))
def test_the_order_does_not_matter(p_values: list[float], alpha: float, order: object) -> None:
    places = list(range(len(p_values)))
    order.shuffle(places)  # type: ignore[attr-defined]
    shuffled = holm([p_values[place] for place in places], alpha, len(p_values))
    straight = holm(p_values, alpha, len(p_values))
    found = sorted(zip((p_values[place] for place in places), shuffled, strict=True))
    assert found == sorted(zip(p_values, straight, strict=True))


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
