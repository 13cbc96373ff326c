"""The parameters of the regression gate."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Confirm = Literal["head", "base", "both", "off"]
CONFIRM: tuple[Confirm, ...] = ("head", "base", "both", "off")


@dataclass(frozen=True, kw_only=True)
class GateParameters:
    """All error rates, limits and switches of the gate. Rates, scores and differences are 0..1.

    Args:
        confirm: what backs a suspicion before it blocks. ``head``: the pull request's agent runs once more.
            ``base``: it runs again beside the agent of the base commit, and those two runs decide.
            ``both``: both comparisons must agree. ``off``: one run decides, at ``alpha_single``.
        window: newest baseline runs that count.
        screen: p of the first run, at or below which the suite is run once more.
        alpha_aggregate: error rate of the confirmed comparison of means, over all gating metrics.
        alpha_single: the same where one run decides; also for ``improved`` and in the detectable drop.
        alpha_case: error rate of the search for single broken cases, over all gating metrics.
        alpha_chart: p of the run chart, above which a drop is within what baseline runs do among themselves.
        chart_runs: baseline runs from which on the run chart is used.
        min_effect: smaller drops and gains of the mean are no change.
        tolerance: a metric is unchanged if a drop larger than this can be excluded.
        confidence: of the interval, two-sided.
        power: of the detectable drop.
        draws: random labelings where there are more than ``exact_limit``.
        exact_limit: up to so many labelings are enumerated.
        case_drop: fall of a case's pass rate that makes it a candidate.
        min_repeats: fewest re-runs of a candidate.
        max_repeats: most re-runs of a candidate.
        max_cases: most candidates to re-run, per metric.
        prior_correlation: of iterations within a run, where the baseline is too small to estimate it.
        min_units: with fewer independent units a mean is neither improved nor unchanged.
        max_error_share: share of iterations that may be lost to errors.
        max_lost_cases: share of cases that may have no iteration left; in a confirming run too.
        error_alpha: p below which more errors than in the baseline are no chance.

    Raises:
        ValueError: a value outside its range.
    """

    confirm: Confirm = "head"
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
