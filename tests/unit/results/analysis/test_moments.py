from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.results.analysis.summary import Moments, quantile

values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


@settings(deadline=None)
@given(values)
def test_moments_are_those_of_the_standard_library(found: list[float]) -> None:
    moments = Moments.of(found)
    assert moments.mean == pytest.approx(statistics.fmean(found), abs=1e-9)
    assert moments.deviation == pytest.approx(statistics.stdev(found), rel=1e-9, abs=1e-6)


@settings(deadline=None)
@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1e-9, 1e9]))
def test_order_does_not_matter_at_all(found: list[float]) -> None:
    assert Moments.of(found) == Moments.of(sorted(found))


def test_nothing_has_no_average_and_one_value_no_spread() -> None:
    assert Moments.of([]).average is None
    assert Moments.of([0.5]).average == 0.5
    assert Moments.of([0.5]).deviation is None
    assert Moments() + Moments.of([1.0]) == Moments.of([1.0]) + Moments()


@settings(deadline=None)
@given(values, st.floats(0, 1))
def test_quantiles_are_numpys(found: list[float], share: float) -> None:
    assert quantile(sorted(found), share) == pytest.approx(np.quantile(found, share), rel=1e-9, abs=1e-6)
