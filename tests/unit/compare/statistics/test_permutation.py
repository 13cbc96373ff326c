"""The run-label test against a brute force in exact fractions, and its laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.compare.statistics.designs import (
    TENTHS,
    case,
    copies,
    labelings_of,
    metrics,
    table_of,
)

from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.compare.statistics.permutation import PermutationTest, permutation_test, seed_of
from agenteval.compare.statistics.run_table import RunTable

PARAMETERS = GateParameters()
RANDOM = GateParameters(exact_limit=1, draws=199)
MOST = 4096
DESIGNS = [
    (units, current, baseline)
    for current in (1, 2)
    for baseline in range(1, 11)
    for units in range(1, 13)
    if labelings_of(units, current, baseline) <= MOST
]


def permute(table: RunTable, parameters: GateParameters = PARAMETERS) -> PermutationTest:
    return permutation_test(table, (1, 2), parameters)


def exact(value: float) -> Fraction:
    return Fraction(value).limit_denominator(1000)


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def brute_force(cases: Sequence[CaseRuns], current_runs: int) -> tuple[float, float]:
    """Mid-p of a fall and of a rise: every way to call some of a unit's runs the pull request's."""
    runs = [
        [mean([exact(s) for s in scores]) if scores else None for scores in all_runs]
        for all_runs in ([*(c.current, c.second)[:current_runs], *c.baseline] for c in cases)
    ]
    units: dict[str, list[int]] = {}
    for index, one in enumerate(cases):
        units.setdefault(one.cluster or f"alone {one.case_id}", []).append(index)
    shares = []
    for members in units.values():
        shared = [r for r in range(len(runs[0])) if all(runs[i][r] is not None for i in members)]
        choices = list(itertools.combinations(shared, current_runs))
        shares.append([sum((contribution(runs[i], chosen) for i in members), Fraction(0)) for chosen in choices])
    # The first choice of every unit is what happened.
    observed = sum(share[0] for share in shares)
    differences = [sum(labeling) for labeling in itertools.product(*shares)]
    below = sum(difference < observed for difference in differences)
    above = sum(difference > observed for difference in differences)
    ties = len(differences) - below - above
    return (below + ties / 2) / len(differences), (above + ties / 2) / len(differences)


def contribution(runs: Sequence[Fraction | None], chosen: Sequence[int]) -> Fraction:
    """What one case adds to the sum of differences if the chosen runs are the pull request's."""
    ours = [value for number, value in enumerate(runs) if number in chosen and value is not None]
    theirs = [value for number, value in enumerate(runs) if number not in chosen and value is not None]
    return mean(ours) - mean(theirs)


@pytest.mark.parametrize(("units", "current", "baseline"), DESIGNS)
def test_exact_equals_brute_force_on_every_small_design(units: int, current: int, baseline: int) -> None:
    generator = np.random.default_rng([units, current, baseline])

    def run() -> tuple[float, ...]:
        return tuple(generator.integers(0, 2, 2).astype(float).tolist())

    cases = [
        # The first two iterations differ, so that no unit is left out for being constant.
        CaseRuns(
            case_id=str(n), current=run(), second=run(), baseline=(*(run() for _ in range(baseline - 1)), (0.0, 1.0))
        )
        for n in range(units)
    ]
    found = permute(table_of(cases, current))
    assert found.exact
    if found.labelings:
        assert (found.p_low, found.p_high) == pytest.approx(brute_force(cases, current), abs=1e-12)
    else:
        assert found.p_low == found.p_high == 1.0


@settings(max_examples=150, deadline=None)
@given(
    found=st.one_of(
        metrics(most_cases=4, most_runs=3, clusters=True, losses=True),
        metrics(most_cases=4, most_runs=3, clusters=True, losses=True, scores=TENTHS),
    ),
    current_runs=st.integers(1, 2),
)
def test_exact_equals_brute_force_with_clusters_and_lost_runs(found: MetricRuns, current_runs: int) -> None:
    assume(found.compared)
    table = table_of(found.compared, current_runs)
    test = permute(table)
    assume(test.labelings)
    assert test.exact
    assert (test.p_low, test.p_high) == pytest.approx(brute_force(found.compared, current_runs), abs=1e-12)


@given(found=st.one_of(metrics(most_runs=1), metrics(most_runs=1, scores=TENTHS, clusters=True)))
def test_swapping_the_sides_swaps_fall_and_rise(found: MetricRuns) -> None:
    swapped = [replace(c, current=c.baseline[0], baseline=(c.current,)) for c in found.cases]
    there, back = permute(table_of(found.compared)), permute(table_of(swapped))
    assert (there.p_low, there.p_high) == pytest.approx((back.p_high, back.p_low))


@given(found=metrics(clusters=True, losses=True))
def test_reversing_the_scores_swaps_fall_and_rise(found: MetricRuns) -> None:
    assume(found.compared)
    reversed_cases = [
        replace(
            c,
            current=tuple(1 - s for s in c.current),
            baseline=tuple(tuple(1 - s for s in run) for run in c.baseline),
        )
        for c in found.compared
    ]
    there, back = permute(table_of(found.compared)), permute(table_of(reversed_cases))
    assert (there.p_low, there.p_high) == pytest.approx((back.p_high, back.p_low))


