"""The parameters of the gate's statistics."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Confirm = Literal["rerun", "against-base", "both", "off"]
CONFIRM: tuple[Confirm, ...] = ("rerun", "against-base", "both", "off")


@dataclass(frozen=True, kw_only=True)
class GateParameters:
    """All error rates, limits and switches of the gate. Rates, scores and differences are 0..1.

    Args:
        confirm: how a suspected regression is confirmed before it fails the gate. ``rerun``: the pull request's agent
            runs again. ``against-base``: it runs again beside the base commit's agent, and these two runs
            decide. ``both``: both comparisons must agree. ``off``: one run decides, at ``alpha_single``.
        window: maximum number of baseline runs; the newest ones count.
        screen: p-value of the first run at or below which the suite runs again.
        alpha_aggregate: error rate of the confirmed comparison of means, over all gating metrics.
        alpha_single: error rate if one run decides; also for ``improved`` and for the detectable drop.
        alpha_case: error rate for single cases, over all gating metrics.
        alpha_chart: p-value of the run chart above which a drop is within the variation of the baseline runs.
        chart_runs: minimum number of baseline runs for the run chart.
        min_effect: smaller drops and rises of the mean do not count.
        tolerance: a metric is unchanged if a larger drop can be excluded.
        confidence: confidence level of the two-sided interval.
        power: power of the detectable drop.
        draws: number of random labelings if there are more than ``exact_limit``.
        exact_limit: maximum number of labelings that are enumerated.
        case_drop: drop of a case's pass rate that makes it a candidate.
        min_repeats: minimum number of re-runs of a candidate.
        max_repeats: maximum number of re-runs of a candidate.
        max_cases: maximum number of candidates to re-run, per metric.
        prior_correlation: correlation of iterations within a run, used if the baseline is too small to estimate it.
        min_units: minimum number of independent units for the verdicts improved and unchanged.
        max_error_share: share of iterations that may be lost to errors.
        max_lost_cases: share of cases that may lose all iterations; also applies to a confirmation run.
        error_alpha: p-value below which the run has significantly more errors than the baseline.

    Raises:
        ValueError: a value is outside its range.
    """

    confirm: Confirm = "rerun"
    window: int = 10
    screen: float = 0.10
    alpha_aggregate: float = 0.02
    alpha_single: float = 0.04
    alpha_case: float = 0.01
    alpha_chart: float = 0.10
    chart_runs: int = 5
    min_effect: float = 0.01
    tolerance: float = 0.05
    confidence: float = 0.95
    power: float = 0.80
    draws: int = 9999
    exact_limit: int = 16384
    case_drop: float = 0.5
    min_repeats: int = 3
    max_repeats: int = 8
    max_cases: int = 20
    prior_correlation: float = 0.10
    min_units: int = 5
    max_error_share: float = 0.10
    max_lost_cases: float = 0.05
    error_alpha: float = 0.01

    def __post_init__(self) -> None:
        if self.confirm not in CONFIRM:
            raise ValueError(f"confirm is {self.confirm!r}; allowed are {', '.join(CONFIRM)}")
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, float) and not 0 <= value <= 1:
                raise ValueError(f"{name} is {value:g}; it must be between 0 and 1")
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        for name in ("confidence", "power", "alpha_single", "alpha_aggregate", "prior_correlation"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie strictly between 0 and 1")
        if self.case_drop <= 0:
            raise ValueError("case_drop must be above 0")
        if self.chart_runs < 2:
            raise ValueError("chart_runs must be at least 2: one run has no spread")
        if self.min_repeats > self.max_repeats:
            raise ValueError(f"min_repeats ({self.min_repeats}) is above max_repeats ({self.max_repeats})")
