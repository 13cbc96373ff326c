"""The drift check of the pool."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.compare.statistics.designs import case, copies, metric

from agenteval.compare.statistics.drift import check_drift
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.parameters import GateParameters

PARAMETERS = GateParameters()


def simulated(seed: int, shift: float, runs: int = 8, cluster_size: int = 0, cases: int = 60) -> MetricRuns:
    """A pool whose runs share a normal shift of the pass rate."""
    generator = np.random.default_rng([seed, runs])
    rates = generator.uniform(0.2, 0.8, cases)
    baseline = []
    for _ in range(runs):
        now = np.clip(rates + generator.normal(0, shift), 0, 1)
        luck = generator.random((cases, 3))
        if cluster_size:
            luck = luck[np.arange(cases) // cluster_size * cluster_size]
        baseline.append((luck < now[:, None]).astype(float))
    found = [
        CaseRuns(
            case_id=f"{n:03d}",
            current=(1.0,),
            baseline=tuple(tuple(run[n].tolist()) for run in baseline),
            cluster=str(n // cluster_size) if cluster_size else None,
        )
        for n in range(cases)
    ]
    return metric(*found)


@pytest.mark.parametrize(("runs", "cluster_size"), [(2, 0), (5, 0), (10, 0), (5, 4)])
def test_without_drift_it_warns_at_its_error_rate(runs: int, cluster_size: int) -> None:
    warnings = sum(check_drift(simulated(seed, 0.0, runs, cluster_size), PARAMETERS).drifts for seed in range(400))
    # 5 % of 400 are 20; more than 36 or fewer than 7 happen at random about once in a thousand times.
    assert 7 <= warnings <= 36


def test_drift_is_found() -> None:
    found = [check_drift(simulated(seed, 0.08), PARAMETERS) for seed in range(50)]
    assert sum(check.drifts for check in found) > 45
    assert all(check.observed > check.expected for check in found if check.drifts)
    assert "confirm: against-base" in next(check.text for check in found if check.drifts)


def test_no_drift_is_reported() -> None:
    check = next(
        check for check in (check_drift(simulated(n, 0.0), PARAMETERS) for n in range(20)) if not check.drifts
    )
    assert "no more than the noise" in check.text
    assert check.runs == 8


def test_one_run_cannot_tell() -> None:
    check = check_drift(metric(*copies(10, "1", "0")), PARAMETERS)
    assert (check.p, check.drifts, check.runs) == (None, False, 1)


def test_no_case_cannot_tell() -> None:
    assert check_drift(metric(), PARAMETERS).p is None


def test_cases_that_never_vary_cannot_tell() -> None:
    check = check_drift(metric(*copies(10, "1", "1", "1", "1"), case("x", "1", "1", "0", "1")), PARAMETERS)
    assert check.p is None
    assert "too few" in check.text


def test_only_the_window_counts() -> None:
    old = [replace_baseline(c, ((0.0, 0.0, 0.0),) * 5) for c in simulated(1, 0.0).cases]
    found = check_drift(metric(*old), GateParameters(window=8))
    assert found == check_drift(simulated(1, 0.0), GateParameters(window=8))


def replace_baseline(found: CaseRuns, older: tuple[tuple[float, ...], ...]) -> CaseRuns:
    return CaseRuns(case_id=found.case_id, current=found.current, baseline=(*older, *found.baseline))