@given(found=metrics(clusters=True, losses=True), parameters=st.sampled_from([PARAMETERS, RANDOM]))
def test_ties_count_half_on_both_sides(found: MetricRuns, parameters: GateParameters) -> None:
    assume(found.compared)
    test = permute(table_of(found.compared), parameters)
    assert test.p_low + test.p_high == pytest.approx(1.0 if test.labelings else 2.0)


def test_one_case_that_broke_has_the_tie_with_itself() -> None:
    # Two labelings, the observed one is lower: 0 below, 1 tie.
    test = permute(table_of([case("a", "0", "1")]))
    assert (test.p_low, test.p_high, test.labelings) == (0.25, 0.75, 2)


def test_nothing_varies() -> None:
    assert permute(table_of(copies(8, "11", "11", "11"))) == PermutationTest(1.0, 1.0, 0, exact=True)


def test_a_difference_that_every_labeling_has_is_none() -> None:
    # The failing case fails everywhere, the passing one passes everywhere.
    cases = [*copies(3, "00", "00", "00", prefix="failing"), *copies(3, "11", "11", "11", prefix="passing")]
    assert permute(table_of(cases)).p_low == 1.0


def test_cases_of_a_cluster_are_labelled_together() -> None:
    alone = [case(str(n), "0", "1") for n in range(6)]
    together = [replace(c, cluster="one") for c in alone]
    assert permute(table_of(alone)).p_low == pytest.approx(0.5 / 2**6)
    assert permute(table_of(together)).p_low == pytest.approx(0.25)


def test_a_cluster_may_bear_the_name_of_a_case_outside() -> None:
    cases = [case("a", "0", "1"), case("b", "0", "1", cluster="a"), case("c", "0", "1", cluster="a")]
    assert table_of(cases).units == 2


def test_a_cluster_has_only_the_labels_that_all_its_cases_have() -> None:
    cases = [case("a", "0", "1", "1", cluster="x"), case("b", "0", "", "1", cluster="x")]
    assert permute(table_of(cases)).labelings == 2


@settings(deadline=None)
@given(
    found=metrics(most_cases=8, clusters=True),
    order=st.randoms(use_true_random=False),
    parameters=st.sampled_from([PARAMETERS, RANDOM]),
)
def test_the_order_of_the_cases_does_not_matter(found: MetricRuns, order: object, parameters: GateParameters) -> None:
    shuffled = list(found.cases)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    again = replace(found, cases=tuple(shuffled))
    assert permute(table_of(found.compared), parameters) == permute(table_of(again.compared), parameters)


@settings(deadline=None)
@given(
    found=metrics(clusters=True),
    data=st.data(),
    parameters=st.sampled_from([PARAMETERS, RANDOM]),
    runs=st.integers(1, 2),
)
def test_one_more_failure_never_raises_the_p_of_a_fall(
    found: MetricRuns, data: st.DataObject, parameters: GateParameters, runs: int
) -> None:
    passed = [c for c in found.cases if 1.0 in c.current]
    assume(passed)
    chosen = data.draw(st.sampled_from(passed))
    failed = list(chosen.current)
    failed[failed.index(1.0)] = 0.0
    worse = tuple(replace(c, current=tuple(failed)) if c is chosen else c for c in found.cases)
    before = permute(table_of(found.cases, runs), parameters)
    after = permute(table_of(worse, runs), parameters)
    if not after.labelings:
        # Nothing differs any more, so it was better before; both p are then 1.
        assert before.p_low >= 0.5
        return
    assert after.p_low <= before.p_low + 1e-12
    assert after.p_high >= before.p_high - 1e-12 or not before.labelings


def test_random_labelings_agree_with_all_of_them() -> None:
    cases = [case(str(n), "01"[n % 3 == 0], "1", "01"[n % 2]) for n in range(8)]
    everything = permute(table_of(cases))
    some = permute(table_of(cases), GateParameters(exact_limit=1, draws=20_000))
    error = math.sqrt(everything.p_low * (1 - everything.p_low) / 20_000)
    assert everything.exact
    assert not some.exact
    assert some.labelings == 20_001
    assert abs(some.p_low - everything.p_low) < 5 * error


def test_random_labelings_of_cases_with_different_numbers_of_runs() -> None:
    full = [case(str(n), "1", "1", "01"[n % 2], "1") for n in range(2)]
    late = [case(f"late {n}", "01"[n < 2], "", "", "01"[n >= 2]) for n in range(7)]
    everything = permute(table_of([*full, *late]))
    some = permute(table_of([*full, *late]), GateParameters(exact_limit=1, draws=20_000))
    error = math.sqrt(everything.p_low * (1 - everything.p_low) / 20_000)
    assert everything.exact
    assert abs(some.p_low - everything.p_low) < 5 * error


def test_the_smallest_random_p_counts_the_observed_labeling() -> None:
    test = permute(table_of(copies(40, "0", "1")), RANDOM)
    assert test.p_low == pytest.approx(0.5 / 200)


def test_the_seed_is_a_function_of_what_is_compared() -> None:
    seeds = {
        seed_of("suite", "exact", ["1", "2"], "9"),
        seed_of("suite", "exact", ["2", "1"], "9"),
        seed_of("suite", "exact", ["12"], "9"),
        seed_of("suite", "bleu", ["1", "2"], "9"),
        seed_of("other", "exact", ["1", "2"], "9"),
        seed_of("suite", "exact", ["1", "2"], "8"),
    }
    assert len(seeds) == 6
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert seed_of("suite", "exact", ["1", "2"], "9") == 0xFE0A3216410148A5
