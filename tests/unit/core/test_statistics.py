"""Distributions and Holm's correction, compared with oracles that use other formulas."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.statistics import fisher_p, holm, student_t_cdf, student_t_quantile

ACCURACY = 1e-9


def t_by_angles(t: float, df: int) -> float:
    """P(T <= t) for whole degrees of freedom, a finite sum (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    if df == 1:
        central = 2 * angle / math.pi
    elif df % 2:
        term, total = cosine, cosine
        for i in range(3, df - 1, 2):
            term *= cosine * cosine * (i - 1) / i
            total += term
        central = 2 / math.pi * (angle + sine * total)
    else:
        term, total = 1.0, 1.0
        for i in range(2, df - 1, 2):
            term *= cosine * cosine * (i - 1) / i
            total += term
        central = sine * total
    return 0.5 + central / 2


@given(t=st.floats(-50, 50), df=st.integers(1, 400))
def test_t_is_the_finite_sum_for_whole_degrees(t: float, df: int) -> None:
    assert student_t_cdf(t, df) == pytest.approx(t_by_angles(t, df), abs=ACCURACY)


@given(p=st.floats(0.0005, 0.9995), df=st.floats(1, 1e5))
def test_the_quantile_inverts_the_distribution(p: float, df: float) -> None:
    assert student_t_cdf(student_t_quantile(p, df), df) == pytest.approx(p, abs=1e-11)


@pytest.mark.parametrize(("df", "t"), [(1, 12.7062047362), (2, 4.3026527297), (5, 2.5705818356), (30, 2.0422724563)])
def test_quantiles_of_the_printed_table(df: int, t: float) -> None:
    assert student_t_quantile(0.975, df) == pytest.approx(t, abs=ACCURACY)


@given(data=st.data(), before=st.integers(1, 7), after=st.integers(1, 6))
def test_fisher_counts_the_ways_to_place_the_failures(data: st.DataObject, before: int, after: int) -> None:
    failed_before, failed_after = data.draw(st.integers(0, before)), data.draw(st.integers(0, after))
    placed = list(itertools.combinations(range(before + after), failed_before + failed_after))
    extreme = sum(sum(place >= before for place in places) >= failed_after for places in placed)
    assert fisher_p(failed_before, before, failed_after, after) == pytest.approx(extreme / len(placed), abs=1e-15)


def test_fisher_on_large_counts() -> None:
    # 1 - P(X <= 39), X hypergeometric, in exact fractions.
    total = math.comb(33_000, 240)
    tail = Fraction(sum(math.comb(3000, x) * math.comb(30_000, 240 - x) for x in range(40, 241)), total)
    assert fisher_p(200, 30_000, 40, 3000) == pytest.approx(float(tail), rel=1e-12)


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
