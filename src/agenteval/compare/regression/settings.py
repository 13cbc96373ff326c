"""The constants of the gate. Those of the head-to-head were calibrated together: change none alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """All limits of the gate. Probabilities, scores and differences are 0..1.

    Attributes:
        screen_epoch: the first run is suspicious at or below this p against the whole pool …
        screen_newest: … or at or below this p against the newest run alone.
        hope: the second run stops as soon as its mean is above the pool's by this share of the first run's drop.
        recheck: after the second run, the suspicion stays at or below this p of both runs against the pool.
        strict: limits of the head-to-head after 1, 2, … runs a side.
        calm: the same while the control's runs do not look lower than the pool.
        calm_p: the control looks lower than the pool at or below this p.
        futile: after 1, 2, … runs a side, the suspicion is dropped above this p.
        negligible: the suspicion is dropped too if every drop of ``min_effect`` or more is excluded at this level.
        min_effect: smaller drops of a mean do not count.
        tolerance: drop of a mean that does not matter; used in words and by ``require``.
        require: ``no-worse-than``: a change is green only if a drop of more than ``tolerance`` is excluded.
        case_drop: fall of a case's pass rate that makes it a candidate.
        case_rounds: re-runs a side after each round; the first round decides nothing.
        case_alpha: error rate for single cases.
        case_spend: share of ``case_alpha`` that each round may use.
        max_cases: at most so many candidates, the smallest p first.
        prior_correlation: correlation of iterations within a run, where the pool is too small to estimate it.
        head_to_head_calls: runs of the head-to-head are longer in suites with fewer calls per run …
        head_to_head_factor: … but at most so many times.
        draws: random labelings if there are more than ``exact_limit``.
        exact_limit: largest number of labelings that are enumerated.
        max_lost: share of lost iterations above which losses may hide failures.
        lost_alpha: p at or below which the run lost more than the newest run of the pool.
        max_control_lost: the infrastructure is failing if the control loses a larger share.
    """

    window: int = 10
    screen_epoch: float = 0.085
    screen_newest: float = 0.015
    hope: float = 0.10
    recheck: float = 0.04
    strict: tuple[float, ...] = (0.003, 0.006, 0.009, 0.0155)
    calm: tuple[float, ...] = (0.01, 0.02, 0.03, 0.05)
    calm_p: float = 0.30
    futile: tuple[float, ...] = (0.40, 0.25, 0.12)
    negligible: float = 0.05
    min_effect: float = 0.01
    tolerance: float = 0.05
    require: Literal["no-worse-than"] | None = None
    excluded_by_first: float = 0.05
    excluded: tuple[float, ...] = (0.005, 0.01, 0.015, 0.02)
    case_drop: float = 1 / 3
    case_fisher: float = 0.10
    case_rounds: tuple[int, ...] = (3, 6, 9, 12)
    case_alpha: float = 0.01
    case_spend: tuple[float, ...] = (0.0, 0.3, 0.3, 0.4)
    max_cases: int = 20
    prior_correlation: float = 0.10
    head_to_head_calls: int = 120
    head_to_head_factor: int = 4
    draws: int = 9999
    exact_limit: int = 16384
    min_pool_iterations: int = 4
    max_lost: float = 0.05
    lost_alpha: float = 0.01
    max_control_lost: float = 0.10

    def length(self, run_calls: int) -> int:
        """Return how many times longer than a run of the suite those of the head-to-head are."""
        return min(self.head_to_head_factor, max(1, -(-self.head_to_head_calls // max(run_calls, 1))))


#: ``gate: thrifty`` costs less and finds less; ``gate: thorough`` costs more and finds more.
NAMED_SETTINGS = {
    "default": GateSettings(),
    "thrifty": GateSettings(hope=0.0, recheck=0.02),
    "thorough": GateSettings(screen_epoch=0.12, screen_newest=0.02, recheck=0.06, hope=0.3),
}
